"""A few steps and rows tell how long all of them take."""

import pytest

from backend.training.timing_trial import row_seconds, step_times


def test_a_whole_batch_tells_by_itself():
    assert row_seconds([(1, 0.5), (4, 0.6), (16, 2.0)], 16) == 2.0 / 16


def test_rows_that_are_written_together_cost_little_more():
    assert row_seconds([(1, 2.0), (4, 2.6)], 64) == pytest.approx((2.0 + 63 * 0.2) / 64)


def test_more_rows_that_took_less_are_chance():
    assert row_seconds([(1, 2.0), (4, 1.6)], 8) == pytest.approx(1.6 / 8)


def test_no_row_costs_more_than_on_average():
    assert row_seconds([(1, 0.1), (4, 4.0)], 8) == pytest.approx(1.0)


def test_one_look_alone_is_the_average():
    assert row_seconds([(1, 3.0)], 64) == 3.0


def test_a_step_of_average_length_takes_its_share_of_the_time():
    found = step_times([(4, 400, 0.8), (2, 600, 1.2)], 250.0)
    assert (found.count, found.seconds, found.spread) == pytest.approx((6, 0.5, 0.0))


def test_unsteady_steps_leave_a_wide_spread():
    found = step_times([(1, 100, 1.0), (1, 100, 3.0), (1, 100, 1.0), (1, 100, 3.0)], 100.0)
    assert found.spread == pytest.approx(0.5)


def test_one_group_alone_is_believed_with_care():
    assert step_times([(5, 500, 1.0)], 100.0).spread == 0.2
