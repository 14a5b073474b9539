"""Tests which deaths of a run's process the supervisor answers with another attempt, and how often."""

import os
import signal
import sys

import pytest

from backend import restart
from backend.contract.run.folder import INTERRUPTED_EXIT_CODE, ProcessRecord, RunFolder

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

DIES = """
import os, pathlib, signal, sys
folder = pathlib.Path(sys.argv[1])
attempts = len(list(folder.glob("attempt-*"))) + 1
(folder / f"attempt-{attempts}").touch()
"""
KILLED = "os.kill(os.getpid(), signal.SIGKILL)\n"
"""What follows DIES."""
SAVES = '(folder / "checkpoints" / f"step-{attempts:06d}").mkdir(parents=True)\n'
KILLS_SUPERVISOR = "os.kill(os.getppid(), signal.SIGTERM)\n"


def attempts(folder: RunFolder) -> int:
    """How many attempts there were."""
    return len(list(folder.path.glob("attempt-*")))


def test_run_that_keeps_saving_restarts_until_it_is_done(folder: RunFolder, supervise) -> None:
    assert supervise(f"{DIES}{SAVES}if attempts < 6: {KILLED}", max_restarts=2).wait() == 0
    assert attempts(folder) == 6
    assert (folder.exit_record().attempt, folder.exit_record().returncode) == (6, 0)
    assert (folder.process_record().restarts, folder.process_record().died_of) == (1, signal.SIGKILL)


def test_restarts_without_a_new_checkpoint_are_counted(folder: RunFolder, supervise) -> None:
    folder.checkpoint(5).mkdir(parents=True)
    assert supervise(f"{DIES}os.kill(os.getpid(), signal.SIGSEGV)", max_restarts=3).wait() == 1
    assert attempts(folder) == 4
    assert folder.exit_record().message.endswith("; 3 restarts in a row did not reach a new checkpoint")
    assert "SIGSEGV" in folder.exit_record().message
    assert folder.life() == "ended"


def test_run_without_any_checkpoint_begins_again_once(folder: RunFolder, supervise) -> None:
    assert supervise(f"{DIES}{KILLED}", max_restarts=3).wait() == 1
    assert attempts(folder) == 2
    assert folder.exit_record().message.endswith("; a restart did not reach a new checkpoint")


@pytest.mark.parametrize("end", ["sys.exit(1)", "sys.exit(75)", "os.kill(os.getpid(), signal.SIGTERM)"])
def test_run_that_said_how_it_ended_does_not_restart(folder: RunFolder, supervise, end: str) -> None:
    supervise(f"{DIES}{SAVES}{end}", max_restarts=3).wait()
    assert attempts(folder) == 1


@pytest.mark.parametrize(("when", "count"), [("time.time()", 1), ("1.0", 2)])
def test_run_that_crashes_after_its_end_does_not_restart(folder: RunFolder, supervise, when: str, count: int) -> None:
    """The end of an earlier attempt does not count."""
    ends = f'import time\n(folder / "events.jsonl").write_text(\'{{"event":"RunFinished","time":%f}}\\n\' % {when})\n'
    supervise(f"{DIES}{ends}os.kill(os.getpid(), signal.SIGSEGV)", max_restarts=3).wait()
    assert attempts(folder) == count


@pytest.mark.parametrize("request_", ["stop", "pause", "interrupt"])
def test_run_that_was_asked_to_end_does_not_restart(folder: RunFolder, supervise, request_: str) -> None:
    supervise(f"{DIES}{SAVES}(folder / {request_!r}).touch()\n{KILLED}", max_restarts=3).wait()
    assert attempts(folder) == 1


def test_run_that_must_be_killed_does_not_restart(folder: RunFolder, supervise, until) -> None:
    stubborn = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n(folder / 'ready').touch()\nwhile True: signal.pause()"
    supervisor = supervise(f"{DIES}{SAVES}{stubborn}", max_restarts=3)
    until((folder.path / "ready").exists)
    supervisor.send_signal(signal.SIGTERM)
    until((folder.path / "interrupt").exists)
    supervisor.send_signal(signal.SIGTERM)
    assert supervisor.wait() == 1
    assert attempts(folder) == 1


