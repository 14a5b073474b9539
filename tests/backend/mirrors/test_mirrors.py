"""Tests that a run's curves reach each tracker once, whatever dies or does not answer meanwhile."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace

import pytest
from tensorboardX.proto.event_pb2 import Event

from backend import registry
from backend.contract import places
from backend.contract.errors import InputError, RunFailed
from backend.contract.processes import STARTED_BY_AGENT, python_command
from backend.contract.run import events
from backend.contract.run.folder import ProcessRecord, RemoteRun, RunFolder, boot_id, host_id, write_json
from backend.contract.run.job import JobRecord
from backend.contract.run.lock import take_lock
from backend.mirrors import mirror, tensorboard
from backend.mirrors.mirror import RunDescription, TrackerSettings
from backend.mirrors.mlflow import MLflowSettings


def step(number: int, loss: float | None = None) -> events.StepFinished:
    return events.StepFinished(
        time=1_700_000_000 + number, step=number, epoch=number / 2, loss=loss if loss is not None else 1 / number,
        learning_rate=0.1, gradient_norm=None, rows=4, tokens=9, seconds=0.5,
    )  # fmt: skip


def evaluation(number: int, accuracy: float) -> events.EvaluationFinished:
    return events.EvaluationFinished(
        time=1_700_000_000 + number, step=number, epoch=1, metrics={"accuracy": accuracy}, rows=4, seconds=0.1
    )


STARTED = events.RunStarted(time=1_700_000_000, name="tiny", task="text_classification", model="m")
FINISHED = events.RunFinished(time=1_700_000_010, state="finished", step=3)


def record(folder: RunFolder, *happened: events.AnyEvent) -> None:
    with folder.events.open("ab") as file:
        file.write(b"".join(map(events.encode, happened)))


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    folder = RunFolder(tmp_path / "runs" / "tiny")
    folder.path.mkdir(parents=True)
    folder.spec.write_text("version: 1\nname: tiny\ntraining: {seed: 3}\n")
    record(folder, STARTED)
    return folder


class Remembering:
    """A tracker that keeps what it gets after each flush, and fails as often as told."""

    title, description, Settings = "Remembering", "For tests.", TrackerSettings

    def __init__(self, run: RunFolder) -> None:
        self.run = run
        self.points: list[tuple[int, str, float]] = []
        self.opened: list[str] = []
        self.failures = self.failures_to_close = 0
        self.closed = ""
        self.while_closing: list[events.AnyEvent] = []
        """What the run records meanwhile."""

    def check(self, settings: TrackerSettings) -> None: ...

    def open(self, run: RunDescription, settings: TrackerSettings, run_id: str) -> "Remembering":
        self.opened.append(run_id)
        self.id, self._waiting = "7", list[tuple[int, str, float]]()
        return self

    def write(self, step: int, time: float, values: Mapping[str, float]) -> None:
        self._waiting += [(step, name, value) for name, value in values.items()]

    def rewind(self, step: int) -> bool:
        return False

    def flush(self) -> None:
        if self.failures:
            self.failures -= 1
            raise ConnectionError("no route to host\nwith a second line")
        self.points += self._waiting
        self._waiting = []

    def close(self, state: str) -> None:
        if self.failures_to_close:
            self.failures_to_close -= 1
            raise ConnectionError("no route to host")
        self.closed = state
        if self.while_closing:
            record(self.run, *self.while_closing)
            self.while_closing = []

    def losses(self) -> list[tuple[int, float]]:
        return [(number, value) for number, name, value in self.points if name == "train/loss"]


@pytest.fixture
def remembering(run: RunFolder, monkeypatch: pytest.MonkeyPatch) -> Remembering:
    fake = Remembering(run)
    monkeypatch.setattr(registry, "_plugins", lambda kind: {"remembering": None} if kind == "mirror" else {})
    monkeypatch.setattr(registry, "_load", lambda kind, name: (fake, ""))
    monkeypatch.setattr(mirror, "RETRY_SECONDS", (0.0, 0.0))
    mirror.write_trackers({"remembering": TrackerSettings()})
    registry.names.cache_clear()
    return fake


@pytest.fixture(autouse=True)
def _fresh_names() -> Iterator[None]:
    yield
    registry.names.cache_clear()


def test_points_of_a_finished_run_are_sent_once(run: RunFolder, remembering: Remembering) -> None:
    record(run, step(1), evaluation(1, 0.5), step(2), FINISHED)

    mirror.send(run, "remembering")
    mirror.send(run, "remembering")

    assert remembering.losses() == [(1, 1.0), (2, 0.5)]
    assert (1, "validation/accuracy", 0.5) in remembering.points
    assert remembering.opened == [""]


def test_a_later_attempt_continues_in_the_same_place(run: RunFolder, remembering: Remembering) -> None:
    record(run, step(1), step(2), FINISHED)
    mirror.send(run, "remembering")

    record(run, events.RunResumed(time=1, attempt=2, from_step=1), step(2), step(3), FINISHED)
    mirror.send(run, "remembering")

    assert remembering.opened == ["", "7"]
    assert remembering.losses() == [(1, 1.0), (2, 0.5), (3, 1 / 3)]  # step 2 is there, and no tracker could forget it
    assert remembering.closed == "finished"


def test_a_tracker_that_fails_gets_everything_later(run: RunFolder, remembering: Remembering) -> None:
    record(run, step(1), step(2), FINISHED)
    remembering.failures = 3
    said: list[str] = []

    mirror.send(run, "remembering", said.append)

    assert remembering.losses() == [(1, 1.0), (2, 0.5)]
    assert said == ["Remembering: no route to host; trying again"]
    assert mirror.sending_state(run, "remembering").problem == ""


def test_patience_starts_when_the_run_has_ended(run: RunFolder, remembering: Remembering, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    lives = iter(["alive", "alive"])
    monkeypatch.setattr(RunFolder, "life", lambda _: next(lives, "ended"))
    monkeypatch.setattr(mirror, "PATIENCE_SECONDS", 0.0)
    record(run, step(1), FINISHED)
    remembering.failures = 3

    mirror.send(run, "remembering")

    assert remembering.losses() == [(1, 1.0)]
    remembering.failures = 9
    record(run, step(2))
    with pytest.raises(RunFailed, match="Remembering does not answer"):
        mirror.send(run, "remembering")


def test_an_attempt_that_starts_while_the_last_one_is_closed_is_sent(run: RunFolder, remembering: Remembering) -> None:
    record(run, step(1), FINISHED)
    remembering.while_closing = [events.RunResumed(time=1, attempt=2, from_step=1), step(2), FINISHED]

    mirror.send(run, "remembering")

    assert remembering.losses() == [(1, 1.0), (2, 0.5)]
    assert remembering.opened == ["", "7"]


def test_a_run_that_cannot_be_closed_is_closed_later(run: RunFolder, remembering: Remembering) -> None:
    record(run, step(1), FINISHED)
    remembering.failures_to_close = 2

    mirror.send(run, "remembering")

    assert (remembering.closed, remembering.losses()) == ("finished", [(1, 1.0)])
    assert mirror.sending_state(run, "remembering").problem == ""


def test_a_new_run_in_a_deleted_ones_folder_is_another_one(run: RunFolder, remembering: Remembering) -> None:
    record(run, step(1), step(2), FINISHED)
    mirror.send(run, "remembering")
    run.events.unlink()

    record(run, events.RunStarted(time=5, name="other", task="t", model="m"), step(1), step(2, 9.0), FINISHED)
    mirror.send(run, "remembering")

    assert remembering.opened == ["", ""]
    assert remembering.losses()[2:] == [(1, 1.0), (2, 9.0)]


def test_settings_and_final_scores_with_intervals(run: RunFolder, remembering: Remembering) -> None:
    written = events.PredictionsWritten(
        time=1, split="validation", csv="", parquet="", rows=4, seconds=1, metrics={"accuracy": 0.8},
        intervals={"accuracy": (0.7, 0.9)},
    )  # fmt: skip
    record(run, step(3), written, FINISHED)

    mirror.send(run, "remembering")

    final = {name: (number, value) for number, name, value in remembering.points if name.startswith("final/")}
    assert final == {
        "final/validation/accuracy": (3, 0.8),
        "final/validation/accuracy_low": (3, 0.7),
        "final/validation/accuracy_high": (3, 0.9),
    }


def points_of(folder: Path) -> dict[str, dict[int, float]]:
    """Tag → step → value of all event files, as TensorBoard reads them: what comes after a session's start replaces."""
    found: dict[str, dict[int, float]] = {}
    for path in sorted(folder.iterdir()):
        for content in tensorboard_records(path):
            event = Event.FromString(content)
            if event.HasField("session_log"):
                found = {tag: {at: v for at, v in many.items() if at < event.step} for tag, many in found.items()}
            for value in event.summary.value:
                found.setdefault(value.tag, {})[event.step] = value.simple_value
    return found


