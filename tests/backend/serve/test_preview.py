"""Tests that the preview of a data set shows its first rows, guesses its columns, and stays small."""

import csv
from pathlib import Path
from typing import Any

import msgspec
import pytest

from backend.contract.queries import DataPreview
from backend.queries.channel import LARGEST_ANSWER
from backend.queries.data import QUERIES

PREVIEW = next(query.answer for query in QUERIES if query.name == "preview_data")


def preview(path: Path, columns: dict[str, str | None] | None = None, **data: Any) -> DataPreview:
    section = {"source": "files", "train": str(path), "columns": columns or {}, **data}
    return PREVIEW({"task": "text_classification", "data": section}, lambda progress: None)


def table(path: Path, rows: list[list[str]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
    return path


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    return table(tmp_path / "pairs.csv", [["Sentence1", "sentence2", "label"], ["a", "b", "yes"], ["c", "d", "no"]])


def test_columns_are_guessed_by_their_usual_names(pairs: Path):
    found = preview(pairs)

    assert found.guessed_columns == {"text": "Sentence1", "text_pair": "sentence2", "label": "label"}
    assert found.label_counts == {"yes": 1, "no": 1}
    assert found.rows == [["a", "b", "yes"], ["c", "d", "no"]]


def test_part_that_a_person_left_out_is_not_guessed(pairs: Path):
    assert "text_pair" not in preview(pairs, {"text_pair": None}).guessed_columns


def test_only_columns_that_play_under_the_tasks_settings_are_guessed(tmp_path: Path):
    path = table(tmp_path / "asked.csv", [["prompt", "response", "text"], ["a", "b", "c"]])
    section = {"source": "files", "train": str(path)}
    blocks = PREVIEW({"task": {"type": "causal_lm"}, "data": section}, lambda progress: None)
    asked = PREVIEW({"task": {"type": "causal_lm", "rows": "instructions"}, "data": section}, lambda progress: None)
    assert blocks.guessed_columns == {"text": "text"}
    assert asked.guessed_columns == {"prompt": "prompt", "response": "response"}


def test_long_and_wide_rows_make_a_small_answer(tmp_path: Path):
    names = [f"column{number}" for number in range(12)]
    path = table(tmp_path / "wide.csv", [names, *[["ටින්" * 1000] * 12] * 150])

    found = preview(path)

    assert (found.row_count, len(found.rows)) == (150, 100)
    assert found.rows[0][0].endswith("…")
    assert len(msgspec.json.encode(found)) < LARGEST_ANSWER
