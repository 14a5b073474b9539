"""Tests that a run's line in `burnish runs` says how it stands, from its records and its events."""

import json
import time
from pathlib import Path

import pytest

from backend.commands.summary import summary
from backend.contract.run import events
from backend.contract.run.event_summary import CHUNK_BYTES
from backend.contract.run.folder import ExitRecord, ProcessRecord, RunFolder, boot_id, host_id
from backend.contract.run.lock import locked


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """A run whose first attempt has a process record."""
    run = RunFolder(tmp_path / "run")
    run.path.mkdir()
    run.spec.write_text("version: 1\n")
    run.write_process_record(ProcessRecord(1, host_id(), boot_id(), 1, 2, time.time()))
    return run


def write(folder: RunFolder, *many: events.Event) -> None:
    """Append events."""
    with folder.events.open("ab") as file:
        file.writelines(map(events.encode, many))


STARTED = events.RunStarted(time=1, name="tiny", task="text_classification", model="bert")
PLAN = events.PlanMade(
    time=2, total_steps=40, steps_per_epoch=20, batch_size=8, micro_batch_size=8, accumulation=1, epochs=2
)


def step(number: int) -> events.StepFinished:
    """One step."""
    return events.StepFinished(
        time=3, step=number, epoch=0.1, loss=0.5, learning_rate=1e-4, gradient_norm=1.0, rows=8, tokens=80, seconds=0.1
    )


def test_run_with_a_lock_is_running(folder: RunFolder) -> None:
    write(folder, STARTED, PLAN, step(7))

    with locked(folder.lock):
        found = summary(folder)

    assert (found.state, found.step, found.total_steps) == ("running", 7, 40)


def test_run_without_lock_and_exit_is_lost(folder: RunFolder) -> None:
    write(folder, STARTED, PLAN, step(7))
    folder.lock.touch()

    assert summary(folder).state == "lost"


def test_a_paused_run_that_waits_is_queued_and_lost_if_it_is_killed_there(folder: RunFolder) -> None:
    write(folder, STARTED, PLAN, step(7), events.RunFinished(time=4, state="paused", step=7))
    folder.join_queue()

    with locked(folder.lock):
        waiting = summary(folder)
    killed = summary(folder)

    assert (waiting.state, waiting.message) == ("queued", "is about to begin (1 of 1 in the queue)")
    assert waiting.queued == folder.queued_since()
    assert (killed.state, killed.queued) == ("lost", None)
    assert "while it waited in the queue" in killed.message


def test_run_that_ended_by_itself_says_how(folder: RunFolder) -> None:
    finished = events.RunFinished(time=9, state="stopped", step=12, metrics={"accuracy": 0.9})
    write(folder, STARTED, PLAN, step(12), finished)
    folder.write_exit_record(ExitRecord(1, 0, 9.0))

    found = summary(folder)

    assert (found.state, found.step, found.metrics) == ("stopped", 12, {"accuracy": 0.9})


def test_killed_engine_makes_a_failed_run_with_the_reason(folder: RunFolder) -> None:
    write(folder, STARTED, PLAN, step(7))
    folder.write_exit_record(ExitRecord(1, -9, 9.0, "the engine process was killed"))

    found = summary(folder)

    assert (found.state, found.message) == ("failed", "the engine process was killed")


def test_run_whose_process_broke_down_after_its_last_word_has_ended_as_it_said(folder: RunFolder) -> None:
    write(folder, STARTED, PLAN, step(40), events.RunFinished(time=9, state="finished", step=40))
    folder.write_exit_record(ExitRecord(1, -11, 9.0, "the engine process was ended by SIGSEGV"))

    assert summary(folder).state == "finished"


def test_run_that_died_in_its_second_attempt_before_it_said_anything_has_failed(folder: RunFolder) -> None:
    write(folder, STARTED, PLAN, step(7), events.RunFinished(time=4, state="paused", step=7))
    folder.write_process_record(ProcessRecord(2, host_id(), boot_id(), 1, 2, time.time()))
    folder.write_exit_record(ExitRecord(2, 1, time.time(), "torch is gone"))

    found = summary(folder)

    assert (found.state, found.message) == ("failed", "torch is gone")


def test_last_attempt_decides(folder: RunFolder) -> None:
    paused = events.RunFinished(time=4, state="paused", step=7)
    write(folder, STARTED, PLAN, step(7), paused, events.RunResumed(time=5, attempt=2, from_step=5))
    folder.write_process_record(ProcessRecord(2, host_id(), boot_id(), 1, 2, time.time()))
    folder.lock.touch()

    found = summary(folder)

    assert (found.state, found.step) == ("lost", 5)


def test_metrics_are_the_last_of_the_validation_data_that_still_count(folder: RunFolder) -> None:
    def evaluated(at: int, accuracy: float, split: str = "validation") -> events.EvaluationFinished:
        return events.EvaluationFinished(
            time=3, step=at, epoch=1, metrics={"accuracy": accuracy}, rows=1, seconds=1, split=split
        )

    write(folder, STARTED, PLAN, evaluated(5, 0.5), evaluated(5, 0.9, "train"), evaluated(10, 0.6))
    write(folder, events.RunResumed(time=5, attempt=2, from_step=5))

    assert summary(folder).metrics == {"accuracy": 0.5}


def test_long_run_is_read_in_several_portions(folder: RunFolder) -> None:
    count = CHUNK_BYTES // len(events.encode(step(1))) + 500
    write(folder, STARTED, PLAN, *map(step, range(1, count + 1)))

    found = summary(folder)

    assert (found.step, found.task, found.total_steps) == (count, "text_classification", 40)


def test_runs_are_printed_as_json(burnish, runs: Path) -> None:
    for name in ("2026-01-01-0900-a", "2026-02-01-0900-b"):
        (runs / name).mkdir(parents=True)
        (runs / name / "spec.yaml").write_text("version: 1\n")

    found = json.loads(burnish("runs", "--json").stdout)

    assert [run["name"] for run in found] == ["2026-02-01-0900-b", "2026-01-01-0900-a"]
