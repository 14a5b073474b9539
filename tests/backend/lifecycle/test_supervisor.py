"""Tests that every attempt has one supervisor, which starts, stops, sweeps and tells how it ended."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from backend.contract.processes import python_command
from backend.contract.run.folder import INTERRUPTED_EXIT_CODE, RunFolder

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

WAITS = """
import pathlib, signal, sys
(pathlib.Path(sys.argv[1]) / "ready").touch()
while True: signal.pause()
"""
STUBBORN_TREE = """
import os, pathlib, signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for number in range(3):
    if os.fork() == 0:
        os.setsid()  # workers that leave the engine's session
        break
(pathlib.Path(sys.argv[1]) / f"ready{os.getpid()}").write_text(str(os.getpid()))
while True: signal.pause()
"""
OBEDIENT = """
import pathlib, sys, time
folder = pathlib.Path(sys.argv[1])
(folder / "ready").touch()
while not (asked := [kind for kind in ("stop", "interrupt") if (folder / kind).exists()]): time.sleep(0.01)
(folder / "heard").write_text(asked[0])
"""
SAVES_SLOWLY = """
import pathlib, sys, time
folder = pathlib.Path(sys.argv[1])
(folder / "ready").touch()
while not (folder / "interrupt").exists(): time.sleep(0.01)
(folder / "interrupt").unlink()
(folder / "saving").touch()
while not (folder / "saved").exists(): time.sleep(0.01)
"""
LEAVES_WORKER = """
import os, pathlib, signal, sys
if os.fork() == 0:
    os.setsid()
    (pathlib.Path(sys.argv[1]) / "worker").write_text(str(os.getpid()))
    while True: signal.pause()
