"""A trial that pauses at a rung and is promoted later is the run that was never paused."""

from pathlib import Path

import pytest

from backend.contract.run.events import EvaluationFinished, RunFinished, StepFinished
from backend.contract.run.folder import RunFolder
from backend.training import loop
from backend.training.event_log import read_events
from tests.backend.training.test_evaluations import run_folder

STEPS = 12


def folder_at(path: Path) -> RunFolder:
    path.mkdir()
    return run_folder(
        path,
        training={"max_steps": STEPS, "schedule": "cosine", "checkpoint_every": "never"},
        evaluation={"every": 2, "best_metric": "accuracy"},
    )


def curve(folder: RunFolder) -> dict[int, tuple[float | None, float]]:
    found = read_events(folder.events)
    return {event.step: (event.loss, event.learning_rate) for event in found if isinstance(event, StepFinished)}


def end(folder: RunFolder) -> RunFinished:
    return [event for event in read_events(folder.events) if isinstance(event, RunFinished)][-1]


@pytest.fixture(scope="module")
def through(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A run that was trained through."""
    folder = folder_at(tmp_path_factory.mktemp("through") / "run")
    assert loop.run(folder) == 0
    return folder


def test_paused_and_promoted_trial_equals_one_trained_through(through: RunFolder, tmp_path: Path) -> None:
    trial = folder_at(tmp_path / "trial")
    steps = []
    for fraction in (1 / 9, 1 / 3, None):
        trial.set_pause(fraction)
        assert loop.run(trial) == 0
        steps.append((end(trial).state, end(trial).step))
    assert steps == [("paused", 2), ("paused", 4), ("finished", STEPS)]
    assert curve(trial) == curve(through)
    assert end(trial).metrics == end(through).metrics
    weights = [(folder.model / "model.safetensors").read_bytes() for folder in (trial, through)]
    assert weights[0] == weights[1]


def test_it_pauses_where_it_was_evaluated(tmp_path: Path) -> None:
    trial = folder_at(tmp_path / "trial")
    trial.set_pause(0.2)  # step 2.4
    assert loop.run(trial) == 0
    evaluated = [event.step for event in read_events(trial.events) if isinstance(event, EvaluationFinished)]
    assert evaluated[-1] == end(trial).step == 4
    assert trial.checkpoint_steps()[-1] == 4


def test_one_killed_before_it_could_say_that_it_paused_trains_no_step_more(tmp_path: Path) -> None:
    trial = folder_at(tmp_path / "trial")
    trial.set_pause(1 / 3)
    assert loop.run(trial) == 0
    lines = trial.events.read_bytes().splitlines(keepends=True)
    trial.events.write_bytes(b"".join(lines[:-1]))  # without RunFinished
    assert loop.run(trial) == 0
    assert (end(trial).state, end(trial).step) == ("paused", 4)
    assert max(curve(trial)) == 4


def test_file_that_is_none_pauses_nothing(tmp_path: Path) -> None:
    trial = folder_at(tmp_path / "trial")
    for content in (b"", b"{}", b"[1]", b'{"fraction": "many"}'):
        trial.pause_after.write_bytes(content)
        assert trial.pause_fraction() is None
