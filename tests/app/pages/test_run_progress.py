"""The tiles of the Run page, from the state of a run alone."""

import time

import pytest

from app.core.runs.run_state import RunState
from app.core.runs.run_status import RunStatus
from app.pages.run.progress import ProgressTiles
from backend.contract.run import events


@pytest.fixture
def tiles(qtbot, styled) -> ProgressTiles:
    made = ProgressTiles()
    qtbot.addWidget(made)
    made.resize(1000, made.sizeHint().height())
    made.clear()
    made.show()
    return made


def started() -> RunState:
    state = RunState()
    state.apply(events.RunStarted(time=1, name="n", task="t", model="m", device="cpu"))
    return state


def measure(state: RunState, seconds_ago: float) -> None:
    state.apply(events.MemoryMeasured(time=time.time() - seconds_ago, step=1, memory_mb=412))


def test_a_memory_reading_says_its_age_once_it_is_old(tiles: ProgressTiles):
    state, tile = started(), tiles.tiles["memory"]
    measure(state, 200)
    tiles.show_state(state, RunStatus("running"))
    assert tile.value() == "412 MB"
    assert tile.accessibleDescription() == "3 minutes ago · cpu"
    measure(state, 0)
    tiles.show_state(state, RunStatus("running"))
    assert tile.accessibleDescription() == "cpu"
