"""Tests that a glance accounts for every row of all splits, and that what is left out can be written to a file."""

import csv
from pathlib import Path
from typing import Any

import pytest

from backend.contract.errors import InputError
from backend.contract.resources import resource
from backend.contract.rpc.data import DataSummary
from backend.helper.queries.data import QUERIES

ANSWER = {query.name: query.answer for query in QUERIES}
TASK = {"type": "text_classification"}


def asked(query: str, **arguments: Any) -> Any:
    return ANSWER[query]({"task": TASK, **arguments}, lambda progress: None)


def table(path: Path, rows: list[str]) -> str:
    path.write_text("\n".join(["text,label", *rows]) + "\n", encoding="utf-8")
    return str(path)


@pytest.fixture
def data(tmp_path: Path) -> dict[str, Any]:
    usual = [f"film {number},good" for number in range(30)]
    odd = ["film 0,good", ",good", "short", "no label,", "rare,bad"]
    seen = [f"film {number},good" for number in range(4)]
    validation = [*seen, "new,bad", "newer,awful"]
    return {
        "source": "files",
        "train": table(tmp_path / "train.csv", [*usual, *odd]),
        "validation": table(tmp_path / "dev.csv", validation),
    }


@pytest.fixture
def glance(data: dict[str, Any]) -> DataSummary:
    return asked("data_glance", data=data)


def test_every_row_is_used_or_listed_with_its_line_and_reason(glance: DataSummary):
    train = glance.splits[0]
    assert train.rows + train.unusable == 35
    assert sorted((row.line, row.reason) for row in train.first_unusable) == [
        (33, "no text"), (34, "1 cell, but the header has 2"), (35, "no label")
    ]  # fmt: skip


def test_labels_repetitions_and_overlap_are_counted(glance: DataSummary):
    train, validation = glance.splits
    assert (train.labels, train.repeated) == ({"good": 31, "bad": 1}, 1)
    assert (validation.in_train, validation.only_here) == (4, ["awful"])


def test_what_is_odd_is_said(glance: DataSummary):
    said = " ".join(glance.warnings)
    for words in (
        "“good” has 31 times as many rows as “bad”; the class weights",
        "“bad” occurs in only one training row.",
        "“awful”",
        "4 of 6",
    ):
        assert words in said


def test_a_fraction_for_validation_is_taken_off_as_a_run_does(data: dict[str, Any]):
    found = asked("data_glance", data={**data, "validation": 0.25})
    assert [(split.split, split.rows) for split in found.splits] == [("train", 24), ("validation", 8)]


def test_lengths_are_in_tokens_of_the_model_against_the_limit(tmp_path: Path):
    section = {"source": "files", "train": table(tmp_path / "a.csv", ["one two three four,good", "one,bad"])}
    arguments = {"task": {**TASK, "max_length": 4}, "data": section, "model": str(resource("demo", "bert-tiny"))}
    found = ANSWER["data_glance"](arguments, lambda progress: None)
    assert (found.lengths.unit, found.lengths.spread.max, found.lengths.limit, found.lengths.over) == (
        "tokens",
        6,
        4,
        1,
    )
    assert found.warnings[-1] == "50.0% of the rows are longer than the limit of 4 tokens and are truncated."


def test_all_unusable_rows_can_be_written_to_a_file(data: dict[str, Any], tmp_path: Path):
    written = asked("export_unusable", data=data, output=str(tmp_path / "out.csv"))
    with (tmp_path / "out.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.reader(file))
    assert (written.rows, rows[0], len(rows)) == (3, ["split", "file", "line", "reason"], 4)


def test_a_file_that_cannot_be_written_is_refused(data: dict[str, Any], tmp_path: Path):
    with pytest.raises(InputError, match="cannot be written"):
        asked("export_unusable", data=data, output=str(tmp_path / "nowhere" / "out.csv"))


def test_one_row_is_shown_whole(tmp_path: Path):
    path = table(tmp_path / "long.csv", [f"{'word ' * 5000},good", "b,bad"])
    row = asked("data_row", data={"source": "files", "train": path}, row=0)
    assert (row.place, len(row.cells["text"])) == ("long.csv:2", 25_000)


def test_lines_of_running_text_are_not_called_repeated_or_empty(tmp_path: Path):
    for name in ("train", "dev"):
        (tmp_path / f"{name}.txt").write_text("“Yes,” she said.\n\n“Yes,” she said.\n\nHe left.\n", encoding="utf-8")
    data = {"source": "files", "train": str(tmp_path / "train.txt"), "validation": str(tmp_path / "dev.txt")}
    joined, apart = (
        asked("data_glance", data=data, task={"type": "causal_lm", "rows": rows}) for rows in ("blocks", "examples")
    )
    assert [(one.repeated, one.in_train, one.empty) for one in joined.splits] == [(0, None, {})] * 2
    assert apart.splits[0].repeated == 1
    assert not [words for words in joined.warnings if "also occur" in words]
