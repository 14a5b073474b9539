"""Where steps stand on the axes of a plot."""

from array import array

import pytest

from app.core.runs.run_state import RunState
from app.core.runs.series import Resume, breaks
from backend.contract.run import events


def step(number: int, at: float, tokens: int = 100) -> events.StepFinished:
    return events.StepFinished(
        time=at, step=number, epoch=number / 10, loss=1.0, learning_rate=1e-4, gradient_norm=None, rows=8,
        tokens=tokens, seconds=1.0,
    )  # fmt: skip


@pytest.fixture
def resumed() -> RunState:
    """Begun at 1000 s, 4 steps by 1014 s, down for 85 s, continued after step 2."""
    state = RunState()
    state.apply(events.RunStarted(time=1000, name="a", task="t", model="m"))
    state.apply_all(step(number, 1010.0 + number, tokens=100 * number) for number in (1, 2, 3, 4))
    state.apply(events.RunResumed(time=1099, attempt=2, from_step=2))
    state.apply_all([step(3, 1110), step(4, 1111)])
    return state


def test_steps_have_an_epoch_their_tokens_and_a_time(resumed: RunState):
    steps = array("d", [1, 2, 3, 4])
    assert list(resumed.clock.at("step", steps)) == [1, 2, 3, 4]
    assert list(resumed.clock.at("epoch", steps)) == pytest.approx([0.1, 0.2, 0.3, 0.4])
    assert list(resumed.clock.at("tokens", steps)) == [100, 300, 400, 500]
    assert list(resumed.clock.at("time", steps)) == [11, 12, 110, 111]


def test_what_lies_between_steps_or_before_them_has_its_place(resumed: RunState):
    places = resumed.clock.at("tokens", array("d", [0, 1, 2.5, 9]))
    assert list(places) == [0, 100, 350, 500]
    assert list(resumed.clock.at("time", array("d", [0]))) == [10]


def test_a_place_on_any_axis_leads_back_to_its_step(resumed: RunState):
    for axis in ("step", "epoch", "tokens", "time"):
        places = resumed.clock.at(axis, array("d", [1, 2, 3, 4]))
        assert [resumed.clock.step_at(axis, place) for place in places] == [1, 2, 3, 4]
    assert resumed.clock.step_at("time", 100) == 3
    assert RunState().clock.step_at("time", 100) == 0


def test_before_the_first_step_everything_is_at_the_beginning():
    assert list(RunState().clock.at("time", array("d", [0]))) == [0]


def test_a_clock_that_was_set_back_does_not_turn_a_curve_around():
    state = RunState()
    state.apply(events.RunStarted(time=1000, name="a", task="t", model="m"))
    state.apply_all([step(1, 1010), step(2, 900), step(3, 1012)])
    assert list(state.clock.at("time", array("d", [1, 2, 3]))) == [10, 10, 12]


def test_a_line_is_broken_where_the_run_was_down_and_where_steps_were_lost(resumed: RunState):
    assert resumed.resumes == [Resume(2, 2, lost_steps=2, down_seconds=85)]
    assert breaks("time", resumed.resumes) == [2]
    assert breaks("step", resumed.resumes) == [2]
    paused = [Resume(2, 7, lost_steps=0, down_seconds=60)]
    assert breaks("time", paused) == [7]
    assert breaks("step", paused) == []


def test_a_resume_that_a_later_one_made_void_breaks_nothing():
    assert breaks("time", [Resume(2, 500, 3, 9), Resume(3, 200, 400, 9)]) == [200]
