"""Reads a run's curves from its events with little memory, however long the run is."""

import heapq
import math
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.contract.run import events
from backend.contract.run.folder import RunFolder
from backend.contract.safe_files import open_unlinked

CurveEvent = events.StepFinished | events.EvaluationFinished | events.MemoryMeasured
STEP_COLUMNS = ("epoch", "loss", "learning_rate", "gradient_norm", "rows", "tokens", "seconds")


class Curves:
    """The valid steps, evaluations and memory measurements, in ascending steps, read again at each iteration.

    A resume invalidates every step after its `from_step`, but comes after them in the file. So the file is read twice:
    once for what each attempt keeps and for the few events that come after a later step, then for all others.
    Raises InputError if the run has no steps yet.
    """

    def __init__(self, path: Path, name: str = "") -> None:
        self._path, self._size = path, path.stat().st_size if path.is_file() else 0
        self._late: list[tuple[int, int, CurveEvent]] = []
        self._kept: list[float] = []
        """By attempt: the last step that no later attempt made void."""
        self._first_steps: dict[str, int] = {}
        """Column of the table → the first step that has a value in it."""
        self._find_what_counts()
        if not self._first_steps:
            is_gone = not path.exists() and RunFolder(path.parent).life() == "ended"
            nothing = (
                message(
                    "its events.jsonl, which contains its curves, is missing; burnish resume continues the "
                    "run from its checkpoint"
                )
                if is_gone
                else message("this run has no steps yet; wait until it starts training")
            )
            raise InputError(message("{name}: {nothing}", name=name, nothing=nothing) if name else nothing)

    @property
    def columns(self) -> list[str]:
        """`step`, the columns of a step, then every metric by name."""
        return ["step", *STEP_COLUMNS, *sorted(self._first_steps.keys() - {*STEP_COLUMNS})]

    def __iter__(self) -> Iterator[CurveEvent]:
        for _, _, event in heapq.merge(self._order_events(), self._late):
            yield event

    def rows(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Step, and column → value, for every trained or evaluated step."""
        step, row = -1, dict[str, Any]()
        for event in self:
            if isinstance(event, events.MemoryMeasured):
                continue
            if event.step != step:
                if row:
                    yield step, row
                step, row = event.step, {}
            _fill(row, event)
        if row:
            yield step, row

    def _find_what_counts(self) -> None:
        resumed_from: list[float] = []
        for event, number, is_late in self._read():
            if isinstance(event, events.RunResumed):
                last = event.from_step
                resumed_from.append(last)
                self._late = [one for one in self._late if one[0] <= last]
                self._first_steps = {name: step for name, step in self._first_steps.items() if step <= last}
                continue
            if is_late:
                self._late.append((event.step, number, event))
            for name in _columns(event):
                self._first_steps[name] = min(event.step, self._first_steps.get(name, event.step))
        self._late.sort(key=lambda one: one[:2])
        self._kept = [*accumulate([math.inf, *reversed(resumed_from)], min)][::-1]

    def _order_events(self) -> Iterator[tuple[int, int, CurveEvent]]:
        attempt = 0
        for event, number, is_late in self._read():
            if isinstance(event, events.RunResumed):
                attempt += 1
            elif not is_late and event.step <= self._kept[attempt]:
                yield event.step, number, event

    def _read(self) -> Iterator[tuple[CurveEvent | events.RunResumed, int, bool]]:
        """Each event with its line number, and whether an event of a later step precedes it."""
        highest = 0
        for number, line in enumerate(self._lines()):
            event = events.decode(line)
            if isinstance(event, events.RunResumed):
                highest = min(highest, event.from_step)
                yield event, number, False
            elif isinstance(event, CurveEvent):
                yield event, number, event.step < highest
                highest = max(highest, event.step)

    def _lines(self) -> Iterator[bytes]:
        """The lines that existed at first: a live run keeps writing, and may be resumed meanwhile."""
        if not self._size:
            return
        with open_unlinked(self._path) as file:
            yield from events.lines_of(file, self._size)


def _columns(event: CurveEvent) -> Iterator[str]:
    if isinstance(event, events.StepFinished):
        yield "loss"
    elif isinstance(event, events.EvaluationFinished):
        yield "epoch"
        for name in event.metrics:
            yield f"{event.split}_{name}"


def parting_step(first: Path, second: Path) -> tuple[int, bool]:
    """The first step at which two runs have another loss, and True; if there is none, the last that both have, and False.

    Raises InputError if one of them has no steps yet.
    """
    shared, others = 0, _losses(second)
    number, loss = next(others, (math.inf, None))
    for step, own in _losses(first):
        while number < step:
            number, loss = next(others, (math.inf, None))
        if number == step:
            if own != loss:
                return step, True
            shared = step
    return shared, False


def _losses(path: Path) -> Iterator[tuple[int, float | None]]:
    return ((event.step, event.loss) for event in Curves(path) if isinstance(event, events.StepFinished))


def _fill(row: dict[str, Any], event: events.StepFinished | events.EvaluationFinished) -> None:
    if isinstance(event, events.StepFinished):
        for name in STEP_COLUMNS:
            row[name] = getattr(event, name)
        return
    row.setdefault("epoch", event.epoch)
    for name, value in event.metrics.items():
        row[f"{event.split}_{name}"] = value
