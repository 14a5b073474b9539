"""A few steps tell the time of all: short and long ones in turn, and what they tell is scaled to the mean."""

import pytest

from backend.training.timing_trial_steps import told, van_der_corput


def test_the_first_steps_are_spread_over_all_lengths():
    assert [van_der_corput(number) for number in range(1, 8)] == [0.5, 0.25, 0.75, 0.125, 0.625, 0.375, 0.875]


def test_a_step_takes_so_long_for_itself_and_so_long_for_each_token():
    groups = [(4, 400, 4 * 0.1 + 400 * 0.002), (2, 600, 2 * 0.1 + 600 * 0.002), (3, 300, 3 * 0.1 + 300 * 0.002)]
    found = told(groups, 250.0)
    assert found.count == 9
    assert found.seconds == pytest.approx(0.1 + 250 * 0.002)
    assert found.spread == pytest.approx(0.0, abs=1e-9)


def test_longer_steps_that_took_less_are_chance_and_no_rule():
    assert told([(1, 100, 2.0), (1, 300, 1.0)], 1000.0).seconds == pytest.approx(1.5)


def test_no_step_takes_less_than_nothing_for_itself():
    assert told([(1, 100, 0.1), (1, 300, 0.5)], 200.0).seconds == pytest.approx(0.3)


def test_unsteady_steps_leave_a_wide_spread():
    assert told([(1, 100, 1.0), (1, 100, 3.0), (1, 100, 1.0), (1, 100, 3.0)], 100.0).spread == pytest.approx(0.5)


def test_one_group_alone_is_believed_with_care():
    assert told([(5, 500, 1.0)], 100.0).spread == 0.2