def test_interruption_before_a_restart_ends_the_run_as_interrupted(folder: RunFolder, supervise) -> None:
    assert supervise(f"{DIES}{SAVES}{KILLS_SUPERVISOR}{KILLED}", max_restarts=3).wait() == INTERRUPTED_EXIT_CODE
    assert attempts(folder) == 1


def test_out_of_memory_twice_at_the_same_checkpoint_ends_the_run(folder: RunFolder) -> None:
    folder.checkpoint(5).mkdir(parents=True)
    first = ProcessRecord(1, "", "", 1, 1, 0.0, checkpoint=5, max_restarts=3)
    second = restart.restart_after(folder, first, -signal.SIGKILL, "memory")
    assert second is not None
    assert restart.restart_after(folder, second, -signal.SIGKILL, "memory") is None
    assert restart.restart_after(folder, second, -signal.SIGKILL, "signal") is not None
    folder.checkpoint(10).mkdir()
    assert restart.restart_after(folder, second, -signal.SIGKILL, "memory") is not None


TELLS = """import time
(folder / "events.jsonl").write_text('{"event":"Warned","code":"%s","time":%%f}\\n' %% time.time())
"""
"""The engine process was told of a death on another computer, and dies so too."""


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("lost_for_memory", "because the system ran out of memory"),
        ("node_lost", "a node of the run, or the cluster's process on it, is gone"),
        ("lost", "which usually means that the system ran out of memory"),
        ("process_lost", "by a person or another program"),
    ],
)
def test_death_on_another_computer_is_told_as_what_it_was(folder: RunFolder, supervise, code: str, words: str) -> None:
    supervise(f"{DIES}{TELLS % code}{KILLED}").wait()
    assert words in folder.exit_record().message


def test_node_that_a_cluster_takes_back_does_not_use_up_the_restarts(folder: RunFolder) -> None:
    folder.checkpoint(5).mkdir(parents=True)
    record = ProcessRecord(1, "", "", 1, 1, 0.0, checkpoint=5, max_restarts=1)
    for _ in range(restart.MAX_PREEMPTIONS):
        record = restart.restart_after(folder, record, -signal.SIGKILL, "preemption")
        assert record is not None
    assert (record.restarts, record.preemptions) == (0, restart.MAX_PREEMPTIONS)
    assert restart.restart_after(folder, record, -signal.SIGKILL, "preemption") is None
    crashed = restart.restart_after(folder, record, -signal.SIGKILL, "signal")
    assert crashed is not None
    assert restart.restart_after(folder, crashed, -signal.SIGKILL, "signal") is None
    folder.checkpoint(10).mkdir()
    assert restart.restart_after(folder, record, -signal.SIGKILL, "preemption") is not None
    off = ProcessRecord(1, "", "", 1, 1, 0.0, max_restarts=0)
    assert restart.restart_after(folder, off, -signal.SIGKILL, "preemption") is None


def test_process_that_jax_has_ended_says_that_a_host_is_gone(folder: RunFolder, supervise) -> None:
    prints = "print('Terminating process because the JAX distributed service detected fatal errors.', flush=True)"
    assert supervise(f"{DIES}{prints}\nos.abort()").wait() == 1
    sentence = "another host of the run is gone or does not answer, so JAX ended the process; see process.log"
    assert folder.exit_record().message == sentence


def test_killed_supervisor_restarts_nothing(folder: RunFolder, supervise, until) -> None:
    supervisor = supervise(f"{DIES}{SAVES}signal.pause()", max_restarts=3)
    until(lambda: attempts(folder) == 1 and folder.process_record().engine_pid)
    os.kill(supervisor.pid, signal.SIGKILL)
    supervisor.wait()
    until(lambda: folder.life() == "lost")
    assert attempts(folder) == 1
