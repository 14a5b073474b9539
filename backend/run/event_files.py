"""Owns a run's curves as a TensorBoard event file: one record for each step, evaluation and measurement of memory."""

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from backend.contract.errors import InputError

if TYPE_CHECKING:
    from backend.contract.events import AnyEvent

MARK = "tfevents"
"""What TensorBoard knows event files by, in their names."""
VERSION = "brain.Event:2"
NOT_A_NUMBER = math.nan


@dataclass(frozen=True)
class Record:
    """Values by tag (`train/loss`, `validation/accuracy`), at a step and a time in seconds since the epoch."""

    step: int
    time: float
    values: Mapping[str, float]


def records_of(many: Iterable["AnyEvent"]) -> list[Record]:
    """What the events of a run measured, in rising steps; what a resume made void is left out."""
    from backend.contract import events

    found: list[Record] = []
    for event in many:
        if isinstance(event, events.RunResumed):
            found = [record for record in found if record.step <= event.from_step]
        elif isinstance(event, events.StepFinished):
            found.append(Record(event.step, event.time, _of_step(event)))
        elif isinstance(event, events.EvaluationFinished):
            values = {f"{event.split}/{name}": _number(value) for name, value in event.metrics.items()}
            found.append(Record(event.step, event.time, values))
        elif isinstance(event, events.MemoryMeasured):
            on_device = {} if event.device_memory_mb is None else {"memory/device_mb": event.device_memory_mb}
            found.append(Record(event.step, event.time, {"memory/process_mb": event.memory_mb, **on_device}))
    return sorted(found, key=lambda record: record.step)


def _of_step(event) -> dict[str, float]:
    values = {"train/loss": _number(event.loss), "train/learning_rate": event.learning_rate, "train/epoch": event.epoch}
    if event.gradient_norm is not None:
        values["train/gradient_norm"] = event.gradient_norm
    if event.seconds > 0:
        values["speed/rows_per_second"] = event.rows / event.seconds
        values["speed/tokens_per_second"] = event.tokens / event.seconds
    return values


def _number(value: float | None) -> float:
    return NOT_A_NUMBER if value is None else value


def write(records: list[Record], folder: Path) -> Path:
    """Write one event file into a folder that has none; its path. Raises InputError, OSError."""
    # The package imports torch where that is installed, which takes seconds.
    from tensorboardX.proto.event_pb2 import Event  # type: ignore[attr-defined]
    from tensorboardX.record_writer import RecordWriter

    if any(MARK in path.name for path in (folder.iterdir() if folder.is_dir() else ())):
        raise InputError(f"{folder} has event files already; name an empty folder, one for each run")
    folder.mkdir(parents=True, exist_ok=True)
    began = min(record.time for record in records)
    path = folder / f"events.out.{MARK}.{int(began):010d}.burnish"
    beside = folder / f".{os.getpid()}.part"
    try:
        file = RecordWriter(str(beside))
        file.write(Event(wall_time=began, file_version=VERSION).SerializeToString())
        for record in records:
            event = Event(wall_time=record.time, step=record.step)
            for tag, value in record.values.items():
                event.summary.value.add(tag=tag, simple_value=value)
            file.write(event.SerializeToString())
        file.close()
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    return path
