"""SQuAD's measures, against values worked out by hand from the official evaluation script's rules."""

import numpy as np
import pyarrow as pa
import pytest

from backend.metrics.answers import best_threshold, exact_match, f1, normalise
from backend.tasks.question_answering import QuestionAnswering, Settings
from backend.tasks.task import Predictions
from tests.backend.tasks.questions import COLUMNS, answered, bert, features_of, rows_of


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("The  Old\tBridge!", "old bridge"),
        ("a.b.c", "abc"),
        ("An apple a day", "apple day"),
        ("theatre", "theatre"),
        ("24–10", "24–10"),
        ("$1,200.50", "120050"),
        ("Ünlü ÇAY", "ünlü çay"),
        ("the", ""),
    ],
    ids=["article", "dots", "two articles", "no article", "Unicode dash stays", "number", "Unicode letters", "nothing"],
)
def test_answers_are_normalised_as_the_official_script_does(answer, expected):
    assert normalise(answer) == expected


@pytest.mark.parametrize(
    ("prediction", "references", "expected"),
    [
        ("the Denver Broncos", ["Denver Broncos"], 1.0),
        ("Broncos", ["Denver Broncos", "Broncos"], 1.0),
        ("Denver", ["Denver Broncos"], 0.0),
        ("", [], 1.0),
        ("Denver", [], 0.0),
        ("", ["Denver"], 0.0),
        ("", ["the", "Denver"], 0.0),
    ],
)
def test_exact_match_is_the_best_over_the_references(prediction, references, expected):
    assert exact_match(prediction, references) == expected


@pytest.mark.parametrize(
    ("prediction", "references", "expected"),
    [
        ("Denver", ["Denver Broncos"], 2 / 3),  # precision 1, recall 1/2
        ("Denver Denver", ["Denver Broncos"], 1 / 2),  # a word counts as often as it stands in both
        ("a red red brick", ["the red brick wall", "brick"], 2 / 3),  # 2 of 3 and 2 of 3; against "brick" 1/2
        ("stone", ["Denver Broncos"], 0.0),
        ("", [], 1.0),
        ("the", ["Denver"], 0.0),
    ],
)
def test_f1_counts_common_words(prediction, references, expected):
    assert f1(prediction, references) == pytest.approx(expected)


def test_best_threshold_answers_as_long_as_it_pays():
    scores = np.array([1.0, 0.0, 0.5, 0.0, 1.0])
    has_answer = np.array([True, False, True, False, True])
    null_scores = np.array([-4.0, -1.0, -2.0, 3.0, 0.5])
    # Nothing answered: 2 right. In the order of null scores: +1, +0.5, −1, +1, −1.
    assert best_threshold(scores, null_scores, has_answer) == (pytest.approx(3.5 / 5), -2.0)


def test_best_threshold_is_zero_where_answering_nothing_is_best():
    never = best_threshold(np.array([0.0, 0.0]), np.array([-5.0, -3.0]), np.array([False, True]))
    assert never == (0.5, 0.0)


ROWS = rows_of(
    [
        answered("Who opened it?", "It was opened by Ines Varga in 1908.", "Ines Varga", "by Ines Varga"),
        answered("Who paid?", "It was opened by Ines Varga in 1908."),
        answered("When?", "It was opened by Ines Varga in 1908.", "1908"),
        answered("How?", "It was opened by Ines Varga in 1908."),
        {"question": "Which?", "context": "It was opened by Ines Varga in 1908."},
    ]
)
SPANS = ["Ines Varga", "1908", "Ines Varga in 1908", "Varga", "opened"]
NULLS = [-3.0, -1.0, -2.0, 2.0, 0.0]


@pytest.fixture(scope="module")
def features() -> pa.Table:
    return features_of(bert(), ROWS)


def predicted(features: pa.Table, **settings: object) -> Predictions:
    """A model that wants to answer SPANS, with these null scores."""
    starts, ends = [], []
    for number, (text, null) in enumerate(zip(SPANS, NULLS, strict=True)):
        context = ROWS.table["context"][number].as_py()
        first, last = (features[f"offset_{end}"][number].as_py() for end in ("start", "end"))
        start, end = np.full(len(first), -50, np.float32), np.full(len(first), -50, np.float32)
        start[first.index(context.index(text))], end[last.index(context.index(text) + len(text))] = 5, 5
        start[0], end[0] = 5 + null, 5
        starts.append(start)
        ends.append(end)
    task = QuestionAnswering(Settings(version_2_with_negative=True, **settings))  # type: ignore[arg-type]
    outputs = {"start_logits": starts, "end_logits": ends}
    return task.decode(outputs, features, ROWS, COLUMNS, {"version_2_with_negative": True}, None)


def scores(predictions: Predictions) -> dict[str, float]:
    return QuestionAnswering(Settings()).score(predictions, {})


def test_scores_of_answered_and_unanswerable_questions_are_told_apart(features):
    found = scores(predicted(features))
    assert found["exact_match"] == 2 / 4  # the first is right, so is saying nothing to the fourth
    assert found["exact_match_HasAns"] == 1 / 2
    assert found["exact_match_NoAns"] == 1 / 2
    assert found["f1_HasAns"] == pytest.approx((1 + 2 * 1 / (4 + 1)) / 2)
    assert found["f1"] == pytest.approx((1 + 0.4 + 0 + 1) / 4)


def test_best_threshold_gives_what_it_promises(features):
    found = scores(predicted(features))
    again = scores(predicted(features, null_threshold=found["best_f1_threshold"]))
    assert again["f1"] == pytest.approx(found["best_f1"])
    assert found["best_f1"] > found["f1"]
    assert found["best_f1_threshold"] == -2.0


def test_rows_without_known_answers_are_predicted_and_not_scored(features):
    predictions = predicted(features)
    assert predictions.table["prediction"].to_pylist()[4] == "opened"
    assert predictions.table["actual"].to_pylist() == ["Ines Varga", "", "1908", "", None]
    unknown = predictions.take(np.array([4]))
    assert scores(unknown) == {}


def test_scores_of_some_rows_are_those_of_these_rows_alone(features):
    found = scores(predicted(features).take(np.array([0, 2])))
    assert found["exact_match"] == 0.5
    assert "exact_match_NoAns" not in found