def tensorboard_records(path: Path) -> Iterator[bytes]:
    data = path.read_bytes()
    while len(data) >= 12:
        length = int.from_bytes(data[:8], "little")
        if len(data) < 16 + length:
            return
        yield data[12 : 12 + length]
        data = data[16 + length :]


@pytest.fixture
def board(tmp_path: Path) -> Path:
    mirror.write_trackers({"tensorboard": tensorboard.TensorBoardSettings(folder=str(tmp_path / "board"))})
    return tmp_path / "board" / "tiny"


def test_tensorboard_forgets_what_a_resume_made_void(run: RunFolder, board: Path) -> None:
    record(run, step(1), step(2), step(3, 0.8))
    record(run, events.RunResumed(time=1, attempt=2, from_step=1), step(2, 0.25), FINISHED)

    mirror.send(run, "tensorboard")

    assert points_of(board)["train/loss"] == {1: 1.0, 2: 0.25}


def test_two_runs_of_one_name_have_a_folder_each(run: RunFolder, board: Path, tmp_path: Path) -> None:
    other = RunFolder(tmp_path / "elsewhere" / "tiny")
    other.path.mkdir(parents=True)
    record(other, STARTED, step(1, 5.0))
    record(run, step(1))

    mirror.send(run, "tensorboard")
    mirror.send(other, "tensorboard")

    assert points_of(board)["train/loss"] == {1: 1.0}
    assert points_of(board.with_name("tiny-2"))["train/loss"] == {1: 5.0}


