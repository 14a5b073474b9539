"""Compiling in the midst of a stage: counted, shown where it takes long, and given up when the run is to end."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from backend.contract.run.events import ProgramCompiled, StageStarted
from backend.training import background
from backend.training import stages as module
from backend.training.event_log import EventLog, read_events
from backend.training.stages import StageReporter


class Ended(Exception):
    """What a wish to end the run raises."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "events.jsonl"


@pytest.fixture
def log(path: Path) -> Iterator[EventLog]:
    log = EventLog(path)
    yield log
    log.close()


@pytest.fixture
def shown_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SHOWN_SECONDS", 0.0)
    monkeypatch.setattr(background, "POLL_SECONDS", 0.005)


def names(path: Path) -> list[str]:
    return [event.stage for event in read_events(path) if isinstance(event, StageStarted)]


def test_programs_are_counted_and_a_quick_one_is_no_stage(log: EventLog, path: Path):
    stages = StageReporter(log, lambda: None)
    stages.start("evaluating", 10, "rows")
    assert [stages.compile(lambda: "one"), stages.compile(lambda: "two")] == ["one", "two"]
    compiled = [event for event in read_events(path) if isinstance(event, ProgramCompiled)]
    assert [event.count for event in compiled] == [1, 2]
    assert names(path) == ["evaluating"]


def test_the_clock_stands_still_meanwhile(log: EventLog, path: Path):
    stages = StageReporter(log, lambda: None)
    before, since = stages.clock(), time.perf_counter()
    stages.compile(lambda: time.sleep(0.3))
    took, passed = time.perf_counter() - since, stages.clock() - before
    [compiled] = [event.seconds for event in read_events(path) if isinstance(event, ProgramCompiled)]
    assert compiled >= 0.3
    assert passed == pytest.approx(took - compiled, abs=0.02)


@pytest.mark.usefixtures("shown_at_once")
def test_a_long_one_is_a_stage_after_which_the_present_one_goes_on(log: EventLog, path: Path):
    compiled, asked = threading.Event(), []

    def on_report() -> None:
        asked.append(True)
        if len(asked) == 3:
            compiled.set()

    stages = StageReporter(log, on_report)
    stages.start("training", 7, "steps")
    assert stages.compile(lambda: compiled.wait(10)) is True
    assert names(path) == ["training", "compiling", "training"]
    again = [event for event in read_events(path) if isinstance(event, StageStarted)][-1]
    assert (again.total, again.unit) == (7, "steps")


def test_what_fails_while_compiling_fails_the_run(log: EventLog):
    def fail() -> None:
        raise ValueError("no such operation")

    with pytest.raises(ValueError, match="no such operation"):
        StageReporter(log, lambda: None).compile(fail)


@pytest.mark.usefixtures("shown_at_once")
def test_what_fails_leaves_the_stage_to_an_engine_that_goes_on_without(log: EventLog, path: Path):
    stages = StageReporter(log, lambda: None)
    stages.start("training", 7, "steps")

    def fail() -> None:
        time.sleep(0.05)
        raise ValueError("no such operation")

    since, before = time.perf_counter(), stages.clock()
    with pytest.raises(ValueError, match="no such operation"):
        stages.compile(fail)
    assert stages.clock() - before < time.perf_counter() - since - 0.04, "its time was measured as that of a step"
    assert names(path) == ["training", "compiling", "training"]
    assert not [event for event in read_events(path) if isinstance(event, ProgramCompiled)]


@pytest.mark.usefixtures("shown_at_once")
def test_a_wish_to_end_the_run_does_not_wait_for_the_compiler(log: EventLog):
    never = threading.Event()

    def on_report() -> None:
        raise Ended

    with pytest.raises(Ended):
        StageReporter(log, on_report).compile(never.wait)
    never.set()


@pytest.mark.usefixtures("shown_at_once")
def test_what_cannot_be_stopped_is_compiled_to_its_end(log: EventLog, path: Path):
    def on_report() -> None:
        raise Ended

    stages = StageReporter(log, on_report)
    assert stages.compile(lambda: time.sleep(0.05) or "program", can_stop=False) == "program"
    assert names(path) == ["compiling", ""]


GIVE_UP = """
import sys, torch
from backend.__main__ import main
from backend.training import processes
from backend.training.background import Interrupted, run_beside

def compute():
    while True:
        torch.ones(2, requires_grad=True).sum().backward()

def stop():
    raise Interrupted("stop")

def run(folder):
    try:
        run_beside(compute, stop, "compiling")
    except Interrupted:
        return 0

processes.run = run
sys.exit(main(["_run", "nowhere"]))
"""


def test_process_that_gave_up_on_compiling_exits_as_if_nothing_ran():
    done = subprocess.run([sys.executable, "-c", GIVE_UP], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
