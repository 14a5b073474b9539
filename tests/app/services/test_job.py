"""Starting, refusing and stopping real runs from the window's services."""

import os
import signal
import tempfile
from pathlib import Path

import pytest
from PySide6.QtCore import QProcess

from app.core.draft.draft import read_draft
from app.services import job
from app.services.job import Jobs
from app.services.run_watcher import RunWatcher
from backend.contract.resources import resource
from backend.contract.run.folder import RunFolder
from backend.contract.run.lock import hold_lock

START_MS = 120_000


@pytest.fixture
def jobs(qtbot, tmp_path: Path):
    made = Jobs(lambda: {"BURNISH_RUNS": str(tmp_path / "runs"), "BURNISH_CACHE": str(tmp_path / "cache")})
    yield made
    made.close()


def tiny_spec() -> dict:
    """The demo, ended after a few steps."""
    draft = read_draft(resource("demo", "sentiment.yaml"))
    draft.set("data.max_rows", 64)
    draft.set("training.max_steps", 4)
    draft.set("hardware.max_restarts", 0)
    draft.set("evaluation", {"every": "never"})
    return draft.values()


def test_a_bad_spec_is_refused_in_one_sentence_and_leaves_nothing(qtbot, jobs, tmp_path: Path):
    spec = tiny_spec()
    spec["training"]["learning_rate"] = -1
    said: list[str] = []
    jobs.start(spec, said.append, said.append)
    qtbot.waitUntil(lambda: bool(said), timeout=START_MS)
    assert "training.learning_rate" in said[0]
    assert "\n" not in said[0]
    assert not list((tmp_path / "runs").glob("*"))


def test_resuming_what_is_no_run_is_refused(qtbot, jobs, tmp_path: Path):
    said: list[str] = []
    jobs.resume(tmp_path / "no-run", said.append, said.append)
    qtbot.waitUntil(lambda: bool(said), timeout=START_MS)
    assert "no-run" in said[0]


def test_asking_a_run_that_is_gone_says_so(jobs, tmp_path: Path):
    assert "Couldn't stop the run" in jobs.request(tmp_path / "gone", "stop")


@pytest.fixture
def other(tmp_path: Path) -> RunFolder:
    """The folder of a run that goes on while its lock is held."""
    made = RunFolder(tmp_path / "runs" / "other")
    made.path.mkdir(parents=True)
    made.spec.write_text("name: other\n")
    return made


def test_a_queued_run_waits_until_it_is_told_to_start_now_is_watched_and_ends(qtbot, jobs, other: RunFolder):
    started: list[str] = []
    refused: list[str] = []
    with hold_lock(other.lock):
        jobs.start(tiny_spec(), started.append, refused.append, queue=True)
        qtbot.waitUntil(lambda: bool(started or refused), timeout=START_MS)
        assert refused == []
        assert RunFolder(started[0]).exists()
        assert jobs.waits(started[0])
        watcher = RunWatcher(started[0])
        qtbot.waitUntil(lambda: watcher.outcome.state == "queued")
        assert jobs.start_now(started[0]) == ""
        os.kill(engine_of(qtbot, RunFolder(started[0])), signal.SIGKILL)  # the window's own test trains to the end
        qtbot.waitUntil(lambda: watcher.outcome.state in ("finished", "failed", "lost"), timeout=START_MS)
    assert watcher.outcome.state == "failed"
    assert "killed (SIGKILL)" in watcher.outcome.message
    watcher.stop()


def engine_of(qtbot, run: RunFolder) -> int:
    """The process that trains, once there is one."""
    pids: list[int] = []

    def is_there() -> bool:
        record = run.process_record()
        pids.extend([record.engine_pid] if record and record.engine_pid else [])
        return bool(pids)

    qtbot.waitUntil(is_there, timeout=START_MS)
    return pids[0]


def test_starting_now_what_is_gone_or_has_begun_changes_nothing(jobs, tmp_path: Path):
    assert jobs.start_now(tmp_path / "gone") == ""
    (tmp_path / "queued").mkdir()
    assert "Couldn't start the run" in jobs.start_now(tmp_path)


def test_closing_while_a_run_is_being_started_leaves_no_process_and_no_file(qtbot, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(job, "CLOSE_MS", 1)
    jobs = Jobs(lambda: {"BURNISH_RUNS": str(tmp_path / "runs"), "BURNISH_CACHE": str(tmp_path / "cache")})
    said: list[str] = []
    jobs.start(tiny_spec(), said.append, said.append)
    [process] = jobs.findChildren(QProcess)
    assert list(tmp_path.glob("burnish-*.yaml"))
    jobs.close()
    assert process.state() == QProcess.ProcessState.NotRunning
    assert (jobs.busy, said, list(tmp_path.glob("burnish-*.yaml"))) == (False, [], [])


def test_a_run_that_is_just_being_started_is_named_before_the_window_closes(qtbot, jobs):
    said: list[str] = []
    assert jobs.unfinished() == ""
    jobs.start({**tiny_spec(), "name": "slow-one", "task": {"type": "nonsense"}}, said.append, said.append)
    assert jobs.unfinished().startswith("“slow-one” is starting.")
    qtbot.waitUntil(lambda: bool(said), timeout=START_MS)
    assert jobs.unfinished() == ""


def test_a_start_survives_the_window_however_long_it_takes(jobs, other: RunFolder, monkeypatch):
    monkeypatch.setattr(job, "SLICE_MS", 1)  # so that each start takes many slices
    with hold_lock(other.lock):
        jobs.start(tiny_spec(), lambda _: None, lambda _: None, queue=True)
        jobs.close()
        [run] = {spec.parent for spec in other.path.parent.glob("*/spec.yaml")} - {other.path}
        assert RunFolder(run).process_record() is not None
        RunFolder(run).request("stop")
