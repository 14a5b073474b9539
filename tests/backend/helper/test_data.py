"""The preview of a data set shows its first rows, guesses its columns and stays small; its report comes with progress."""

import csv
import time
from pathlib import Path
from typing import Any

import pytest

from backend.contract.rpc.data import DataPreview
from backend.contract.rpc.protocol import Progress
from backend.helper.queries.data import CHARACTERS, QUERIES

REPORT = next(query.answer for query in QUERIES if query.name == "data_report")

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
    assert sum(len(cell.removesuffix("…")) for row in found.rows for cell in row) <= CHARACTERS


DATA = Path(__file__).parents[2] / "data"


def preview_of(source: str, task: str, path: Path) -> DataPreview:
    section = {"source": source, "train": str(path)}
    return PREVIEW({"task": {"type": task}, "data": section}, lambda progress: None)


def test_words_read_as_a_sentence_and_their_tags_are_counted():
    found = preview_of("conll", "token_classification", DATA / "ner" / "train.conll")
    words, tags = (found.rows[0][found.columns.index(name)] for name in ("tokens", "tags"))
    assert len(words.split()) == len(tags.split())
    assert "[" not in tags
    assert max(found.label_counts, key=lambda tag: found.label_counts[tag]) == "O"


def test_answers_read_with_their_place():
    found = preview_of("squad", "question_answering", DATA / "squad" / "train.json")
    context, answer = (found.rows[0][found.columns.index(name)] for name in ("context", "answers"))
    text, _, place = answer.partition(" | ")[0].removesuffix(")").rpartition(" (at ")
    assert context[int(place) :].startswith(text)
    assert found.label_counts == {}


def test_scores_are_no_labels(tmp_path: Path):
    path = table(tmp_path / "scores.csv", [["text", "label"], ["a", "1.5"], ["b", "3"]])
    assert preview_of("files", "text_regression", path).label_counts == {}


def test_section_of_data_is_enough(tmp_path: Path):
    path = tmp_path / "dev.csv"
    for one in (tmp_path / "reviews.csv", path):
        one.write_text("text,label\ngood,yes\nbad,no\ngood,yes\n", encoding="utf-8")
    told: list[Progress] = []

    section = {"source": "files", "train": "reviews.csv", "validation": str(path)}
    found = REPORT({"data": section, "task": "text_classification", "folder": str(tmp_path)}, told.append)

    assert found.splits["train"].duplicates == 1
    assert found.splits["validation"].in_train == 3
    assert told[-1].total == 3


def test_time_grows_with_the_columns_and_no_faster(tmp_path: Path):
    def seconds(count: int) -> float:
        path = tmp_path / f"{count}.csv"
        path.write_text("".join(f"{','.join(f'{row}{one}' for one in range(count))}\n" for row in "cxy"))
        begin = time.process_time()
        REPORT({"data": {"source": "files", "train": str(path)}}, lambda progress: None)
        return time.process_time() - begin

    few = min(seconds(250) for _ in range(3))
    assert seconds(2000) < 20 * few, "8 times as many columns"
