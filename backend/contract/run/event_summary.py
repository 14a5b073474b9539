"""Reads a run's events quickly: everything but the steps and the sampled rows, each with the step before it.

And what follows from them alone: how and where the run ended, and how long it took.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import msgspec

from backend.contract.messages import message
from backend.contract.run.events import (
    LONGEST_LINE_BYTES,
    AnyEvent,
    RunFinished,
    RunResumed,
    RunStarted,
    StepFinished,
    Warned,
    decode,
)
from backend.contract.safe_files import open_unlinked

CHUNK_BYTES = 1_000_000
"""About four milliseconds."""
MAX_UNREAD = 1000 * CHUNK_BYTES
"""What is read of a file at most; four million steps take less. A sparse file of any length packs to a few kilobytes."""
END_BYTES = 10 * CHUNK_BYTES
"""Of a larger one, its beginning and its end."""
TOO_LONG = "events_too_long"
"""The code of the warning that separates them."""
_OTHER_THAN_STEPS = re.compile(rb'^\{"event":"(?!StepFinished|MemoryMeasured|StageProgress|RowsSampled)', re.MULTILINE)

_STEP = b'{"event":"StepFinished"'
_SAMPLES = b'{"event":"RowsSampled"'


class _Step(msgspec.Struct):
    """The fields of a step that its curves need; other events have no loss of their own."""

    step: int = 0
    loss: float | None = None
    learning_rate: float = 0.0


_STEPS = msgspec.json.Decoder(_Step)


class EventSummary:
    """Reads incrementally; its events fold to the same run as the full list, but with only a few of the steps.

    Between two other events it keeps the last step, so that times, pauses and the current step are exact.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._data = b""
        self._time = 0.0  # of the last event
        self.is_complete = False
        """Whether the last `read` came to the end of the file."""
        self.began_anew = False
        """Whether the last `read` found a shorter file, so that what was given before is void."""

    def read(self, size: int = CHUNK_BYTES) -> list[AnyEvent]:
        """The events in the next `size` bytes; a half-written last line is left for later."""
        try:
            with open_unlinked(self._path) as file:
                end = file.seek(0, 2)
                self.began_anew = end < self._offset
                if self.began_anew:
                    self._offset = 0
                if is_cut := self._offset >= END_BYTES and end - self._offset > MAX_UNREAD:
                    self._offset = end - END_BYTES
                file.seek(self._offset)
                data = file.read(size)
                while data and b"\n" not in data and len(data) < LONGEST_LINE_BYTES and (longer := file.read(size)):
                    data += longer
        except OSError:
            self.is_complete, self._data = True, b""
            return []
        lines = data[: data.rfind(b"\n") + 1]
        passed = len(lines) or (len(data) if len(data) >= LONGEST_LINE_BYTES else 0)
        self._offset += passed
        self._data = lines
        self.is_complete = self._offset >= end or not passed
        found = _landmarks(lines)
        if is_cut:
            words = message(
                "events.jsonl is {end:,.0f} MB, far more than a run writes, so only its start and end were read",
                end=end / CHUNK_BYTES,
            )
            found.insert(0, Warned(time=self._time, code=TOO_LONG, message=words))
        self._time = found[-1].time if found else self._time
        return found

    def losses(self) -> Iterator[tuple[int, float, float]]:
        """Step, loss and learning rate of every step in the last `read`, once; twice as slow as the read itself."""
        data, self._data = self._data, b""  # a list of many runs has a reader for each
        try:
            steps = _STEPS.decode_lines(data)
        except (msgspec.DecodeError, RecursionError):  # a line that was torn by a crash, or is nested too deep
            steps = filter(None, map(_step_in, data.splitlines()))
        for step in steps:
            if step.loss is not None:
                yield step.step, step.loss, step.learning_rate


def landmarks(path: Path) -> list[AnyEvent]:
    """The summary events of the whole file."""
    reader, found = EventSummary(path), []
    while not reader.is_complete:
        found += reader.read()
    return found


def last_end(found: Sequence[AnyEvent]) -> RunFinished | None:
    """How the last attempt ended, if it recorded that itself."""
    marks = (RunStarted, RunResumed, RunFinished)
    last = next((event for event in reversed(found) if isinstance(event, marks)), None)
    return last if isinstance(last, RunFinished) else None


def last_step(found: Sequence[AnyEvent]) -> int:
    """How far the run came."""
    for event in reversed(found):
        if isinstance(event, StepFinished | RunFinished):
            return event.step
        if isinstance(event, RunResumed):
            return event.from_step
    return 0


def active_seconds(found: Sequence[AnyEvent]) -> float:
    """How long a process carried the run; the time between two attempts does not count."""
    idle = sum(max(0.0, after.time - before.time) for before, after in pairwise(found) if isinstance(after, RunResumed))
    return max(0.0, found[-1].time - found[0].time - idle) if found else 0.0


def _landmarks(data: bytes) -> list[AnyEvent]:
    found: list[AnyEvent | None] = []
    begun = 0  # of the first line that was not given yet
    for match in _OTHER_THAN_STEPS.finditer(data):
        start = match.start()
        found += _read_between(data, begun, start)
        begun = data.find(b"\n", start) + 1
        found.append(decode(data[start:begun]))
    found += _read_between(data, begun, len(data))
    return [event for event in found if event is not None]


def _read_between(data: bytes, begun: int, end: int) -> list[AnyEvent | None]:
    """The last step among some lines and the last event after it (for its time), unless that is a long one."""
    if begun >= end:
        return []
    last = max(begun, data.rfind(b"\n", begun, end - 1) + 1)
    step = data.rfind(_STEP, begun, end)
    starts = [last] if step == last else [step, last]
    short = [start for start in starts if start != -1 and not data.startswith(_SAMPLES, start)]
    return [decode(data[start : data.find(b"\n", start) + 1]) for start in short]


def _step_in(line: bytes) -> _Step | None:
    try:
        return _STEPS.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return None
