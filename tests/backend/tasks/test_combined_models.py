"""Answers of several models together: the mean of what is a number, a vote on what is not."""

import numpy as np
import pyarrow as pa
import pytest

from backend import registry
from backend.data.rows import Rows
from backend.tasks.multiple_choice import MultipleChoice
from backend.tasks.question_answering import QuestionAnswering
from backend.tasks.task import Predictions, combine, vote
from backend.tasks.text_classification import TextClassification
from backend.tasks.text_regression import TextRegression
from backend.tasks.token_classification import TokenClassification


def rows_of(**columns: list) -> Rows:
    count = len(next(iter(columns.values())))
    return Rows(pa.table(columns), ("new.csv",), np.zeros(count, np.int32), np.arange(count), "fingerprint")


def combined(kind, each, rows, facts, **columns):
    models = [Predictions(pa.table(table)) for table in each]
    return together(kind(kind.Settings()), models, rows, columns, facts)


def together(task, *rest):
    found = combine(task, *rest)
    assert found is not None
    return found


def logits(*values):
    return {"logits": [np.array(value) for value in values]}


def test_the_label_with_the_largest_mean_probability_wins():
    # Two of three models prefer "a", but only just.
    tables = [{"prediction": ["a"], "probability_a": [a], "probability_b": [1 - a]} for a in (0.55, 0.55, 0.01)]
    rows = rows_of(text=["x"], label=["b"])
    found = combined(TextClassification, tables, rows, {"labels": ["a", "b"]}, text="text", label="label")
    assert found.table.to_pylist() == [
        {"prediction": "b", "actual": "b", "probability_a": pytest.approx(0.37), "probability_b": pytest.approx(0.63)}
    ]
    assert found.total("loss") == pytest.approx((-np.log(0.63), 1.0))


def test_one_model_alone_is_itself():
    task, facts, rows = (
        TextClassification(TextClassification.Settings()),
        {"labels": ["a", "b"]},
        rows_of(text=["x", "y"], label=["b", ""]),
    )
    columns = {"text": "text", "label": "label"}
    alone = task.decode(logits([1.0, 2.0], [3.0, -1.0]), pa.table({}), rows, columns, facts, None)
    again = together(task, [alone], rows, columns, facts)
    assert again.table.select([0, 1]).equals(alone.table.select([0, 1]))
    assert again.table["probability_a"].to_pylist() == pytest.approx(alone.table["probability_a"].to_pylist())
    assert np.allclose(again.sums["loss"][0], alone.sums["loss"][0])


def test_scores_are_averaged():
    tables = [{"prediction": np.array([value, 1.0], np.float32)} for value in (1.0, 2.0, 6.0)]
    found = combined(TextRegression, tables, rows_of(text=["x", "y"], label=["4", ""]), {}, text="text", label="label")
    assert found.table["prediction"].to_pylist() == [3.0, 1.0]
    assert found.total("loss") == (1.0, 1.0)


def test_each_words_tag_is_voted_on():
    tables = [
        {"prediction": [tags], "actual": ["B-PER O O"], "lost_words": [0]}
        for tags in ("O O B-LOC", "B-PER O O", "B-PER B-LOC O")
    ]
    found = combined(TokenClassification, tables, rows_of(tokens=["Ada was there"]), {})
    assert found.table["prediction"].to_pylist() == ["B-PER O O"]
    assert found.table["actual"].to_pylist() == ["B-PER O O"]


def test_the_choice_with_the_largest_mean_probability_wins():
    tables = [{"prediction": ["0"], "probability_0": [p], "probability_1": [1 - p]} for p in (0.6, 0.6, 0.1)]
    rows = rows_of(text=["x"], choices=[["red", "blue"]], label=["B"])
    facts = {"choices": 2, "labels_are": "capitals"}
    found = combined(MultipleChoice, tables, rows, facts, text="text", choices="choices", label="label")
    assert found.table["prediction"].to_pylist() == ["B"]
    assert found.total("accuracy") == (1.0, 1.0)


def test_the_commonest_answer_wins_with_its_place():
    tables = [
        {"prediction": [text, "yes"], "actual": ["Paris", "yes"], "start": [start, 0]}
        for text, start in (("London", 1), ("Paris", 5), ("Paris", 9))
    ]
    rows = rows_of(
        question=["Where?", "So?"],
        context=["c", "c"],
        answers=['{"text": ["Paris"], "answer_start": [5]}', '{"text": ["yes"], "answer_start": [0]}'],
    )
    found = combined(QuestionAnswering, tables, rows, {}, question="question", context="context", answers="answers")
    assert found.table["prediction"].to_pylist() == ["Paris", "yes"]
    assert found.table["start"].to_pylist() == [5, 0]
    assert found.total("exact_match") == (2.0, 2.0)


def test_of_equally_common_answers_the_first_models_wins():
    assert vote([["a", "x"], ["b", "y"], ["b", "z"]]) == ["b", "x"]


def test_texts_have_no_middle():
    without = {name for name, kind in registry.all_of("task").items() if not hasattr(kind, "combine")}
    assert without == {"causal_lm", "masked_lm", "seq2seq_lm"}
