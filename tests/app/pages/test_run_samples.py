"""The rows that evaluations show, on the Run page's card."""

import pytest

from app.core.runs.run_state import KEPT_SAMPLES, RunState
from app.pages.run.events_card import SampledPredictions
from app.widgets.row_views.label_views import LabelView, NumberView
from backend.contract.run import events


def sample(step: int, right: float, kind: str = "drawn", row: int = 4) -> events.SampledRow:
    values = {
        "text": f"seen at {step}", "prediction": "good" if right >= 0.5 else "bad", "actual": "good",
        "probability_bad": 1 - right, "probability_good": right,
    }  # fmt: skip
    return events.SampledRow(row=row, kind=kind, values=values, rating=right)


def at(step: int, *rows: events.SampledRow) -> events.RowsSampled:
    return events.RowsSampled(
        time=step, step=step, rows=list(rows), measure="probability of the correct answer", columns={"text": "text"}
    )


def state_of(*many: events.AnyEvent) -> RunState:
    state = RunState(task="text_classification")
    state.apply_all(many)
    return state


@pytest.fixture
def card(qtbot) -> SampledPredictions:
    made = SampledPredictions()
    qtbot.addWidget(made)
    made.resize(900, 300)
    made.show()
    return made


def cells(card: SampledPredictions) -> list[list[str]]:
    table = card.list
    return [[table.item(row, column).text() for column in range(6)] for row in range(table.rowCount())]


def test_before_the_first_evaluation_the_card_says_what_will_come(card: SampledPredictions):
    card.show_state(RunState())
    assert card.currentIndex() == 0


def test_the_latest_evaluation_is_followed_with_what_was_said_before(card: SampledPredictions):
    first, second = at(10, sample(10, 0.2)), at(20, sample(20, 0.1, "worst", row=9), sample(20, 0.9))
    card.show_state(state_of(first))
    card.show_state(state_of(first, second))
    assert cells(card) == [
        ["Worst", "10", "bad", "good", "", "0.1000"],
        ["Fixed sample", "5", "good", "good", "bad", "0.9000"],
    ]
    assert card.measure.text() == "step 20 · rated by probability of the correct answer"


def test_an_earlier_evaluation_stays_when_a_new_one_comes(card: SampledPredictions):
    many = [at(10, sample(10, 0.2)), at(20, sample(20, 0.9))]
    card.show_state(state_of(*many))
    card.steps.setCurrentIndex(card.steps.findData(10))
    assert cells(card)[0][2] == "bad"
    card.show_state(state_of(*many, at(30, sample(30, 0.95))))
    assert card.steps.currentData() == 10
    assert cells(card)[0][2] == "bad"


def test_a_row_is_shown_in_the_shape_of_its_task(card: SampledPredictions):
    card.show_state(state_of(at(10, sample(10, 0.2))))
    assert isinstance(card.view, LabelView)
    assert card.view.text.plain() == "seen at 10"
    number = events.SampledRow(row=0, kind="drawn", values={"text": "a", "prediction": 2.5, "actual": 3.0}, rating=-0.5)
    state = state_of(at(10, number))
    state.task = "text_regression"
    card.clear()
    card.show_state(state)
    assert isinstance(card.view, NumberView)
    assert cells(card) == [["Fixed sample", "1", "2.5000", "3.0000", "", "0.5000"]]


def test_a_resume_takes_back_what_was_seen_after_its_checkpoint():
    resumed = events.RunResumed(time=99, attempt=2, from_step=15)
    state = state_of(at(10, sample(10, 0.2)), at(20, sample(20, 0.9)), resumed)
    assert list(state.samples) == [10]


def test_of_many_evaluations_the_first_and_the_latest_are_held():
    state = state_of(*(at(step, sample(step, 0.5)) for step in range(1, 201)))
    assert len(state.samples) == KEPT_SAMPLES
    assert min(state.samples) == 1
    assert max(state.samples) == 200
