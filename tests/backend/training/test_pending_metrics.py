"""The numbers of steps that a device was still computing when they returned."""

from pathlib import Path

import psutil
import pytest

from backend.contract.run.events import StepFinished
from backend.engines.engine import StepNumbers, StepResult
from backend.training.event_log import EventLog, read_events
from backend.training.pending_metrics import PendingSteps, resident_mb


class Engine:
    """Gives what each step was asked for."""

    def read(self, results: list[StepResult]) -> list[StepNumbers]:
        return [StepNumbers(result.loss, result.gradient_norm) for result in results]

    def device_memory_mb(self) -> None:
        return None


def step(number: int, tokens: int) -> StepFinished:
    return StepFinished(
        time=0.0, step=number, epoch=0.0, loss=None, learning_rate=1e-3, gradient_norm=None, rows=4, tokens=tokens,
        seconds=0.0,
    )  # fmt: skip


def test_the_seconds_of_a_group_are_shared_out_by_tokens(tmp_path: Path):
    now = 100.0
    log = EventLog(tmp_path / "events.jsonl")
    waiting = PendingSteps(Engine(), log, lambda: now)  # type: ignore[arg-type]
    waiting.add(step(0, 20), StepResult(0.5, 1.0))  # the first one is read by itself, and tells nothing of others
    for number, tokens in enumerate((10, 30), 1):
        waiting.add(step(number, tokens), StepResult(0.5, 1.0))
    assert waiting.seconds == 0.0
    now = 102.0
    waiting.read()
    log.close()
    found = [event.seconds for event in read_events(tmp_path / "events.jsonl") if isinstance(event, StepFinished)]
    assert found == pytest.approx([0.0, 0.5, 1.5])
    assert (waiting.steps, waiting.seconds) == (2, 2.0)


def test_all_steps_of_a_group_are_on_the_disk_once_they_have_been_read(tmp_path: Path):
    log = EventLog(tmp_path / "events.jsonl")
    waiting = PendingSteps(Engine(), log, lambda: 100.0)  # type: ignore[arg-type]
    for number in range(1, 6):
        waiting.add(step(number, 8), StepResult(0.5, 1.0))
    waiting.read()
    found = [event.step for event in read_events(tmp_path / "events.jsonl") if isinstance(event, StepFinished)]
    log.close()
    assert found == [1, 2, 3, 4, 5]


def test_memory_of_several_processes_is_their_sum_with_libraries_counted_once():
    own = psutil.Process()
    found = own.memory_info()
    together = resident_mb([own, own])
    assert found.rss / 1e6 < together <= (2 * found.rss - getattr(found, "shared", 0)) / 1e6 + 50
