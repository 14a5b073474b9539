"""Numbers as people read them."""

import pytest

from app.core import formatting


@pytest.mark.parametrize(
    ("value", "text"), [(950, "950"), (4_386_178, "4.39 M"), (999_499, "999 k"), (999_700, "1 M"), (1.3e9, "1.3 B")]
)
def test_large_counts_are_short(value: float, text: str):
    assert formatting.short_count(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(8, "8 s"), (59.7, "1 min 00 s"), (260, "4 min 20 s"), (11_100, "3 h 05 min"), (None, "–")]
)
def test_durations_have_two_units_at_most(seconds: float | None, text: str):
    assert formatting.duration(seconds) == text


@pytest.mark.parametrize("seconds", [1e18, -1e18, 1e308, 253_402_387_200.0])
def test_a_time_that_no_calendar_knows_is_a_dash(seconds: float):
    assert (formatting.moment(seconds), formatting.clock(seconds)) == ("–", "–")


def test_a_note_names_its_split_in_plain_words():
    assert formatting.note("data.train: 40 tags were repaired") == "Training data: 40 tags were repaired"
    assert (
        formatting.note("the batch is large: every step uses all rows")
        == "The batch is large: every step uses all rows"
    )


def test_only_an_old_reading_says_how_old_it_is():
    assert formatting.reading_age(1000.0, 1059.0) == ""
    assert formatting.reading_age(1000.0, 1190.0) == "3 minutes ago"


@pytest.mark.parametrize(
    ("text", "ended"), [("It failed", "It failed."), ("Resume it.", "Resume it."), ("Why?", "Why?")]
)
def test_sentence_that_another_one_follows_ends_with_a_full_stop(text: str, ended: str):
    assert formatting.with_full_stop(text) == ended
