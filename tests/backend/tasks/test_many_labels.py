"""Several labels per row: how they are written, what a model learns of them, and how its answers are measured."""

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pydantic import ValidationError
from sklearn import metrics

from backend.contract.errors import InputError
from backend.contract.heads import Head
from backend.metrics.metric import Predictions, weighted_scores
from backend.preflight.datasets import choose_columns
from backend.statistics.resampling import intervals
from backend.tasks._many_labels import ManyLabels
from backend.tasks.task import Facts, combine, split_labels
from backend.tasks.text_classification import Settings, TextClassification
from tests.backend.tasks.topics import rows_of

COLUMNS = {"text": "text", "labels": "labels"}
FLAGS = {"text": "text", "labels_0": "money", "labels_1": "sport"}
SETS: list[list[str]] = [["sport"], ["money", "sport"], ["money"], ["sport", "money"]]
TEXTS = ["a", "b", "c", "d"]


def task(**settings: object) -> Any:
    return TextClassification(Settings.model_validate({"labels_per_row": "many", **settings}))


def fit(labels: Any, columns: dict[str, str] = COLUMNS, **settings: object) -> Facts:
    return task(**settings).fit(rows_of(text=["x"] * len(labels), labels=labels), columns)


def test_one_label_per_row_is_another_task_than_many():
    assert task().head is Head.MULTI_LABEL_CLASSIFICATION
    assert isinstance(task(), ManyLabels)
    assert TextClassification(Settings()).head is Head.SEQUENCE_CLASSIFICATION


WRITTEN = {
    "lists": {"labels": SETS},
    "JSON": {"labels": ['["sport"]', '["money", "sport"]', '["money"]', '["sport","money"]']},
    "semicolons": {"labels": ["sport", "money;sport", "money", "sport; money"]},
    "bars": {"labels": ["sport", "money | sport", "money", "sport|money"]},
    "commas": {"labels": ["sport", "money, sport", "money", "sport,money"]},
    "ones": {"money": [0, 1, 1, 1], "sport": [1, 1, 0, 1]},
    "words": {"money": ["no", "yes", "Yes", "YES"], "sport": ["yes", "yes", "no", "yes"]},
    "crosses": {"money": ["", "x", "x", "X"], "sport": ["x", "x", "", "x"]},
    "booleans": {"money": [False, True, True, True], "sport": [True, True, False, True]},
    "floats": {"money": [0.0, 1.0, 1.0, 1.0], "sport": [1.0, 1.0, None, 1.0]},
}


@pytest.mark.parametrize("name", WRITTEN)
def test_labels_are_read_however_they_are_written(name: str):
    rows = rows_of(text=TEXTS, **WRITTEN[name])
    columns = COLUMNS if "labels" in WRITTEN[name] else FLAGS
    facts = task().fit(rows, columns)
    assert facts["labels"] == ["money", "sport"]
    [batch] = task().encode(rows, columns, lambda *_, **__: {"input_ids": [[1]] * 4}, {**facts, "max_length": 8})
    assert batch["has_label"].to_pylist() == [[0, 1], [1, 1], [1, 0], [1, 1]]


def test_the_separator_that_leaves_labels_which_repeat_is_the_one():
    cells = ["rock, soft;pop", "rock, soft;jazz", "jazz;pop", "rock, hard"]
    assert fit(cells)["labels"] == ["jazz", "pop", "rock, hard", "rock, soft"]
    assert "separated by ';'" in fit(cells)["notes"][0]


def test_columns_are_listed_or_kept_by_number():
    rows = rows_of(text=TEXTS, money=[0, 1, 1, 1], sport=[1, 1, 0, 1])
    assert choose_columns(task(), {"labels": ["money", "sport"]}, rows) == FLAGS
    assert choose_columns(task(), FLAGS, rows) == FLAGS
    assert choose_columns(task(), FLAGS, rows_of(text=TEXTS, labels=TEXTS), to_predict=True) == {"text": "text"}


