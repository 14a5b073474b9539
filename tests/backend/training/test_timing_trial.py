"""What a few rows take tells what a whole batch takes, which may be too long to wait for."""

import pytest

from backend.training.timing_trial import row_seconds


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
