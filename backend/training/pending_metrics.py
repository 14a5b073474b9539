"""The steps whose results are still on the device: read in groups, checked for NaN, and written as events."""

import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import msgspec
import psutil

from backend.contract.errors import RunFailed
from backend.contract.messages import message
from backend.contract.run.events import MemoryMeasured, StepFinished
from backend.engines.engine import Engine, StepResult
from backend.training.event_log import EventLog
from backend.training.hosts import ALONE, Hosts

READ_SECONDS = 0.5
"""Losses wait on the device at most this long."""
MEMORY_SECONDS = 1.0


@dataclass(frozen=True)
class _Step:
    event: StepFinished
    result: StepResult


class NonFiniteLossError(RunFailed):
    """The loss of `step` is NaN or infinite; the engine may be further along by the time it is read."""

    def __init__(self, step: int, *, before_change: bool) -> None:
        super().__init__(message("the loss at step {step} is not a number", step=step), "nan_loss")
        self.step = step
        self.before_change = before_change


class PendingSteps:
    """Steps since the last read; `clock` gives seconds.

    `steps` and `seconds` are those of all but the first step, which also allocates memory and loads libraries.
    """

    def __init__(
        self, engine: Engine, log: EventLog, clock: Callable[[], float], hosts: Hosts = ALONE, processes: int = 1
    ) -> None:
        self._engine, self._log, self._clock, self._hosts = engine, log, clock, hosts
        self._steps: list[_Step] = []
        self._processes = _processes_of_run(processes)
        self._memory_measured = 0.0
        self._is_untouched = False
        self._is_warm = False
        self.steps, self.seconds = 0, 0.0
        self.resume_clock()

    def resume_clock(self) -> None:
        """Restart the clock: evaluation and checkpoints count towards no step."""
        self._since = self._clock()

    def add(self, event: StepFinished, result: StepResult) -> None:
        """Add a step with pending `loss`, `gradient_norm` and `seconds`; reads the group if it waited long enough."""
        self._steps.append(_Step(event, result))
        # All hosts read the same groups, so a NaN loss ends them all after the same step.
        if not self._is_warm or self._hosts.agree(lambda: self._clock() - self._since >= READ_SECONDS):
            self.read()

    def read(self) -> None:
        """Fetch all pending results at once and write their events. Raises NonFiniteLossError for a bad loss."""
        if not self._steps:
            return
        numbers = self._engine.read([step.result for step in self._steps])
        # A step may return while the device still computes: only the sum is true, and it is shared out by tokens.
        elapsed = self._clock() - self._since
        tokens = sum(step.event.tokens for step in self._steps)
        if self._is_warm:
            self.steps += len(self._steps)
            self.seconds += elapsed
        self._is_warm = True
        for step, found in zip(self._steps, numbers, strict=True):
            share = step.event.tokens / tokens if tokens else 1 / len(self._steps)
            self._write(step.event, found.loss, found.gradient_norm, elapsed * share)
        self._steps.clear()
        self._measure_memory()
        self._log.flush()
        self.resume_clock()

    def _write(self, event: StepFinished, loss: float, gradient_norm: float, seconds: float) -> None:
        self._log.append(msgspec.structs.replace(event, loss=loss, gradient_norm=gradient_norm, seconds=seconds))
        # A step's loss is of the weights before it; a learning rate of zero leaves them as they are.
        self._is_untouched |= event.step == 1
        if not math.isfinite(loss):
            self._log.flush()
            raise NonFiniteLossError(event.step, before_change=self._is_untouched)
        self._is_untouched &= event.learning_rate == 0
        self._last = event.step

    def _measure_memory(self) -> None:
        if time.monotonic() - self._memory_measured < MEMORY_SECONDS:
            return
        self._memory_measured = time.monotonic()
        self._log.append(
            MemoryMeasured(
                time=time.time(),
                step=self._last,
                memory_mb=resident_mb(self._processes),
                device_memory_mb=self._engine.device_memory_mb(),
                processes=len(self._processes),
            )
        )


def _processes_of_run(count: int) -> list[psutil.Process]:
    """This process, and the others of the run if there are several: what started this one has started those."""
    own = psutil.Process()
    launcher = own.parent() if count > 1 else None
    return [own, *(one for one in launcher.children() if one != own)] if launcher is not None else [own]


def resident_mb(processes: Sequence[psutil.Process]) -> float:
    """The resident memory of processes, with what they share (libraries) counted once."""
    total = 0
    for number, process in enumerate(processes):
        with suppress(psutil.Error):  # it has ended
            found = process.memory_info()
            total += found.rss - (getattr(found, "shared", 0) if number else 0)
    return total / 1e6