def test_a_killed_sender_loses_and_doubles_nothing(run: RunFolder, board: Path) -> None:
    """A real process is killed while the run is in progress; the next one goes on where it was."""
    lock = take_lock(run.path / "run.lock")
    record(run, step(1), step(2))
    command = python_command("backend", "trackers", "send", str(run.path), "tensorboard")
    first = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    wait_for(lambda: 2 in points_of(board).get("train/loss", {}) if board.is_dir() else False)
    wait_for(lambda: mirror.sending_state(run, "tensorboard").offset == run.events.stat().st_size)
    os.kill(first.pid, signal.SIGKILL)
    first.wait()

    record(run, step(3), FINISHED)
    os.close(lock)
    mirror.send(run, "tensorboard")

    assert points_of(board)["train/loss"] == {1: 1.0, 2: 0.5, 3: pytest.approx(1 / 3)}


def wait_for(condition) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_two_senders_of_one_run_are_refused(run: RunFolder, board: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from filelock import FileLock

    monkeypatch.setattr(mirror, "LOCK_SECONDS", 0.0)
    with (
        FileLock(mirror._state_path(run, "tensorboard").with_suffix(".lock")),
        pytest.raises(InputError, match="tiny is already being sent to TensorBoard"),
    ):
        mirror.send(run, "tensorboard")


def test_a_run_without_events_is_refused(tmp_path: Path, board: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="has recorded nothing yet"):
        mirror.send(RunFolder(tmp_path / "empty"), "tensorboard")


@pytest.mark.parametrize(
    ("name", "settings", "words"),
    [
        ("nope", {}, "there is no mirror 'nope'; choose one of"),
        ("mlflow", {"adress": "x"}, "mlflow.adress: no such setting; did you mean address?"),
        ("mlflow", {"address": "http://ada:secret@host"}, "address: leave name and password out"),
        ("wandb", {"mode": "sometimes"}, "wandb.mode"),
        ("tensorboard", {"folder": "logs"}, "folder: write the whole path"),
        ("mlflow", ["x"], "mlflow: write its settings as key: value"),
    ],
)
def test_settings_that_cannot_work_are_refused(name: str, settings: object, words: str) -> None:
    with pytest.raises(InputError) as refused:
        mirror.check_settings(name, settings)
    assert words in str(refused.value)
    assert "secret" not in str(refused.value)


def test_offline_mode_reaches_no_other_computer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "is_offline", lambda: True)
    with pytest.raises(InputError, match="offline mode is on"):
        mirror.check_settings("mlflow", {"address": "http://mlflow.example:5000"})
    mirror.write_trackers({"mlflow": MLflowSettings(address="http://mlflow.example:5000")})
    assert mirror.read_trackers()  # which stay set up, with the others
    assert mirror.check_settings("mlflow", {"address": "http://127.0.0.1:5000"})


def test_a_missing_library_is_named(run: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    record(run, step(1))
    monkeypatch.setitem(sys.modules, "mlflow", None)
    mirror.write_trackers({"mlflow": mirror.check_settings("mlflow", {})})
    with pytest.raises(InputError, match=r"MLflow needs a package .*pip install 'burnish\[trackers\]'"):
        mirror.send(run, "mlflow")


def test_only_what_gets_every_run_is_started(run: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str]] = []
    monkeypatch.setattr(mirror.subprocess, "Popen", lambda command, **_: started.append(command) or SimpleNamespace())
    mirror.trackers_file().unlink(missing_ok=True)  # of other tests
    assert mirror.start_sending(run) == []
    mirror.write_trackers({
        "tensorboard": tensorboard.TensorBoardSettings(every_run=True), "mlflow": mirror.check_settings("mlflow", {}),
    })  # fmt: skip

    mirror.start_sending(run)

    assert [command[-4:] for command in started] == [["trackers", "send", str(run.path), "tensorboard"]]
    run.write_process_record(ProcessRecord(1, host_id(), boot_id(), 1, 1, 0.0))
    mirror.start_sending(run.host(1))  # the first host sends
    monkeypatch.setenv(STARTED_BY_AGENT, "1")
    mirror.start_sending(run)  # the copy of the run sends
    monkeypatch.delenv(STARTED_BY_AGENT)
    run.write_job_record(JobRecord("12"))
    mirror.start_sending(run)  # so it does for a job
    assert len(started) == 1
    write_json(run.remote, asdict(RemoteRun("cluster", "/runs/x")))
    mirror.start_sending(run)
    assert len(started) == 2
