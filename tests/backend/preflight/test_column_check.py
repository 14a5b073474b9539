"""Tests that a column which cannot play its role is refused first of all, with the column that probably can."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from backend.contract.catalog import Column
from backend.contract.errors import InputError
from backend.contract.spec import RunSpec, validate
from backend.preflight.column_check import WrongColumn, find_missing_labels, find_wrong_column
from backend.preflight.column_guess import ColumnGuess
from backend.preflight.datasets import load_splits
from backend.preflight.task_facts import FittedFacts

TEXT = Column("text", "Text", "", usual_names=["text"], holds="text")
LABEL = Column("label", "Label", "", usual_names=["label", "sentiment"], holds="label")
SCORE = Column("label", "Score", "", usual_names=["score"], holds="number")
ROWS = 40
BODY = [f"a long review of the film number {number}" for number in range(ROWS)]
IDS = [f"A-{number:04}" for number in range(ROWS)]
UUIDS = [f"{number:08x}-0000-4000-8000-000000000000" for number in range(ROWS)]
MOODS = ["good", "bad", "mixed", "good"] * (ROWS // 4)
STARS = ["1", "5", "3", "1"] * (ROWS // 4)
SHOPS = ["here", "there"] * (ROWS // 2)


def wrong(role: Column, column: str, columns: dict[str, list[Any]], **options: Any) -> WrongColumn | None:
    chosen = {"text": "body", role.name: column}
    return find_wrong_column([role], ColumnGuess(pa.table({"body": BODY} | columns)), chosen, **options)


def test_the_sentence_says_what_is_wrong_and_which_column_is_meant():
    found = wrong(LABEL, "id", {"id": IDS, "sentiment": MOODS, "shop": SHOPS})
    assert found is not None
    assert str(found.error()) == (
        "data.columns.label: “id” has a different value in each of 40 rows, so it cannot be the label; "
        "“sentiment” (3 different values in 40 rows) probably is, so use that column"
    )
    assert found.error().field == "data.columns.label"
    fix = found.error().fix
    assert fix is not None
    assert (fix.title, fix.changes) == ("Use “sentiment”", {"data.columns.label": "sentiment"})
    assert fix.sentence == ("“id” has a different value in each of 40 rows. “sentiment” is probably meant.")


@pytest.mark.parametrize(("answer", "title"), [(LABEL, "label"), (SCORE, "score")])
def test_answer_is_no_input(answer: Column, title: str):
    pair = Column("text_pair", "Second text", "", required=False, holds="text")
    rows = ColumnGuess(pa.table({"body": BODY, "stars": STARS}))
    found = find_wrong_column([TEXT, pair, answer], rows, {"text": "body", "text_pair": "stars", "label": "stars"})
    assert found is not None
    assert str(found.error()) == (
        f"data.columns.text_pair: “stars” is also the {title}, which the model would then read, so it cannot be "
        "the second text; choose another column, or none"
    )
    assert find_wrong_column([TEXT, pair, answer], rows, {"text": "body", "label": "stars"}) is None


def test_of_two_that_are_as_likely_both_are_named_and_none_is_a_button():
    found = wrong(LABEL, "id", {"id": IDS, "mood": MOODS, "shop": SHOPS})
    assert found is not None
    assert "so it cannot be the label, which could be “mood” or “shop”; choose one of them" in str(found.error())
    assert found.error().fix is None


def test_without_a_likely_column_those_that_could_be_it_are_listed():
    few = [str(number % 30) for number in range(ROWS)]
    found = wrong(LABEL, "id", {"id": IDS, "shelf": few})
    assert found is not None
    assert str(found.error()).endswith(
        "; choose another column (shelf), or list the labels in task.labels if these are labels"
    )


@pytest.mark.parametrize("cells", [IDS, UUIDS, ["2023-01-31", "2023-02-01"] * (ROWS // 2)], ids=["id", "uuid", "date"])
def test_without_any_column_that_could_be_the_label_the_texts_alone_are_proposed(cells: list[str]):
    found = wrong(LABEL, "id", {"id": cells})
    assert found is not None
    error = found.error()
    assert str(error).endswith(
        "; no other column looks like labels, so choose another file, or the task causal_lm to train on the texts alone"
    )
    assert error.fix is not None
    assert (error.fix.title, error.fix.changes) == ("Switch to causal language modeling", {"task.type": "causal_lm"})


def test_labels_that_are_texts_may_be_meant_to_be_written():
    found = wrong(LABEL, "headline", {"headline": [f"the film number {number} is here" for number in range(ROWS)]})
    assert found is not None
    assert found.fix is not None
    assert found.fix.changes == {"task.type": "seq2seq_lm"}


def missing(columns: dict[str, list[Any]], **chosen: str) -> InputError | None:
    return find_missing_labels([TEXT, LABEL], ColumnGuess(pa.table(columns)), chosen)


def test_that_no_column_looks_like_labels_is_said_with_what_the_texts_are_for():
    error = missing({"id": IDS, "text": BODY}, text="text")
    assert error is not None
    assert str(error) == (
        "data.columns.label: none of the columns (id, text) looks like labels, so choose another file, "
        "or the task causal_lm to train on the texts alone"
    )
    assert error.fix is not None
    assert error.fix.changes == {"task.type": "causal_lm"}


def test_labels_are_missing_only_if_no_column_could_be_it():
    assert missing({"id": IDS, "text": BODY, "mood": MOODS}, text="text") is None
    assert missing({"id": IDS, "text": BODY}, text="text", label="id") is None
    without_texts = missing({"id": IDS, "code": UUIDS}, text="code")
    assert without_texts is not None
    assert without_texts.fix is None


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("2023-01-31", "2023-02-01"),
        ("2023-01-31T10:15:00Z", "2023-02-01 10:15:00+02:00"),
        ("31.01.2023", "1. 2. 2023"),
        ("31.01.23 10:15", "01.02.23 10:15"),
        ("1/31/2023", "2/1/23"),
        ("31 January 2023", "1 Feb. 2023"),
        ("January 31, 2023", "Feb 1, 2023"),
        ("Tue, 31 Jan 2023 10:15:00 +0000", "Wed, 1 Feb 2023 10:15:00 GMT"),
        ("31. Januar 2023", "1. März 2023"),
    ],
)
def test_dates_are_no_labels_even_if_they_occur_often(first: str, second: str):
    found = wrong(LABEL, "day", {"day": [first, second] * (ROWS // 2), "mood": MOODS})
    assert found is not None
    assert found.why == f"contains dates, for example {first!r}"


def test_labels_behind_rows_of_dates_or_dates_behind_empty_rows_are_what_all_filled_rows_are():
    days = ["2023-01-31", "2023-02-01"] * (ROWS // 2)
    assert wrong(LABEL, "kind", {"kind": [*days[:-2], "good", "bad"]}) is None
    assert wrong(LABEL, "kind", {"kind": [None] * (ROWS - 4) + days[:4], "mood": MOODS}) is not None


def test_timestamps_of_a_typed_file_are_dates():
    days = pa.array(range(ROWS), pa.timestamp("s"))
    assert wrong(LABEL, "day", {"day": days}) is not None


@pytest.mark.parametrize(
    "cells", [["1.2.10", "1.3.0"], ["1/2", "2/2"], ["May", "June"], ["2023", "2024"], ["1-2", "3-4"]]
)
def test_what_looks_a_little_like_a_date_is_a_label(cells: list[str]):
    assert wrong(LABEL, "kind", {"kind": cells * (ROWS // 2)}) is None


def test_few_rows_may_have_a_label_each_unless_some_are_to_be_held_out():
    table = pa.table({"text": ["a", "b", "c"], "label": ["x", "y", "z"]})
    chosen = {"text": "text", "label": "label"}
    assert find_wrong_column([TEXT, LABEL], ColumnGuess(table), chosen) is None
    found = find_wrong_column([TEXT, LABEL], ColumnGuess(table), chosen, is_split=True)
    assert found is not None
    assert found.why == "has a different value in each of 3 rows"


def test_most_labels_may_differ_and_a_few_may_occur_once():
    assert wrong(LABEL, "mood", {"mood": [*IDS[:30], *IDS[:10]]}, is_split=True) is None


def test_listed_labels_are_labels():
    assert wrong(LABEL, "id", {"id": IDS}, labels_are_listed=True) is None


def test_one_row_per_label_is_fine_if_the_rows_to_validate_on_have_the_same_labels():
    held_out = pa.table({"body": BODY, "id": IDS[::-1]})
    assert wrong(LABEL, "id", {"id": IDS}, held_out=held_out) is None
    others = pa.table({"body": BODY, "id": [f"B-{number}" for number in range(ROWS)]})
    assert wrong(LABEL, "id", {"id": IDS}, held_out=others) is not None


def test_a_single_label_is_the_wrong_column_only_if_another_is_likely():
    found = wrong(LABEL, "state", {"state": ["done"] * ROWS, "mood": MOODS})
    assert found is not None
    assert found.why == "contains a single value, 'done'"
    assert wrong(LABEL, "state", {"state": ["done"] * ROWS}) is None


def test_different_fractions_are_scores_of_another_task():
    found = wrong(LABEL, "points", {"points": [str(number / 8) for number in range(ROWS)], "mood": MOODS})
    assert found is not None
    assert str(found.error()).startswith("data.columns.label: “points” contains scores, for example 0.0, ")
    assert "choose the task text_regression" in str(found.error())


def test_scores_may_all_be_different():
    assert wrong(SCORE, "points", {"points": [number / 8 for number in range(ROWS)]}) is None


def test_words_are_no_scores_and_the_numbers_of_the_rows_are_not_proposed():
    found = wrong(SCORE, "id", {"id": IDS, "number": [str(number) for number in range(ROWS)], "points": STARS})
    assert found is not None
    assert found.why == "has no numbers, for example 'A-0000'"
    assert found.fix is not None
    assert found.fix.changes == {"data.columns.label": "points"}


@pytest.mark.parametrize("cells", [IDS, UUIDS, [str(number) for number in range(ROWS)], ["2023-01-31"] * ROWS])
def test_ids_and_dates_are_no_text_beside_a_column_of_texts(cells: list[str]):
    table = pa.table({"id": cells, "body": BODY, "label": MOODS})
    found = find_wrong_column([TEXT, LABEL], ColumnGuess(table), {"text": "id", "label": "label"})
    assert found is not None
    assert found.fix is not None
    assert found.fix.changes == {"data.columns.text": "body"}


def test_the_only_column_of_numbers_may_be_the_text():
    table = pa.table({"id": [str(number) for number in range(ROWS)], "label": MOODS})
    assert find_wrong_column([TEXT, LABEL], ColumnGuess(table), {"text": "id", "label": "label"}) is None


def spec_of(folder: Path, **data: Any) -> RunSpec:
    lines = ["id,text,sentiment", *(f"A-{number:04},{BODY[number]},{MOODS[number]}" for number in range(ROWS))]
    (folder / "train.csv").write_text("\n".join(lines), encoding="utf-8")
    sections = {"task": {"type": "text_classification"}, "model": {"name_or_path": "org/model"}}
    return validate(RunSpec, sections | {"data": {"train": str(folder / "train.csv"), **data}}, "")


def test_it_is_said_before_anything_about_splits(tmp_path: Path):
    with pytest.raises(InputError, match="“id” has a different value in each of 40 rows"):
        load_splits(spec_of(tmp_path, validation=0.1, columns={"label": "id"}), None)


def test_a_run_that_was_started_with_such_a_column_is_resumed(tmp_path: Path):
    spec = spec_of(tmp_path, columns={"label": "id"})
    assert load_splits(spec, None, kept=FittedFacts("", {})).columns["label"] == "id"
