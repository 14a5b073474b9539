"""Bars of a histogram: round, complete, with the limit on the scale."""

import pytest

from app.core.text.length_bins import MAX_BINS, length_bins


@pytest.mark.parametrize("limit", [4, 24, 128, 5000])
@pytest.mark.parametrize("longest", [1, 30, 91, 700, 20_000])
def test_every_row_is_in_one_bar(longest: int, limit: int):
    lengths = list(range(1, longest + 1))
    bins = length_bins(lengths, [2] * longest, limit)
    assert sum(bins.counts) == 2 * longest
    assert len(bins.counts) <= MAX_BINS


def test_a_limit_near_the_data_is_drawn_and_one_far_away_is_not():
    assert length_bins([5, 90], [1, 1], 128).end >= 128
    assert length_bins([5, 90], [1, 1], 1000).end < 200


def test_a_few_very_long_rows_are_joined_in_the_last_bar():
    bins = length_bins([*range(1, 101), 9000], [100] * 100 + [1], 64)
    assert bins.end < 400
    assert bins.tail
    assert bins.words(len(bins.counts) - 1).endswith("9000 tokens")
    assert bins.counts[-1] == 1


def test_bars_end_with_their_limit():
    bins = length_bins([63, 64, 65], [1, 1, 1], 64)
    place = 64 // bins.width - 1
    assert bins.words(place).startswith(str(64 - bins.width + 1)) or bins.width == 1
    assert sum(bins.counts[place + 1 :]) == 1


def test_no_rows_are_an_empty_picture():
    assert sum(length_bins([], [], 128).counts) == 0