def test_a_column_that_was_chosen_for_one_label_is_that_of_many():
    rows = rows_of(text=TEXTS, topic=["a;b"] * 4)
    assert choose_columns(task(), {"label": "topic"}, rows)["labels"] == "topic"
    assert choose_columns(TextClassification(Settings()), {"labels": "topic"}, rows)["label"] == "topic"


WRONG = {
    "a separator in a listed label": (
        lambda: fit([["a;b", "c"], ["c"]], label_separator=";"),
        r"task\.label_separator: the label 'a;b' contains ';'.*set it to another",
    ),
    "no separator is left": (
        lambda: fit([["a;b", "c|d", "e,f"], ["c|d"]]),
        r"task\.label_separator: the label .* contains .*set it to another",
    ),
    "a single label": (lambda: fit([["a"], ["a"]]), "contains a single label"),
    "an unknown label": (
        lambda: task().check(rows_of(text=["x"] * 2, labels=["a", "b;c"]), COLUMNS, {"labels": ["a", "b"], "separator": ";"}, "validation"),
        r"data\.validation: topics\.csv:3 has the label 'c', which is not among the labels \(a, b\).*task\.labels",
    ),
    "neither yes nor no": (
        lambda: task().fit(rows_of(text=TEXTS, money=[0, 1, 2, 1], sport=[1, 1, 0, 1]), FLAGS),
        r"topics\.csv:4 has '2' in the column 'money', which says neither yes nor no; write 1 or 0",
    ),
    "mappings": (lambda: fit([{"a": 1}, {"a": 0}]), "which is no list of labels"),
    "weights of an unknown label": (
        lambda: fit(["a;b", "b"], class_weights={"c": 2.0}), r"task\.class_weights: 'c' is not a label"
    ),
    "a missing column": (
        lambda: choose_columns(task(), {"labels": ["money", "mony"]}, rows_of(text=TEXTS, money=[1] * 4)),
        r"data\.columns\.labels: there is no column 'mony'",
    ),
    "several columns for a text": (
        lambda: choose_columns(task(), {"text": ["a", "b"]}, rows_of(a=TEXTS, b=TEXTS)),
        r"data\.columns\.text: this can be a single column",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_labels_is_refused_in_a_sentence(name: str):
    call, sentence = WRONG[name]
    with pytest.raises(InputError, match=sentence):
        call()


def test_labels_that_consist_of_others_are_said_to_be_several():
    one = TextClassification(Settings())
    rows = rows_of(text=TEXTS, label=["a", "a; b", "b", "c;d"])
    [note] = one.fit(rows, {"text": "text", "label": "label"})["notes"]
    assert note.startswith("the label 'a; b' consists of other labels")


def test_a_separator_that_would_cut_a_given_label_is_refused():
    with pytest.raises(ValidationError, match="the label 'a;b' contains ';'"):
        task(labels=["a;b", "c"], label_separator=";")


def test_a_row_without_labels_has_none_of_them_or_is_left_out():
    rows = rows_of(text=TEXTS, labels=["a;b", "", "b", None])
    assert task().unusable(rows, COLUMNS, "training") == []
    assert "2 of 4 training rows have no label" in task().fit(rows, COLUMNS)["notes"][1]
    assert task(rows_without_labels="unknown").unusable(rows, COLUMNS, "training") == [(1, "no label"), (3, "no label")]


def test_labels_that_no_row_has_are_kept_secret():
    assert len(task().unusable(rows_of(text=TEXTS, labels=[""] * 4), COLUMNS, "measuring")) == 4


def test_balanced_weights_are_the_rows_without_a_label_for_each_row_with_it():
    assert fit(["a;b", "b", "b", "b;c"], class_weights="balanced")["class_weights"] == [3.0, 0.25, 3.0]


def test_a_split_keeps_the_share_of_the_rarest_labels():
    rows = rows_of(text=TEXTS, labels=["a;b", "b", "", "b;a;c"])
    found = split_labels(task(), rows, COLUMNS)
    assert found is not None
    assert found.to_pylist() == ["a", "b", "", "c"]


# Answers


def predict(logits: Any, labels: Any, facts: Facts, **settings: object) -> Predictions:
    rows = rows_of(text=["x"] * len(logits), labels=labels)
    return task(**settings).decode({"logits": list(np.array(logits))}, pa.table({}), rows, COLUMNS, facts, None)


AB = {"labels": ["a", "b"], "separator": ";"}


def test_each_label_is_predicted_by_its_own_probability():
    found = predict([[2.0, 1.0], [-1.0, -2.0], [0.0, -3.0]], ["a;b", "b", ""], AB)
    assert found.table["prediction"].to_pylist() == ["a;b", "", "a"]
    assert found.table["actual"].to_pylist() == ["a;b", "b", ""]
    assert found.table["probability_a"].to_pylist() == pytest.approx([0.880797, 0.268941, 0.5], abs=1e-6)
    losses = found.sums["loss"]
    assert losses[0][1] == pytest.approx(-np.log(1 - 0.268941) - np.log(0.119203), rel=1e-5)
    assert losses[1].tolist() == [2.0, 2.0, 2.0]


def test_unknown_labels_have_no_loss_and_no_actual():
    found = predict([[2.0, 1.0], [1.0, 1.0]], ["a;b", ""], AB, rows_without_labels="unknown")
    assert found.table["actual"].to_pylist() == ["a;b", None]
    assert found.sums["loss"][1].tolist() == [2.0, 0.0]


def test_thresholds_are_fixed_for_all_labels_or_for_each():
    logits, labels = [[0.0, 0.0]], ["a"]
    assert predict(logits, labels, AB, thresholds=0.6).table["prediction"].to_pylist() == [""]
    assert predict(logits, labels, AB, thresholds={"a": 0.4, "b": 0.6}).table["prediction"].to_pylist() == ["a"]
    assert predict(logits, labels, {**AB, "thresholds": [0.6, 0.4]}).table["prediction"].to_pylist() == ["b"]
    assert (
        predict(logits, labels, {**AB, "thresholds": [0.6, 0.4]}, thresholds=0.5).table["prediction"][0].as_py()
        == "a;b"
    )


def test_a_threshold_is_tuned_to_the_highest_f1_if_enough_rows_say_so():
    rng = np.random.default_rng(1)
    has = rng.random((60, 2)) < [0.3, 0.05]  # of the second label there are too few
    logits = np.where(has, -1.0, -2.0) + rng.normal(0, 0.3, has.shape)  # never above one half
    labels = [[name for name, one in zip("ab", row, strict=True) if one] for row in has]
    untuned, rows = predict(logits, labels, AB), rows_of(text=["x"] * 60, labels=labels)
    learned = task().tune(untuned, rows, COLUMNS, AB)
    assert learned["thresholds"][1] == 0.5
    assert "1 of 2 labels were tuned on the 60 validation rows" in learned["notes"][0]
    chances = untuned.table["probability_a"].to_numpy()
    every = [metrics.f1_score(has[:, 0], chances >= one) for one in np.unique(chances)]
    assert metrics.f1_score(has[:, 0], chances >= learned["thresholds"][0]) == pytest.approx(max(every))
    assert max(every) > 0.8


def random_predictions(
    count: int = 300, labels: tuple[str, ...] = ("a", "b", "c", "rare")
) -> tuple[Any, Predictions, Facts]:
    rng = np.random.default_rng(3)
    has = rng.random((count, len(labels))) < np.linspace(0.5, 0.02, len(labels))
    facts = {"labels": list(labels), "separator": ";"}
    cells = [[name for name, one in zip(labels, row, strict=True) if one] for row in has]
    return has, predict(has * 2.0 - 1 + rng.normal(0, 1.5, has.shape), cells, facts), facts


def test_the_scores_are_those_of_scikit_learn():
    has, predictions, facts = random_predictions()
    chances = np.stack([predictions.table[f"probability_{label}"].to_numpy() for label in facts["labels"]], axis=1)
    chosen, scores = chances >= 0.5, task().score(predictions, facts)
    for average in ("micro", "macro", "weighted", "samples"):
        expected = metrics.f1_score(has, chosen, average=average, zero_division=int(average == "samples"))
        assert scores[f"f1_{average}"] == pytest.approx(expected)
    assert scores["mean_average_precision"] == pytest.approx(
        metrics.average_precision_score(has, chances, average="macro")
    )
    assert scores["exact_match"] == pytest.approx(metrics.accuracy_score(has, chosen))
    assert scores["loss"] == pytest.approx(metrics.log_loss(has.ravel(), chances.ravel()))
    each = metrics.f1_score(has, chosen, average=None, zero_division=0)
    assert [scores[f"f1_of_{label}"] for label in facts["labels"]] == pytest.approx(list(each))


def test_the_scores_that_intervals_are_drawn_from_are_the_scores():
    _, predictions, facts = random_predictions()
    scores = task().score(predictions, facts)
    [family] = weighted_scores(ManyLabels.metrics, predictions, facts, task().settings).values()
    once = {name: values[0] for name, values in family.scores(np.ones((1, 300))).items()}
    assert once == pytest.approx({name: scores[name] for name in once})
    assert scores.keys() - once.keys() == {"mean_average_precision"}
    low, high = intervals([family], 300)["f1_micro"]
    assert low < scores["f1_micro"] < high


def test_hierarchical_labels_are_scored_at_each_level():
    labels = ["art", "sport/ball/golf", "sport/ball/tennis", "sport/water"]
    facts = {"labels": labels, "separator": ";"}
    # golf for tennis: right at two levels of three
    found = predict([[-5, 5, -5, -5], [5, -5, -5, -5.0]], ["sport/ball/tennis", "art;sport/water"], facts)
    scores = task().score(found, facts)
    assert scores["f1_micro_level_1"] == pytest.approx(2 * 2 / (2 + 3))
    assert scores["f1_micro_level_2"] == pytest.approx(2 * 1 / (1 + 2))
    assert scores["f1_micro_level_3"] == 0.0
    assert scores["f1_of_sport.ball.golf"] == 0.0


def test_a_slash_in_a_label_is_no_hierarchy_by_itself():
    facts = {"labels": ["pop/rock", "jazz/blues"], "separator": ";"}
    assert not [name for name in task().score(predict([[1.0, -1.0]], ["pop/rock"], facts), facts) if "level" in name]


def test_models_are_combined_by_the_mean_of_each_probability():
    rows = rows_of(text=["x"], labels=["a"])
    each = [Predictions(pa.table({"probability_a": [a], "probability_b": [b]})) for a, b in ((0.9, 0.4), (0.3, 0.4))]
    found = combine(task(), each, rows, COLUMNS, AB)
    assert found is not None
    assert found.table.to_pylist() == [
        {"prediction": "a", "actual": "a", "probability_a": pytest.approx(0.6), "probability_b": pytest.approx(0.4)}
    ]


def test_models_with_tuned_thresholds_are_combined_at_the_mean_of_these():
    rows, labels = rows_of(text=["x"], labels=["a"]), ["a"]
    each = [predict([[0.0, 0.0]], labels, {**AB, "thresholds": own}) for own in ([0.2, 0.9], [0.4, 0.3])]
    found = combine(task(), each, rows, COLUMNS, {**AB, "thresholds": [0.9, 0.1]})
    assert found is not None
    assert found.table["prediction"].to_pylist() == ["a"]  # 0.5 against 0.3 and 0.6


def test_the_rule_without_a_model_predicts_the_same_labels_everywhere():
    rows = rows_of(text=["x"] * 4, labels=["a", "a;b", "a", "b"])
    rule = task().trivial_scores(rows, COLUMNS, AB)
    assert rule["exact_match"] == 0.5
    assert rule["f1_micro"] == pytest.approx(max(2 * 3 / (4 + 5), 2 * 5 / (8 + 5)))
    assert rule["mean_average_precision"] == pytest.approx((0.75 + 0.5) / 2)


def test_a_label_may_be_anything_that_a_cell_can_hold():
    assert re.match("no training row has more than one", fit(["[draft]", "final"])["notes"][0])
    assert fit(["[draft]", "final"])["labels"] == ["[draft]", "final"]
    assert fit([[1, 2], [2]])["labels"] == ["1", "2"]
