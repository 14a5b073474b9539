"""What the process that starts several others makes of how they end; small programs stand in for them."""

import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import psutil
import pytest

from backend import restart
from backend.contract.run.events import PlanMade, RunFinished, RunResumed, StageStarted, Warned
from backend.contract.run.fixes import RunFix
from backend.contract.run.folder import ProcessRecord, RunFolder
from backend.training import processes
from backend.training.event_log import EventLog, read_events
from tests.backend.training.example_events import STARTED, step
from tests.backend.training.test_evaluations import run_folder

PLAN = PlanMade(time=1.0, total_steps=9, steps_per_epoch=3, batch_size=8, micro_batch_size=8, accumulation=1, epochs=3)
SLEEPS = "import time; time.sleep(60)"
FAILS = "import sys; print('out of luck'); sys.exit(3)"


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return run_folder(tmp_path, hardware={"processes": 2})


@pytest.fixture
def start(folder: RunFolder, monkeypatch: pytest.MonkeyPatch):
    """Runs these programs as the processes of rank 0 and 1; returns the run's exit code and its last event."""

    def run(*programs: str) -> tuple[int, RunFinished]:
        waiting = iter(programs)
        monkeypatch.setattr(processes, "python_command", lambda *_: [sys.executable, "-c", next(waiting)])
        returncode = processes.run(folder)
        last = read_events(folder.events)[-1]
        assert isinstance(last, RunFinished)
        return returncode, last

    return run


@pytest.fixture
def left() -> Callable[[], set[psutil.Process]]:
    """The processes that a test has left, without those of other tests before it."""
    before = set(psutil.Process().children())
    return lambda: set(psutil.Process().children()) - before


def finishes(folder: RunFolder) -> str:
    """The program of a first process that completes the run, and is slow to end."""
    event = msgspec.json.encode(RunFinished(time=time.time() + 60, state="finished", step=9)).decode()
    return f"open({str(folder.events)!r}, 'w').write({event!r} + chr(10)); import time; time.sleep(60)"


def test_the_first_one_ends_with_another_that_dies(start, left):
    returncode, last = start(SLEEPS, FAILS)
    assert (returncode, last.state, last.code) == (1, "failed", "process_lost")
    assert last.message == "rank 1: the process exited with code 3"
    assert not left()


def test_the_end_of_its_log_is_shown(start):
    assert "out of luck" in start(SLEEPS, FAILS)[1].hint


def test_one_that_was_killed_for_memory_elsewhere_offers_what_helps_and_says_so_to_the_supervisor(
    folder: RunFolder, monkeypatch
):
    log = EventLog(folder.events)
    for event in (STARTED, PLAN, StageStarted(time=1.0, stage="training")):
        log.write(event)
    log.close()
    death = processes.Death(-9, "memory", is_elsewhere=True)
    assert processes.explain(folder, 1, death, time.time()) == 1
    last = read_events(folder.events)[-1]
    assert isinstance(last, RunFinished)
    assert last.message == "rank 1: the engine process was killed (SIGKILL), because the system ran out of memory"
    assert last.mend == RunFix({"hardware.micro_batch_size": 4})
    folder.checkpoint(5).mkdir(parents=True)
    folder.write_process_record(ProcessRecord(1, "", "", 1, 1, time.time(), max_restarts=1))
    monkeypatch.setattr(processes, "_die_of", lambda number: sys.exit(f"signal {number}"))
    with pytest.raises(SystemExit, match="signal 9"):
        processes.explain(folder, 1, death, time.time() + 1)
    assert restart.killed_elsewhere(folder, 0.0) == "memory"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signals")
def test_a_killed_one_is_named_before_the_supervisor_restarts_the_run(folder: RunFolder, start, monkeypatch):
    folder.checkpoint(5).mkdir(parents=True)
    folder.write_process_record(ProcessRecord(1, "", "", 1, 1, 0.0, max_restarts=1))
    monkeypatch.setattr(processes, "_die_of", lambda number: sys.exit(f"signal {number}"))
    with pytest.raises(SystemExit, match="signal 9"):
        start(SLEEPS, "import os; os.kill(os.getpid(), 9)")
    last = read_events(folder.events)[-1]
    assert isinstance(last, Warned)
    assert last.message.startswith("rank 1: the engine process was killed (SIGKILL)")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signals")
def test_a_process_that_nccl_aborts_has_its_fix(start):
    said = (
        "[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1580, OpType=ALLREDUCE) ran for 600060"
    )
    last = start(SLEEPS, f"import os, sys; print({said!r}, file=sys.stderr, flush=True); os.abort()")[1]
    assert last.mend == RunFix({"hardware.environment.NCCL_P2P_LEVEL": "NVL"})


def test_the_run_is_complete_if_another_one_fails_only_after_its_end(folder: RunFolder, start):
    wait = f"import os, sys, time\nwhile not os.path.exists({str(folder.events)!r}): time.sleep(0.01)\n"
    returncode, last = start(finishes(folder), f"{wait}time.sleep(0.2); sys.exit(3)")
    assert (returncode, last.state) == (0, "finished")


def test_it_failed_at_the_last_step_of_its_own_attempt(folder: RunFolder, start):
    log = EventLog(folder.events)
    log.write(step(100))
    log.write(RunResumed(time=0.0, attempt=2, from_step=50))
    log.write(step(60))
    log.close()
    assert start(SLEEPS, FAILS)[1].step == 60


def test_none_is_left_if_one_cannot_be_started(folder: RunFolder, left, monkeypatch: pytest.MonkeyPatch):
    commands = iter([[sys.executable, "-c", SLEEPS], ["/no/such/program"]])
    monkeypatch.setattr(processes, "python_command", lambda *_: next(commands))
    with pytest.raises(OSError, match="no/such"):
        processes.run(folder)
    assert not left()
