"""Why something cannot be done with a run now."""

from pathlib import Path

import pytest

from app.core.runs.run_library import RunSummary
from app.core.runs.run_obstacles import MAX_COMPARED, button_obstacles, selection_obstacles
from app.core.runs.run_status import RunResults, RunStatus


def run(state: str, **more) -> RunSummary:
    return RunSummary("a", Path("/runs/a"), state, **more)


def open_buttons(obstacles: dict[str, str]) -> set[str]:
    return {key for key, obstacle in obstacles.items() if not obstacle}


def test_without_a_selection_every_action_asks_for_one():
    assert all(words.startswith("Select") for words in selection_obstacles([]).values())


@pytest.mark.parametrize(
    ("selected", "key", "words"),
    [
        (run("running"), "resume", "still in progress"),
        (run("queued"), "resume", "still queued"),
        (run("running"), "start_now", "not queued"),
        (run("finished"), "resume", "finished"),
        (run("failed", can_resume=False), "resume", "same way"),
        (run("lost"), "stop", "already ended"),
        (run("running"), "predictions", "no predictions yet"),
        (run("running"), "delete", "Stop the run first"),
    ],
)
def test_the_reason_is_that_of_the_selected_run(selected: RunSummary, key: str, words: str):
    assert words in selection_obstacles([selected])[key]


def test_several_runs_can_be_compared_and_deleted_and_nothing_else():
    several = [run("finished", has_predictions=True)] * 2
    assert open_buttons(selection_obstacles(several)) == {"compare", "delete"}
    assert str(MAX_COMPARED) in selection_obstacles(several * MAX_COMPARED)["compare"]


@pytest.mark.parametrize(
    ("state", "requests", "usable"),
    [
        ("queued", [], {"stop", "start_now"}),
        ("queued", ["stop"], set()),
        ("running", [], {"checkpoint", "pause", "stop"}),
        ("running", ["checkpoint"], {"pause", "stop"}),
        ("running", ["stop"], set()),
        ("paused", [], {"resume"}),
        ("finished", [], set()),
    ],
)
def test_what_can_be_asked_of_a_run_follows_from_its_state(state: str, requests: list[str], usable: set[str]):
    assert open_buttons(button_obstacles(RunStatus(state), RunResults(), requests)) == usable


def test_a_result_has_no_obstacle_once_it_is_there():
    obstacles = button_obstacles(RunStatus("finished"), RunResults(True, True, True), ())
    assert {"try", "predictions", "export"} <= open_buttons(obstacles)
