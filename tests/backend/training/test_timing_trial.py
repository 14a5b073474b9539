"""A short run on some of its rows tells how long the whole one takes, and keeps nothing but that."""

import json
import os
from pathlib import Path

import pytest

from backend.contract import places
from backend.contract.errors import InputError, RunFailed
from backend.contract.run.events import AnyEvent, ProgramCompiled, RunFinished, StageStarted, StepFinished
from backend.contract.run.fixes import RunFix
from backend.contract.run.folder import RunFolder
from backend.hardware import devices
from backend.preflight.resolve import read_run
from backend.training import loop, timing_trial
from backend.training.event_log import read_events
from backend.training.failures.failure import FailureContext, failure_event
from backend.training.requests import Requests
from backend.training.timing_trial import TrialProgress, as_error
from tests.backend.training.test_evaluations import run_folder


class StopAfterOneSecond(Requests):
    """Asks for the end once the steps have told enough to be remembered."""

    since = 0.0

    def interrupt(self) -> None:
        """Nothing is asked for during the stages."""

    def pending(self) -> str | None:
        """Called once after every step."""
        steps = [event for event in read_events(self._folder.events) if isinstance(event, StepFinished)]
        return "stop" if sum(event.seconds for event in steps[1:]) > loop.WORTH_REMEMBERING_SECONDS else None


def test_each_part_is_measured_and_only_that_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BURNISH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(loop, "Requests", StopAfterOneSecond)
    (tmp_path / "run").mkdir()
    folder = run_folder(tmp_path / "run", training={"max_steps": 10**9, "checkpoint_every": "never"})

    assert loop.run(folder, is_trial=True) == 0

    events = read_events(folder.events)
    ended = events[-1]
    assert isinstance(ended, RunFinished)
    assert ended.state == "stopped"
    assert not (tmp_path / "cache" / "features").exists()
    (found,) = json.loads((tmp_path / "cache" / "measurements.json").read_text()).values()
    steps = [event.seconds for event in events if isinstance(event, StepFinished)][1:]
    assert found[0]["steps"] == len(steps)
    assert found[0]["step_seconds"] == pytest.approx(sum(steps) / len(steps))
    assert found[0]["memory_mb"] > 100
    timed = {name for name, value in found[0].items() if name.endswith("_seconds") and value}
    assert timed >= {
        "step_seconds",
        "loading_seconds",
        "evaluation_row_seconds",
        "checkpoint_seconds",
        "saving_seconds",
    }


def step(number: int, time: float) -> StepFinished:
    return StepFinished(
        time=time,
        step=number,
        epoch=0.0,
        loss=1.0,
        learning_rate=0.1,
        gradient_norm=1.0,
        rows=8,
        tokens=80,
        seconds=1.0,
    )


@pytest.mark.parametrize(
    ("told", "is_enough"),
    [
        ([step(3, 9.0)], False),
        ([step(4, 4.0)], False),
        ([step(4, 5.5)], True),
        ([ProgramCompiled(time=2.0, count=1, seconds=2.0), step(4, 5.5)], False),
        ([step(1, 40.0)], False),
        ([step(2, 40.0)], True),
    ],
)
def test_it_ends_when_enough_steps_were_timed(told: list[AnyEvent], is_enough: bool) -> None:
    progress = TrialProgress()
    for event in [StageStarted(time=0.25, stage="training"), *told]:
        progress.apply(event)
    assert progress.has_trained_enough() == is_enough


class StoppedByPersonError(Exception):
    """Raised by a report."""


def test_a_folder_left_by_a_killed_process_of_the_same_number_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BURNISH_CACHE", str(tmp_path / "cache"))
    places.scratch_folder(os.getpid()).mkdir(parents=True)
    (places.scratch_folder(os.getpid()) / "spec.yaml").write_text("left over")
    (tmp_path / "run").mkdir()
    spec = read_run(run_folder(tmp_path / "run"))

    def stop(_: object) -> None:
        raise StoppedByPersonError

    with pytest.raises(StoppedByPersonError):
        timing_trial.measure(spec, devices.list_devices("torch"), stop)
    assert not (tmp_path / "cache" / "scratch").exists()


def test_invalid_input_keeps_its_setting_and_line(tmp_path: Path) -> None:
    given = InputError("no such column", "data.columns", at_line=3)
    found = as_error(failure_event(given, 0, FailureContext(RunFolder(tmp_path))))
    assert isinstance(found, InputError)
    assert (str(found), found.field, found.line) == ("no such column", "data.columns", 3)


@pytest.mark.parametrize(
    ("code", "mend", "hint"),
    [
        ("disk_full", RunFix({}, resume=True), ""),
        ("unknown", None, ""),
        ("out_of_range", RunFix({"task.max_length": 8}), "lower it"),
    ],
)
def test_only_a_hint_that_helps_a_trial_is_kept(code: str, mend: RunFix | None, hint: str) -> None:
    end = RunFinished(time=1.0, state="failed", step=0, message="why", code=code, hint="lower it", mend=mend)
    found = as_error(end)
    assert isinstance(found, RunFailed)
    assert (found.code, found.hint) == (code, hint)
