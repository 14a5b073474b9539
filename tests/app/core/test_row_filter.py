"""What a person asks for becomes one question, and chips that can be taken back one by one."""

import pytest

from app.core.predictions.row_filter import RowFilter, ValueFilter
from app.core.predictions.threshold_scores import ThresholdScores
from backend.contract.rpc.predictions import ThresholdCounts

EVERYTHING = RowFilter(
    right=False,
    text="soup",
    text_column="text",
    words=True,
    pair=("pos", "neg"),
    confidence=(0.5, 0.6),
    values=(ValueFilter("source", "is_not", "imdb"), ValueFilter("stars", "at_least", 3)),
)


def test_a_label_alone_is_asked_for_and_said():
    actual, predicted = RowFilter(pair=("pos", "")), RowFilter(pair=("", "neg"))
    assert actual.question() == {"actual": "pos"}
    assert predicted.question() == {"prediction": "neg"}
    assert [words for one in (actual, predicted) for _, words in one.chips()] == ["Actual pos", "Predicted neg"]


def test_all_conditions_stand_in_one_question():
    assert EVERYTHING.question() == {
        "right": False, "text": "soup", "words": True, "text_column": "text", "actual": "pos", "prediction": "neg",
        "conditions": [
            {"column": "confidence", "is": "above", "value": 0.5},
            {"column": "confidence", "is": "at_most", "value": 0.6},
            {"column": "source", "is": "is_not", "value": "imdb"},
            {"column": "stars", "is": "at_least", "value": 3},
        ],
    }  # fmt: skip


def test_each_condition_has_a_chip_in_words():
    assert [words for _, words in EVERYTHING.chips()] == [
        "Wrong", "“soup” in text", "Actual pos, predicted neg", "Confidence 0.50 to 0.60", "source is not imdb",
        "stars at least 3",
    ]  # fmt: skip


def test_taking_every_chip_back_leaves_every_row():
    left = EVERYTHING
    while chips := list(left.chips()):
        left = left.without(chips[-1][0])
    assert left.is_empty
    assert left.question() == {}


def test_the_lowest_bin_has_also_what_is_zero():
    assert RowFilter(confidence=(0.0, 0.1)).question()["conditions"][0]["is"] == "at_least"


def test_only_a_plain_text_in_any_column_is_plain():
    assert RowFilter(right=True, text="a").is_plain
    assert not RowFilter(text="a", text_column="text").is_plain
    assert not RowFilter(text="a", regex=True).is_plain


def test_an_empty_cell_can_be_asked_for():
    assert ValueFilter("actual", "is", None).words == "actual is empty"


COUNTS = ThresholdCounts(
    label="pos",
    true_positives=[4] * 401 + [3] * 300 + [0] * 300,
    false_positives=[4] * 201 + [1] * 400 + [0] * 400,
    positives=4,
    negatives=4,
)


def test_scores_at_a_threshold_follow_from_the_counts():
    at = ThresholdScores(COUNTS).at(500)
    assert (at.threshold, at.predicted) == (0.5, 4)
    assert (at.precision, at.recall, at.f1, at.accuracy) == (0.75, 0.75, 0.75, 0.75)


def test_where_nothing_is_predicted_there_is_no_precision():
    at = ThresholdScores(COUNTS).at(1000)
    assert (at.precision, at.recall, at.accuracy) == (None, 0.0, 0.5)


def test_the_best_threshold_is_the_middle_of_the_best_ones():
    best = ThresholdScores(COUNTS).best_step
    assert best == (201 + 400) // 2
    assert ThresholdScores(COUNTS).at(best).f1 == pytest.approx(8 / 9)
