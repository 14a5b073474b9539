"""Spans of time are rounded as people say them."""

import pytest

from backend.contract.time_span import ago, format_span


@pytest.mark.parametrize(
    ("least", "most", "words"),
    [
        (0.2, 0.8, "1 second"),
        (3.2, 4.1, "3 to 4 seconds"),
        (52, 69, "50 to 70 seconds"),
        (240, 350, "4 to 6 minutes"),
        (299, 301, "5 minutes"),
        (5_000, 9_000, "1.5 to 2.5 hours"),
        (200_000, 400_000, "2.5 to 4.5 days"),
    ],
)
def test_no_more_digits_are_told_than_are_known(least, most, words):
    assert format_span(least, most) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(-5, "just now"), (59, "just now"), (60, "1 minute ago"), (7_300, "2 hours ago"), (90_000, "1 day ago")],
)
def test_an_age_is_told_in_its_largest_unit(seconds, words):
    assert ago(seconds) == words
