"""Every form in which answers come, and what becomes of those that are not where they are said to be."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from backend.contract.errors import InputError
from backend.contract.spec import DataSection
from backend.data.sources.files import Files
from backend.data.sources.files import Settings as FileSettings
from backend.data.sources.source import ReadOptions
from backend.preflight.datasets import choose_columns
from backend.tasks._question_answering_features import Answers, Unreadable, _read
from backend.tasks.question_answering import QuestionAnswering, Settings
from tests.backend.tasks.questions import COLUMNS, answer_text, bert, features_of, rows_of

CONTEXT = "Ines Varga opened it in 1908. In 1908 it had one arch."
SECOND = CONTEXT.rindex("1908")


@pytest.fixture(scope="module")
def tokenizer():
    return bert()


def row(answers: object, **more: object) -> dict:
    return {"question": "When?", "context": CONTEXT, "answers": answers, **more}


def start_of(tokenizer, answers: object, **more: object) -> int:
    """The first character of what is trained."""
    columns = {**COLUMNS, **({"answer_start": "answer_start"} if more else {})}
    rows = rows_of([row(answers, **more)])
    task = QuestionAnswering(Settings())
    facts = {**task.fit(rows, columns), "max_length": 384}
    (batch,) = task.encode(rows, columns, tokenizer, facts)
    assert CONTEXT[batch["offset_start"][0].as_py()[batch["start_positions"][0].as_py()] :][:4] == "1908"
    return batch["offset_start"][0].as_py()[batch["start_positions"][0].as_py()]


SQUAD = {"text": ["1908"], "answer_start": [SECOND]}


@pytest.mark.parametrize(
    "answers",
    [
        SQUAD,
        json.dumps(SQUAD),
        str(SQUAD),
        [{"text": "1908", "answer_start": SECOND}],
        json.dumps([{"text": "1908", "answer_start": SECOND}]),
        {"text": "1908", "answer_start": SECOND},
    ],
    ids=["struct", "JSON text", "Python text", "list of structs", "JSON list", "one answer"],
)
def test_answers_with_offsets_are_read_in_every_form(tokenizer, answers):
    assert start_of(tokenizer, answers) == SECOND


@pytest.mark.parametrize("offset", [SECOND, str(SECOND), float(SECOND), [SECOND], f"[{SECOND}]"])
def test_offset_stands_in_a_column_of_its_own(tokenizer, offset):
    assert start_of(tokenizer, "1908", answer_start=offset) == SECOND


@pytest.mark.parametrize("answers", ["1908", ["1908"], 1908, 1908.0])
def test_answer_without_offset_is_its_first_occurrence(tokenizer, answers):
    assert start_of(tokenizer, answers) == CONTEXT.index("1908")


def test_plain_answer_may_look_like_json():
    rows = rows_of([{"question": "Which?", "context": "see note [1] there", "answers": "[1]"}])
    task = QuestionAnswering(Settings())
    assert task.unusable(rows, COLUMNS, "training") == []


def test_answer_elsewhere_is_moved_to_its_nearest_occurrence_and_said(tokenizer):
    rows = rows_of([row({"text": ["1908"], "answer_start": [SECOND + 3]})])
    features = features_of(tokenizer, rows)
    assert features["offset_start"][0].as_py()[features["start_positions"][0].as_py()] == SECOND
    (note,) = QuestionAnswering(Settings()).fit(rows, COLUMNS)["notes"]
    assert note.startswith("In 1 of 1 training rows, the answer is not at its offset in the context")
    assert "questions.json:1" in note


def test_answer_that_occurs_nowhere_is_listed():
    rows = rows_of([row(SQUAD), row({"text": ["1909"], "answer_start": [3]})])
    found = QuestionAnswering(Settings()).unusable(rows, COLUMNS, "training")
    assert found == [(1, "an answer that does not occur in the context")]


def test_answer_that_occurs_nowhere_is_no_obstacle_to_measuring(tokenizer):
    rows = rows_of([row(SQUAD), row({"text": ["1909"], "answer_start": [3]})])
    assert QuestionAnswering(Settings()).unusable(rows, COLUMNS, "measuring") == []
    assert features_of(tokenizer, rows)["start_positions"].to_pylist()[1] == -100


def test_misplaced_answer_is_left_out_where_that_is_asked_for():
    rows = rows_of([row(SQUAD), row({"text": ["1908"], "answer_start": [3]})])
    found = QuestionAnswering(Settings(misplaced_answers="skip")).unusable(rows, COLUMNS, "training")
    assert found == [(1, "an answer that is not at its offset")]


def test_misplaced_answer_is_trained_as_none_where_that_is_asked_for(tokenizer):
    rows = rows_of([row(SQUAD), row({"text": ["1909"], "answer_start": [3]})])
    settings = {"misplaced_answers": "no_answer"}
    assert QuestionAnswering(Settings(**settings)).unusable(rows, COLUMNS, "training") == []
    features = features_of(tokenizer, rows, **settings)
    assert answer_text(features, 0, CONTEXT) == "1908"
    assert features["start_positions"][1].as_py() == features["null_index"][1].as_py()


def test_row_without_question_context_or_answers_is_listed():
    rows = rows_of([row(SQUAD), {**row(SQUAD), "question": " "}, {**row(SQUAD), "context": ""}, row(None)])
    found = QuestionAnswering(Settings()).unusable(rows, COLUMNS, "training")
    assert found == [(1, "no question"), (2, "no context"), (3, "no answers")]


def test_answers_that_are_none_are_told_from_answers_that_nobody_knows():
    rows = rows_of([row(SQUAD), row({"text": [], "answer_start": []})])
    task = QuestionAnswering(Settings())
    assert task.unusable(rows, COLUMNS, "training") == []
    assert task.fit(rows, COLUMNS)["version_2_with_negative"]


def test_questions_without_answer_are_listed_where_the_settings_rule_them_out():
    rows = rows_of([row(SQUAD), row({"text": [], "answer_start": []})])
    task = QuestionAnswering(Settings(version_2_with_negative=False))
    ((number, reason),) = task.unusable(rows, COLUMNS, "training")
    assert number == 1
    assert "version_2_with_negative" in reason


def test_cell_of_another_kind_is_listed_with_its_reason():
    rows = rows_of([row({"text": ["1908"], "answer_start": ["here"]})])
    ((_, reason),) = QuestionAnswering(Settings()).unusable(rows, COLUMNS, "training")
    assert reason == "the answer offset ['here'], which is not a number"


def test_empty_cells_of_a_table_without_any_answer_are_unknown_answers():
    rows = rows_of([row(""), row(" ")])
    assert QuestionAnswering(Settings()).unusable(rows, COLUMNS, "training") == []
    with pytest.raises(InputError, match="the column 'answers' has no answers"):
        QuestionAnswering(Settings()).fit(rows, COLUMNS)


def test_other_split_with_questions_that_training_does_not_teach_is_noted():
    task, facts = QuestionAnswering(Settings()), {"version_2_with_negative": False}
    task.check(rows_of([row(SQUAD)]), COLUMNS, facts, "validation")
    assert "notes" not in facts
    task.check(rows_of([row(SQUAD), row({"text": [], "answer_start": []})]), COLUMNS, facts, "validation")
    assert facts["notes"] == [
        "data.validation: every question in the training data has an answer, but here 1 of 2 "
        "have none; they count as errors."
    ]


def written_csv(folder: Path) -> Path:
    path = folder / "flat.csv"
    path.write_text(f'id,question,context,answer,answer_start\nq0,When?,"{CONTEXT}",1908,{SECOND}\n', encoding="utf-8")
    return path


def written_csv_with_json(folder: Path) -> Path:
    path = folder / "cells.csv"
    cell = json.dumps(SQUAD).replace('"', '""')
    path.write_text(f'id,question,context,answers\nq0,When?,"{CONTEXT}","{cell}"\n', encoding="utf-8")
    return path


def written_json_lines(folder: Path) -> Path:
    path = folder / "rows.jsonl"
    path.write_text(json.dumps({"id": "q0", **row(SQUAD)}) + "\n", encoding="utf-8")
    return path


def written_parquet(folder: Path) -> Path:
    path = folder / "rows.parquet"
    parquet.write_table(pa.Table.from_pylist([{"id": "q0", **row(SQUAD)}]), path)
    return path


@pytest.mark.parametrize("write", [written_csv, written_csv_with_json, written_json_lines, written_parquet])
def test_tables_of_questions_are_read_in_every_format(tokenizer, tmp_path, write):
    rows = Files(FileSettings()).read_file(write(tmp_path), DataSection(), ReadOptions(tmp_path / "cache"))
    columns = choose_columns(QuestionAnswering, {}, rows)  # type: ignore[arg-type]
    task = QuestionAnswering(Settings())
    assert task.unusable(rows, columns, "training") == []
    facts = {**task.fit(rows, columns), "max_length": 384}
    (batch,) = task.encode(rows, columns, tokenizer, facts)
    assert batch["offset_start"][0].as_py()[batch["start_positions"][0].as_py()] == SECOND


def test_an_offset_of_nan_is_an_unknown_one() -> None:
    assert _read("red", float("nan")) == Answers(("red",), (None,))


def test_an_offset_without_end_is_no_number() -> None:
    found = _read('{"text": ["red"], "answer_start": [1e400]}', None)
    assert isinstance(found, Unreadable)
    assert "not a number" in str(found)
