"""Counts of lengths: every different one, few enough to send, and limits worth looking at."""

import numpy as np

from backend.data.lengths import MAX_LENGTHS, count_lengths, quantiles, usual_limits


def test_every_length_is_counted():
    values, counts = count_lengths(np.array([3, 5, 3, 9]))
    assert dict(zip(values.tolist(), counts.tolist(), strict=True)) == {3: 2, 5: 1, 9: 1}


def test_very_many_lengths_are_joined_with_the_next_one_up():
    lengths = np.arange(3 * MAX_LENGTHS)
    values, counts = count_lengths(lengths)
    assert len(values) <= MAX_LENGTHS
    assert counts.sum() == len(lengths)
    assert values[-1] == lengths[-1]


def test_a_quantile_is_a_length_that_is_there():
    assert quantiles(np.array([1, 2, 2, 50])) == {"50 %": 2, "90 %": 50, "95 %": 50, "99 %": 50, "100 %": 50}


def test_limits_end_with_the_first_that_nothing_exceeds_or_the_models():
    assert usual_limits(100, 24, 512)[-1] == 128
    assert 24 in usual_limits(100, 24, 512)
    assert usual_limits(9000, 512, 1000)[-1] == 1000
