"""Tests that data made for another task than the chosen one is recognised, and that data which suits it is left alone."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from backend import registry
from backend.contract.catalog import is_used
from backend.contract.errors import InputError
from backend.contract.rpc.data import OtherTask
from backend.contract.spec import RunSpec, validate
from backend.preflight.column_guess import ColumnGuess
from backend.preflight.datasets import load_splits
from backend.preflight.task_guess import guess_other_tasks

ROWS = 40
BODY = [f"a long review of the film number {number}" for number in range(ROWS)]
OTHER = [f"another text about film {number}" for number in range(ROWS)]
SCORES = [f"{number / 8}" for number in range(ROWS)]
MOODS = ["good", "bad", "mixed", "good"] * (ROWS // 4)
WORDS = [["Anna", "sings", f"song{number}"] for number in range(ROWS)]
TAGS = [["B-PER", "O", "O"]] * ROWS


def others(task: str, columns: dict[str, list[Any]]) -> list[OtherTask]:
    kind = registry.find("task", task, "task.type")
    roles = [role for role in kind.columns if is_used(role, lambda name: kind.Settings.model_fields[name].default)]
    guess = ColumnGuess(pa.table(columns))
    chosen = {name: one.column for name, one in guess.guesses(roles, {}).items() if one.column is not None}
    return guess_other_tasks(task, roles, guess, chosen)


@pytest.mark.parametrize("name", ["similarity", "score", "label", "points"])
def test_scores_are_for_text_regression(name: str):
    found = others("text_classification", {"sentence1": BODY, "sentence2": OTHER, name: SCORES})
    assert found == [OtherTask("text_regression", f"“{name}” contains scores, for example 0.0")]


@pytest.mark.parametrize(
    "cells", [["4,5", "3,25", "1,0"], ["0.5", "3.8", "5"], [1.5, 2.25, 3.0]], ids=["comma", "point", "typed"]
)
def test_few_scores_of_any_spelling_are_for_text_regression(cells: list[Any]):
    found = others("text_classification", {"text": BODY[:3], "similarity": cells})
    assert [one.task for one in found] == ["text_regression"]


def test_half_stars_may_be_scores():
    stars = ["3.5", "4.0", "4.5", "5.0"] * (ROWS // 4)
    assert [one.task for one in others("text_classification", {"text": BODY, "rating": stars})] == ["text_regression"]


def test_three_decimals_are_fractions_if_a_cell_has_fewer():
    cells = ["1,125", "2,5", "3,000", "4,250"] * (ROWS // 4)
    assert [one.task for one in others("text_classification", {"text": BODY, "label": cells})] == ["text_regression"]


@pytest.mark.parametrize(
    "cells",
    [["1", "2", "3", "4"], ["0.0", "1.0", "2.0", "0.0"], ["1,000", "2,500", "5,000", "12,345"], MOODS[:4]],
    ids=["whole", "point", "thousands", "words"],
)
def test_labels_are_left_to_text_classification(cells: list[str]):
    assert others("text_classification", {"text": BODY, "label": cells * (ROWS // 4)}) == []


def test_running_text_is_for_either_language_model():
    found = others("text_classification", {"text": BODY})
    assert found == [
        OtherTask(task, "the data is running text without any labels") for task in ("causal_lm", "masked_lm")
    ]
    assert others("causal_lm", {"text": BODY}) == []


@pytest.mark.parametrize("task", ["causal_lm", "masked_lm"])
@pytest.mark.parametrize("name", ["label", "mood"])
def test_a_table_with_labels_is_for_text_classification_where_a_language_model_would_ignore_them(task: str, name: str):
    found = others(task, {"text": BODY, name: MOODS})
    assert found == [OtherTask("text_classification", f"“{name}” contains labels, for example good")]


def test_whole_numbers_beside_texts_are_labels_and_fractions_are_scores():
    assert [one.task for one in others("causal_lm", {"text": BODY, "label": [0, 1] * (ROWS // 2)})] == [
        "text_classification"
    ]
    assert [one.task for one in others("causal_lm", {"text": BODY, "score": SCORES})] == ["text_regression"]


@pytest.mark.parametrize(
    "columns",
    [
        {"id": list(range(ROWS)), "source": ["web", "books"] * (ROWS // 2)},
        {"url": [f"https://example.org/{number}" for number in range(ROWS)]},
        {"length": [number % 7 for number in range(ROWS)], "language": ["en", "de"] * (ROWS // 2)},
        {"answer": ["a long answer about the film", "another long answer about it"] * (ROWS // 2)},
    ],
    ids=["source", "address", "length", "answers"],
)
def test_what_describes_running_text_is_no_label(columns: dict[str, list[Any]]):
    assert others("causal_lm", {"text": BODY, **columns}) == []


def test_a_column_of_names_or_of_ids_is_no_running_text():
    assert others("text_classification", {"name": ["Anna", "Bert", "Cleo"]}) == []
    assert others("text_classification", {"id": [f"A-{number}" for number in range(ROWS)]}) == []


def test_sources_with_targets_are_for_sequence_to_sequence():
    found = others("text_classification", {"source": BODY, "target": OTHER})
    assert found == [OtherTask("seq2seq_lm", "the data has the columns “source” and “target”")]


def test_questions_with_answers_in_contexts_are_for_question_answering():
    found = others("text_classification", {"question": OTHER, "context": BODY, "answer": OTHER})
    assert [one.task for one in found] == ["question_answering"]


def test_a_tag_for_each_word_is_for_token_classification():
    found = others("text_classification", {"tokens": WORDS, "ner_tags": TAGS})
    assert found == [OtherTask("token_classification", "“ner_tags” contains a tag for each word")]


def test_labels_are_for_text_classification_where_numbers_are_wanted():
    found = others("text_regression", {"text": BODY, "label": MOODS})
    assert found == [OtherTask("text_classification", "“label” contains labels, for example good")]


def test_the_numbers_of_the_rows_are_no_scores():
    assert others("text_classification", {"number": [str(number) for number in range(ROWS)], "text": BODY}) == []


def test_a_terminal_is_told_the_other_task_with_the_reason(tmp_path: Path):
    train = tmp_path / "similar.csv"
    train.write_text("sentence1,sentence2,similarity\n" + "".join(f"a b,c d,{score}\n" for score in SCORES))
    values = {"task": {"type": "text_classification"}, "model": {"name_or_path": "none"}, "data": {"train": str(train)}}
    with pytest.raises(InputError) as refused:
        load_splits(validate(RunSpec, values), None)
    assert str(refused.value) == (
        "data.columns.label: specify which column contains the label, or choose text_regression as the task, because "
        "“similarity” contains scores, for example 0.0; the columns are sentence1, sentence2, similarity"
    )
