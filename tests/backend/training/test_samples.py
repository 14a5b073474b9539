"""The few rows that an evaluation shows."""

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from backend.contract.messages import table_of
from backend.contract.run import events
from backend.data.rows import Rows
from backend.tasks.task import Predictions
from backend.training import samples

COUNT = 40


@pytest.fixture
def rows() -> Rows:
    table = pa.table({"text": [f"text {place}" for place in range(COUNT)], "label": ["good"] * COUNT})
    return Rows(table, ("a.csv",), np.zeros(COUNT, np.int32), np.arange(COUNT), fingerprint="f")


def classified(probabilities: np.ndarray) -> Predictions:
    right = probabilities >= 0.5
    return Predictions(
        pa.table({
            "prediction": np.where(right, "good", "bad"),
            "actual": ["good"] * COUNT,
            "probability_bad": 1 - probabilities,
            "probability_good": probabilities,
        })
    )  # fmt: skip


def of_kind(event: events.RowsSampled, kind: str) -> list[int]:
    return [row.row for row in event.rows if row.kind == kind]


def sampled(rows: Rows, probabilities: np.ndarray, seed: int = 1) -> events.RowsSampled:
    return samples.choose_samples(
        7, rows, classified(probabilities), {"text": "text", "label": "label"}, seed, np.arange(COUNT)
    )


def test_worst_come_first_then_best_then_the_drawn_ones(rows: Rows):
    event = sampled(rows, np.linspace(0.01, 0.99, COUNT))
    drawn = set(of_kind(event, "drawn"))
    others = [place for place in range(COUNT) if place not in drawn]
    assert [row.kind for row in event.rows] == ["worst"] * 3 + ["best"] * 3 + ["drawn"] * 3
    assert of_kind(event, "worst") == others[:3]
    assert of_kind(event, "best") == others[:-4:-1]
    assert event.rows[0].rating == pytest.approx(np.linspace(0.01, 0.99, COUNT)[others[0]])
    assert event.measure == "probability of the correct answer"


def test_drawn_rows_are_the_same_at_each_evaluation_and_others_with_another_seed(rows: Rows):
    rng = np.random.default_rng(0)
    first, second = (sampled(rows, rng.random(COUNT)) for _ in range(2))
    assert of_kind(first, "drawn") == of_kind(second, "drawn")
    assert of_kind(first, "worst") != of_kind(second, "worst")
    assert of_kind(sampled(rows, rng.random(COUNT), seed=2), "drawn") != of_kind(first, "drawn")


def test_a_row_bears_its_number_in_the_split(rows: Rows):
    numbers = np.arange(COUNT) * 10
    event = samples.choose_samples(7, rows, classified(np.linspace(0.01, 0.99, COUNT)), {}, 1, numbers)
    assert [row.values["text"] for row in event.rows] == [f"text {row.row // 10}" for row in event.rows]


def test_a_row_has_the_columns_of_the_predictions_file(rows: Rows):
    row = sampled(rows, np.linspace(0.01, 0.99, COUNT)).rows[0]
    assert list(row.values) == ["text", "label", "prediction", "actual", "probability_bad", "probability_good"]
    assert row.values["text"] == f"text {row.row}"


def test_the_event_is_read_back_as_it_was_written(rows: Rows):
    event = sampled(rows, np.linspace(0.01, 0.99, COUNT))
    assert events.decode(events.encode(event)) == msgspec.structs.replace(event, messages=table_of(event))


def test_rows_whose_answers_nobody_knows_are_only_drawn(rows: Rows):
    table = pa.table({"prediction": ["good"] * COUNT, "actual": pa.nulls(COUNT, pa.string())})
    event = samples.choose_samples(7, rows, Predictions(table), {}, 1, np.arange(COUNT))
    assert [(row.kind, row.rating) for row in event.rows] == [("drawn", None)] * 3


@pytest.mark.parametrize(
    ("columns", "measure", "order"),
    [
        ({"prediction": [1.0, 4.0, 2.5], "actual": [1.0, 1.0, 2.0]}, "difference", [1, 2, 0]),
        ({"prediction": ["a", "b", "c"], "loss": [2.0, 0.5, 1.0]}, "loss", [0, 2, 1]),
        (
            {"prediction": ["B O", "O O O", "B"], "actual": ["B O", "B O B", "O"], "lost_words": [0, 0, 0]},
            "correct tags", [2, 1, 0],
        ),
        (
            {"prediction": ["the cat", "a dog", ""], "actual": [["cat", "the cat"], ["a cat"], ["bird"]]},
            "words in common", [2, 1, 0],
        ),
        ({"prediction": [1, 0, 1], "actual": [1, 1, 0], "probability_0": [0.1, 0.7, 0.4], "probability_1": [0.9, 0.3, 0.6]},
         "probability of the correct answer", [1, 2, 0]),
    ],
)  # fmt: skip
def test_each_task_has_its_measure_of_a_good_answer(columns: dict, measure: str, order: list[int]):
    found, rated = samples.ratings(pa.table(columns), np.arange(3))
    assert found == measure
    assert sorted(rated, key=lambda place: rated[place]) == order


def test_a_row_of_many_columns_is_cut_so_that_events_stay_small(rows: Rows):
    wide = {f"column {number}": ["x" * 500] * COUNT for number in range(50)}
    wider = Rows(pa.table(wide), ("a.csv",), np.zeros(COUNT, np.int32), np.arange(COUNT), fingerprint="f")
    row = sampled(wider, np.linspace(0.01, 0.99, COUNT)).rows[0]
    assert ("column 0" in row.values, "column 49" in row.values) == (True, False)
    assert row.values["actual"] == "good"
    assert len(str(row.values)) < samples.LONGEST_ROW


def test_long_texts_are_cut_so_that_events_stay_small():
    assert samples.shorten("x" * 5000) == "x" * samples.LONGEST_TEXT + "…"
    assert samples.shorten(["x" * 5000]) is None
    assert samples.shorten(float("nan")) is None
    assert samples.shorten([{"a": 1}]) == [{"a": 1}]