while not (pathlib.Path(sys.argv[1]) / "worker").exists(): pass
sys.exit(3)
"""


def test_good_end_is_written_with_its_attempt(folder: RunFolder, supervise) -> None:
    assert supervise("pass").wait() == 0

    record = folder.exit_record()
    assert record
    assert (record.attempt, record.returncode, record.message) == (1, 0, "")


def test_each_life_is_another_attempt(folder: RunFolder, supervise) -> None:
    supervise("pass").wait()
    supervise("pass").wait()

    record = folder.exit_record()
    assert record
    assert record.attempt == 2


def test_engine_finds_its_attempt_on_record(folder: RunFolder, supervise) -> None:
    supervise("pass").wait()
    supervise(
        "import sys; sys.path.insert(0, '.'); from backend.contract.run.folder import RunFolder;"
        "print('attempt', RunFolder(sys.argv[1]).process_record().attempt)"
    ).wait()

    assert "attempt 2" in folder.log.read_text()


def test_killed_engine_leaves_its_signal(folder: RunFolder, supervise, until) -> None:
    supervisor = supervise(WAITS)
    until((folder.path / "ready").exists)
    until(lambda: folder.process_record().engine_pid)

    os.kill(folder.process_record().engine_pid, signal.SIGKILL)

    assert supervisor.wait() == 1
    record = folder.exit_record()
    assert record
    assert record.returncode == -signal.SIGKILL
    assert folder.life() == "ended"
    assert record.killed_by in ("signal", "")  # empty if the kernel does not count those that it kills for memory
    if record.killed_by:
        assert "by a person or another program" in record.message


def test_killed_supervisor_takes_its_engine_along_and_the_run_is_lost(
    folder: RunFolder, supervise, until, alive
) -> None:
    supervisor = supervise(WAITS)
    until((folder.path / "ready").exists)
    until(lambda: folder.process_record().engine_pid)
    assert folder.life() == "alive"

    supervisor.kill()
    supervisor.wait()

    until(lambda: not alive(folder.process_record().engine_pid))
    assert folder.life() == "lost"


def test_workers_of_a_lost_run_are_swept_at_the_next_start(folder: RunFolder, supervise, until, alive) -> None:
    supervisor = supervise(STUBBORN_TREE)
    until(lambda: len(list(folder.path.glob("ready*"))) == 4)
    workers = [int(path.name.removeprefix("ready")) for path in folder.path.glob("ready*")]
    supervisor.kill()
    supervisor.wait()
    until(lambda: sum(alive(pid) for pid in workers) == 3)

    supervise("pass").wait()

    assert not any(alive(pid) for pid in workers)


def test_worker_left_behind_by_the_engine_is_ended_before_the_exit_is_written(
    folder: RunFolder, supervise, alive
) -> None:
    supervisor = supervise(LEAVES_WORKER)
    supervisor.wait()

    record = folder.exit_record()
    assert record
    assert record.returncode == 3
    assert not alive(int((folder.path / "worker").read_text()))


@pytest.mark.parametrize(
    ("number", "request_"), [("SIGTERM", "interrupt"), ("SIGUSR1", "interrupt"), ("SIGINT", "stop")]
)
def test_told_to_end_it_asks_the_engine(folder: RunFolder, supervise, until, number: str, request_: str) -> None:
    supervisor = supervise(OBEDIENT)
    until((folder.path / "ready").exists)

    supervisor.send_signal(getattr(signal, number))

    assert supervisor.wait() == 0
    assert (folder.path / "heard").read_text() == request_


def test_supervisor_passes_on_that_the_run_was_interrupted(folder: RunFolder, supervise) -> None:
    assert supervise("raise SystemExit(75)").wait() == INTERRUPTED_EXIT_CODE
    assert (folder.exit_record().returncode, folder.exit_record().message) == (INTERRUPTED_EXIT_CODE, "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_engine_that_is_told_to_end_before_it_can_listen_was_interrupted(
    folder: RunFolder, supervise, until, number: signal.Signals
) -> None:
    supervisor = supervise(WAITS)
    until((folder.path / "ready").exists)
    until(lambda: folder.process_record().engine_pid)

    os.kill(folder.process_record().engine_pid, number)

    assert supervisor.wait() == INTERRUPTED_EXIT_CODE
    assert folder.exit_record().state == "interrupted"
    assert number.name in folder.exit_record().message


def test_engine_that_has_heard_is_given_the_time_that_its_checkpoint_takes(folder: RunFolder, supervise, until) -> None:
    supervisor = supervise(SAVES_SLOWLY, polite=0.1)
    until((folder.path / "ready").exists)

    supervisor.send_signal(signal.SIGTERM)
    until((folder.path / "saving").exists)
    with pytest.raises(subprocess.TimeoutExpired):
        supervisor.wait(timeout=1)
    (folder.path / "saved").touch()

    assert supervisor.wait() == 0


def test_second_sigterm_ends_the_tree_at_once(folder: RunFolder, supervise, until, alive) -> None:
    supervisor = supervise(STUBBORN_TREE)
    until(lambda: len(list(folder.path.glob("ready*"))) == 4)
    pids = [int(path.name.removeprefix("ready")) for path in folder.path.glob("ready*")]

    supervisor.send_signal(signal.SIGTERM)
    until((folder.path / "interrupt").exists)
    supervisor.send_signal(signal.SIGTERM)

    assert supervisor.wait() == 1
    assert not any(alive(pid) for pid in pids)
    assert (folder.exit_record().state, folder.exit_record().returncode) == ("", -signal.SIGKILL)


def test_sigterm_after_a_schedulers_warning_ends_nothing_by_force(folder: RunFolder, supervise, until) -> None:
    supervisor = supervise(SAVES_SLOWLY)
    until((folder.path / "ready").exists)

    for number in (signal.SIGUSR1, signal.SIGUSR1, signal.SIGTERM):
        supervisor.send_signal(number)
        until((folder.path / "saving").exists)
    (folder.path / "saved").touch()

    assert supervisor.wait() == 0


def test_stubborn_tree_is_killed_after_patience(folder: RunFolder, supervise, until, alive) -> None:
    supervisor = supervise(STUBBORN_TREE, polite=0.1)
    until(lambda: len(list(folder.path.glob("ready*"))) == 4)
    pids = [int(path.name.removeprefix("ready")) for path in folder.path.glob("ready*")]

    supervisor.send_signal(signal.SIGINT)

    assert supervisor.wait() == 1
    assert not any(alive(pid) for pid in pids)
    record = folder.exit_record()
    assert record
    assert "did not stop in time, so it was killed" in record.message


def test_old_requests_do_not_reach_a_new_attempt(folder: RunFolder, supervise) -> None:
    for kind in ("stop", "pause", "checkpoint"):
        folder.request(kind)

    supervise("pass").wait()

    assert folder.open_request() is None


def test_running_run_refuses_a_second_supervisor(folder: RunFolder, supervise, until) -> None:
    first = supervise(WAITS)
    until((folder.path / "ready").exists)

    second = supervise("pass")

    assert second.wait() == 2
    assert second.stderr.read() == f"{folder.name}: this run is already running (process {first.pid})\n"


def test_looking_at_the_lock_all_the_time_is_no_reason_to_refuse(folder: RunFolder, supervise) -> None:
    folder.lock.touch()
    look = "import sys; from backend.contract.run.folder import RunFolder; f = RunFolder(sys.argv[1])\nwhile True: f.life()"
    watcher = subprocess.Popen([sys.executable, "-P", "-c", look, str(folder.path)])
    try:
        assert [supervise("pass").wait() for _ in range(5)] == [0] * 5
    finally:
        watcher.kill()
        watcher.wait()


def test_folder_deleted_under_the_run_ends_it_without_a_trace(folder: RunFolder, supervise, until) -> None:
    supervisor = supervise(WAITS)
    until((folder.path / "ready").exists)
    until(lambda: folder.process_record().engine_pid)
    subprocess.run(["rm", "-rf", str(folder.path)], check=True)

    supervisor.send_signal(signal.SIGTERM)

    assert supervisor.wait() == 1
    assert not folder.path.exists()


def test_something_else_than_a_run_is_refused(tmp_path: Path) -> None:
    command = python_command("backend.supervisor", str(tmp_path))
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert "is not a run folder" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_supervisor_is_small() -> None:
    script = (
        "import resource, sys, backend.supervisor\n"
        "heavy = {'pydantic', 'msgspec', 'numpy', 'ruamel', 'psutil', 'torch'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "print(int(next(l for l in open('/proc/self/status') if l.startswith('VmRSS')).split()[1]) // 1024)"
    )
    command = [sys.executable, "-P", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True)

    assert int(done.stdout) < 24


def test_run_whose_lock_cannot_be_opened_is_refused_in_one_sentence(folder: RunFolder, supervise) -> None:
    folder.lock.mkdir()  # as another user's file, which root could open

    refused = supervise("pass")

    assert refused.wait() == 2
    sentence = refused.stderr.read()
    assert "its lock cannot be opened" in sentence
    assert sentence.count("\n") == 1
