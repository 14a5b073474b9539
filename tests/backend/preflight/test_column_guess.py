"""Tests that columns are guessed by name, else by what they hold where that leaves no choice, each with its reason."""

from typing import Any

import pyarrow as pa
import pytest

from backend.contract.catalog import Column
from backend.preflight.column_guess import CHOSEN, ColumnGuess, GuessReason, guessed_columns

TEXT = Column("text", "Text", "", usual_names=["text"], holds="text")
PAIR = Column("text_pair", "Second text", "", required=False, usual_names=["text_pair"], holds="text")
LABEL = Column("label", "Label", "", usual_names=["label"], holds="label")
CLASS = Column("label", "Label", "", usual_names=["label", "sentiment"], holds="label")
SCORE = Column("label", "Score", "", usual_names=["score"], holds="number")
WORDS = Column("tokens", "Words", "", usual_names=["tokens"], holds="words")
TAGS = Column("tags", "Tags", "", usual_names=["tags"], holds="tags")
BODY = [f"a long review of the film number {number}" for number in range(40)]
STARS = [str(number % 5) for number in range(40)]
IDS = [f"id{number}" for number in range(40)]


def guesses(
    parts: list[Column], given: dict[str, str | None] | None = None, **columns: list[Any]
) -> dict[str, GuessReason]:
    return ColumnGuess(pa.table(columns)).guesses(parts, given or {})


def test_a_usual_name_comes_first():
    assert guesses([TEXT, LABEL], text=IDS, label=STARS, body=BODY)["text"] == GuessReason("text", "a common name")


def test_the_longest_texts_and_the_few_values_are_found_under_any_name():
    found = guesses([TEXT, PAIR, LABEL], number=IDS, body=BODY, stars=STARS)
    assert found == {
        "text": GuessReason("body", "the longest texts (about 8 words)"),
        "label": GuessReason("stars", "5 different values in 40 rows"),
    }


def test_of_two_that_could_be_neither_is_taken():
    found = guesses([TEXT, LABEL], text=BODY, stars=STARS, shop=["here", "there"] * 20)
    assert found["label"] == GuessReason(None, "could be “stars” or “shop”")


def test_what_a_person_chose_is_kept_and_what_they_left_out_is_not_guessed():
    found = guesses([TEXT, LABEL], {"text": "title", "label": None}, title=IDS, text=BODY, stars=STARS)
    assert found == {"text": GuessReason("title", CHOSEN)}


def test_numbers_are_found_for_a_score():
    found = guesses([TEXT, SCORE], body=BODY, points=[number / 7 for number in range(40)])
    assert found["label"] == GuessReason("points", "the only column of numbers")


def test_lists_with_few_members_are_tags_and_the_others_words():
    words = [[f"w{number}_{place}" for place in range(10)] for number in range(40)]
    found = guesses([WORDS, TAGS], first=words, second=[["O", "B", "I", "O", "O", "O", "O", "O", "O", "O"]] * 40)
    assert (found["tokens"].column, found["tags"].column) == ("first", "second")


@pytest.mark.parametrize(
    ("part", "cells", "why"),
    [
        (TEXT, [["a"], ["b"]], "contains lists of text, not text"),
        (TEXT, ["", " "], "is empty in every row"),
        (LABEL, ["x", "x"], "contains a single value, 'x'"),
        (LABEL, [["a"], ["b"]], "contains lists of text, but labels are single values"),
        (LABEL, [f"{number}" for number in range(1200)], "has a different value in each of 1,200 rows"),
        (LABEL, [f"{number}" for number in range(95)] + ["0"] * 5, "contains 95 different values in 100 rows"),
        (LABEL, [f"{number}" for number in range(20)], ""),
        (LABEL, [f"{number % 60}" for number in range(100)], ""),
        (LABEL, ["2023-01-01", "2023-01-01", "2023-01-02"], "contains dates, for example '2023-01-01'"),
        (LABEL, [f"{number / 8}" for number in range(40)], "contains scores, for example 0.0"),
        (TAGS, [f"A-{number:04}" for number in range(40)], "has a different value in each of 40 rows"),
        (TAGS, ["O B I", "O"] * 20, ""),
        (SCORE, ["good", "bad"], "has no numbers, for example 'good'"),
        (SCORE, ["1.5", "2"], ""),
        (TAGS, [1, 2], "contains whole numbers, not lists"),
    ],
)
def test_a_column_that_cannot_play_a_part_says_why(part: Column, cells: list[Any], why: str):
    guess = ColumnGuess(pa.table({"column": cells}))
    assert guess.unfit(part, guess.summaries["column"]) == why


def test_a_usual_name_that_cannot_be_the_label_is_passed_over_with_the_reason():
    found = guesses([TEXT, CLASS], text=BODY, label=IDS, sentiment=STARS)["label"]
    assert found.column == "sentiment"
    assert found.reason == "a common name; “label” has a different value in each of 40 rows"


def test_numbers_that_count_the_rows_are_not_guessed_to_be_scores():
    found = guesses([TEXT, SCORE], text=BODY, number=list(range(7, 47)), points=[number % 3 for number in range(40)])
    assert found["label"] == GuessReason("points", "the only column of numbers")


def test_what_was_guessed_is_one_sentence_for_a_terminal():
    found = guesses([TEXT, LABEL], {"text": "body"}, body=BODY, stars=STARS)
    assert guessed_columns([TEXT, LABEL], found) == "columns guessed: label is stars (5 different values in 40 rows)"
    assert guessed_columns([TEXT], found) == ""
