"""What can be known of a run from its folder alone, with real processes holding its lock."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from backend.contract.run.folder import (
    GROWTH_SECONDS,
    ExitRecord,
    ProcessRecord,
    RunFolder,
    boot_id,
    find_run,
    host_id,
    new_run_folder,
    run_folders,
    slug,
    write_json,
)
from backend.contract.run.lock import RunLocked, hold_lock, is_locked, take_lock

NOON = datetime(2026, 11, 21, 12, 0)
HOLDER = (
    "import sys; from pathlib import Path; from backend.contract.run.lock import take_lock\n"
    "take_lock(Path(sys.argv[1])); print('held', flush=True); sys.stdin.read()"
)


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    """A run that nobody has started."""
    folder = new_run_folder(tmp_path, "sentiment", NOON)
    folder.spec.write_text("version: 1\n")
    return folder


def record(attempt: int = 1) -> ProcessRecord:
    return ProcessRecord(attempt, host_id(), boot_id(), supervisor_pid=1, engine_pid=2, started=time.time())


@contextmanager
def holder(lock: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(lock)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_folder_is_named_for_its_minute_and_its_run(tmp_path: Path):
    assert new_run_folder(tmp_path / "runs", "My run!", NOON).name == "2026-11-21-1200-My-run"


def test_second_run_of_a_minute_gets_a_two(tmp_path: Path):
    names = [new_run_folder(tmp_path, "rte", NOON).name for _ in range(3)]
    assert names == ["2026-11-21-1200-rte", "2026-11-21-1200-rte-2", "2026-11-21-1200-rte-3"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("../../etc", "etc"), ("a/b\\c:d", "a-b-c-d"), ("", "run"), ("..", "run"), ("සිංහල", "සිංහල"), ("x" * 99, "x" * 60)],
)
def test_any_name_makes_a_safe_folder_name(name: str, expected: str):
    assert slug(name) == expected


def test_checkpoints_and_predictions_have_their_names(run: RunFolder):
    assert run.checkpoint(500).relative_to(run.path) == Path("checkpoints/step-000500")
    assert run.predictions().name == "predictions.csv"
    assert run.predictions("test", "parquet").name == "predictions_test.parquet"


def test_runs_are_listed_newest_first_and_only_if_they_are_runs(tmp_path: Path, run: RunFolder):
    later = new_run_folder(tmp_path, "later", datetime(2026, 11, 22))
    later.spec.touch()
    (tmp_path / "2027-holiday-photos").mkdir()
    assert [folder.name for folder in run_folders(tmp_path)] == [later.name, run.name]
    assert run_folders(tmp_path / "gone") == []


def test_run_is_found_by_name_or_by_path(tmp_path: Path, run: RunFolder, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(run.path)
    for name in (run.name, str(run.path), "."):
        found = find_run(name, tmp_path)
        assert found is not None
        assert found.path.resolve() == run.path
    assert find_run("another", tmp_path) is None


def test_lock_is_refused_while_another_process_holds_it(run: RunFolder):
    with holder(run.lock):
        assert is_locked(run.lock)
        with pytest.raises(RunLocked):
            take_lock(run.lock)


def test_lock_is_free_when_its_holder_is_killed(run: RunFolder):
    with holder(run.lock) as process:
        process.kill()
        process.wait()
        assert not is_locked(run.lock)
        with hold_lock(run.lock):
            assert is_locked(run.lock)
    assert not is_locked(run.lock)


def test_looking_at_the_lock_makes_no_file(run: RunFolder):
    assert not is_locked(run.lock)
    assert not run.lock.exists()


def test_start_outwaits_someone_who_looks(run: RunFolder):
    """Eager lookers in another process never make a start fail."""
    run.lock.touch()
    look = f"from backend.contract.run.lock import is_locked\nfrom pathlib import Path\nprint('on', flush=True)\nwhile True: is_locked(Path({str(run.lock)!r}))"
    with subprocess.Popen([sys.executable, "-c", look], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            for _ in range(200):
                os.close(take_lock(run.lock))
        finally:
            process.kill()


def test_nobody_has_started_a_new_run(run: RunFolder):
    assert run.life() == "new"
    assert run.next_attempt() == 1


def test_run_is_alive_while_its_lock_is_held(run: RunFolder):
    with holder(run.lock):
        assert run.life() == "alive"
        run.write_process_record(record())
        assert run.life() == "alive"


def test_run_has_ended_when_the_last_attempt_has_an_exit(run: RunFolder):
    run.write_process_record(record())
    run.write_exit_record(ExitRecord(attempt=1, returncode=0, ended=time.time()))
    assert run.life() == "ended"
    assert run.next_attempt() == 2


def test_run_that_ends_while_it_is_looked_at_has_ended(run: RunFolder, monkeypatch: pytest.MonkeyPatch):
    run.write_process_record(record())

    def ends_now(lock: Path) -> bool:
        run.write_exit_record(ExitRecord(attempt=1, returncode=0, ended=time.time()))
        return False

    monkeypatch.setattr("backend.contract.run.folder.is_locked", ends_now)
    assert run.life() == "ended"


def test_exit_of_an_earlier_attempt_says_nothing(run: RunFolder):
    run.write_exit_record(ExitRecord(attempt=1, returncode=0, ended=time.time()))
    run.write_process_record(record(attempt=2))
    assert run.exit_record() is None
    assert run.life() == "lost"


def test_run_whose_supervisor_was_killed_is_lost(run: RunFolder):
    run.write_process_record(record())
    with holder(run.lock) as process:
        process.kill()
        process.wait()
        assert run.life() == "lost"


@pytest.mark.parametrize("where", [{"host": "elsewhere"}, {"boot": "another"}])
def test_run_of_another_host_or_boot_is_lost_when_it_has_stopped_growing(run: RunFolder, where: dict[str, str]):
    run.write_process_record(replace(record(), **where))
    run.events.touch()
    assert run.life(now=time.time() + GROWTH_SECONDS / 2) == "alive"
    assert run.life(now=time.time() + GROWTH_SECONDS * 2) == "lost"


def test_run_copied_from_another_host_without_events_is_lost(run: RunFolder):
    run.write_process_record(replace(record(), host="elsewhere"))
    assert run.life() == "lost"


def test_most_urgent_request_comes_first(run: RunFolder):
    run.request("checkpoint")
    run.request("stop")
    assert run.open_request() == "stop"
    run.clear_request("stop")
    assert run.open_request() == "checkpoint"
    run.clear_requests()
    assert run.open_request() is None


def test_damaged_record_is_no_record(run: RunFolder):
    run.process.write_text('{"attempt": 1, "ho')
    assert run.process_record() is None
    run.process.write_text("[]")
    assert run.process_record() is None


def test_what_stands_in_a_record_is_of_its_kind(run: RunFolder):
    run.write_process_record(record())
    ended = {"attempt": 1, "returncode": 1, "ended": 5, "message": {"a": 1}}
    run.exit.write_text(json.dumps(ended))
    found = run.exit_record()
    assert found is not None
    assert isinstance(found.message, str)
    for wrong in ({"ended": "x"}, {"returncode": [1]}, {"attempt": float("inf")}):
        run.exit.write_text(json.dumps(ended | wrong))
        assert run.exit_record() is None


def test_record_of_a_newer_version_keeps_what_is_known(run: RunFolder):
    run.write_process_record(record())
    values = json.loads(run.process.read_text())
    run.process.write_text(json.dumps({**values, "mood": "good"}))
    assert run.process_record() is not None


def test_reader_sees_the_old_record_or_the_new_one(tmp_path: Path):
    """Written over and over by one process, read by another: never half."""
    path = tmp_path / "record.json"
    write_json(path, {"values": [0] * 2000})
    write = (
        "import sys; from pathlib import Path; from backend.contract.run.folder import write_json\n"
        "for n in range(100): write_json(Path(sys.argv[1]), {'values': [n] * 2000})"
    )
    with subprocess.Popen([sys.executable, "-c", write, str(path)]) as process:
        while process.poll() is None:
            values = json.loads(path.read_text())["values"]
            assert len(values) == 2000
            assert len(set(values)) == 1
    assert json.loads(path.read_text())["values"][0] == 99
    assert [file.name for file in tmp_path.iterdir()] == ["record.json"]


def test_a_waiting_file_that_cannot_be_read_waits_longest(run: RunFolder) -> None:
    assert run.queued_since() is None
    run.queued.touch()
    assert run.queued_since() == 0.0
    run.join_queue()
    assert time.time() - 60 < run.queued_since() <= time.time()


def test_only_a_run_that_a_process_carries_is_queued(run: RunFolder) -> None:
    run.join_queue()
    assert not run.is_queued()
    with hold_lock(run.lock):
        assert run.is_queued()
    run.leave_queue()
    run.leave_queue()
    assert run.queued_since() is None


def test_a_waiting_file_that_somebody_reads_on_windows_is_taken_away_a_moment_later(
    run: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.join_queue()
    readers, unlink = [1, 2, 3], Path.unlink

    def held(path: Path, missing_ok: bool = False) -> None:
        if readers:
            readers.pop()
            raise PermissionError(13, "in use")
        unlink(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", held)
    run.leave_queue()
    assert not run.queued.exists()
