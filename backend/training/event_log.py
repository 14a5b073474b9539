"""Writes `events.jsonl`: one writer, whole lines, in groups; reports what is missing from a damaged file."""

import errno
import os
import time
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

from backend.contract.errors import RunFailed
from backend.contract.messages import message
from backend.contract.run.events import (
    AnyEvent,
    DataLoaded,
    Event,
    ModelLoaded,
    PlanMade,
    RunResumed,
    RunStarted,
    StageStarted,
    StepFinished,
    Warned,
    decode_all,
    encode,
    lines_of,
)
from backend.contract.safe_files import open_inside, open_unlinked
from backend.data.removal import set_aside

_HEAD = (RunStarted, RunResumed, DataLoaded, ModelLoaded, PlanMade)
"""Events without which the later ones of an attempt cannot be understood."""
_NOT_TO_BE_WRITTEN = frozenset(
    (errno.ELOOP, errno.EINVAL, errno.EMLINK, errno.EISDIR, errno.ENXIO, errno.EACCES, errno.EPERM)
)
"""How a link, a pipe, a hard link, a folder, a socket and another user's file refuse to be opened."""


class EventLog:
    """Appends events. Events passed to `append` wait for the next `write` or `flush`, and are written together.

    If the file was deleted, replaced or cut meanwhile, writing continues in what is there now: an empty one gets the head of the
    attempt again. A link, or what else the run may not write to, is put aside first. Raises RunFailed where that cannot be.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._waiting: list[bytes] = []
        self._head: dict[object, bytes] = {}
        self._step = self._written_step = 0
        self._is_lost = False
        self._open()

    def append(self, event: Event) -> None:
        """Queue the event for the next write."""
        self.remember(event)
        self._waiting.append(encode(event))

    def write(self, event: Event) -> None:
        """Write now, for events that the user is waiting for."""
        self.append(event)
        self.flush()

    def remember(self, event: Event) -> None:
        """Keep an event that is already in the file, to write it again if the file is lost."""
        if isinstance(event, StepFinished):
            self._step = event.step
        elif isinstance(event, RunResumed):
            self._step = event.from_step
        if isinstance(event, StageStarted):
            self._head.pop(StageStarted, None)  # the present one comes last
            self._head[StageStarted] = encode(event)
        elif isinstance(event, _HEAD):
            self._head[type(event), getattr(event, "split", "")] = encode(event)

    def flush(self) -> None:
        """Write everything queued, in one call unless the disk takes only part of it."""
        if self._waiting and not self._is_lost and not self._is_in_place():
            self._start_new_file()
        while rest := b"".join(self._waiting):
            count = self._file.write(rest)
            self._size += count
            self._waiting = [rest[count:]]
        self._waiting = []
        self._written_step = self._step

    def close(self) -> None:
        """Flush to disk and close."""
        self.flush()
        os.fsync(self._file.fileno())
        self._file.close()

    def _open(self) -> None:
        cut_torn_line(self._path)
        descriptor = open_inside(self._path.parent, self._path.name, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self._file = os.fdopen(descriptor, "ab", buffering=0)
        self._size = os.fstat(self._file.fileno()).st_size

    def _open_in_place(self) -> None:
        try:
            self._open()
        except OSError as error:
            if error.errno not in _NOT_TO_BE_WRITTEN:
                raise
            set_aside(self._path)
            self._open()

    def _is_in_place(self) -> bool:
        own = os.fstat(self._file.fileno())
        try:
            return os.path.samestat(self._path.lstat(), own) and own.st_size >= self._size
        except FileNotFoundError:
            return not self._path.parent.is_dir()  # a folder that is gone is not made again; the run ends for it
        except OSError:
            return True  # unknown

    def _start_new_file(self) -> None:
        before = self._file
        try:
            self._open_in_place()
        except OSError as error:
            if error.errno not in _NOT_TO_BE_WRITTEN:
                raise
            self._is_lost = True
            raise RunFailed(
                "{path} was replaced by something that cannot be written to ({strerror}), so the run's "
                "progress could not be recorded; delete it and resume the run",
                "events_replaced",
                path=self._path,
                strerror=error.strerror,
            ) from None
        before.close()
        present = read_events(self._path)
        head = [] if any(isinstance(event, RunStarted) for event in present) else list(self._head.values())
        lacks = missing_words(missing_steps(present, self._written_step))
        warning = [encode(Warned(time=time.time(), code="missing_events", message=lacks))] if lacks else []
        self._waiting = [*(line for line in head if line not in self._waiting), *warning, *self._waiting]


def missing_steps(found: Iterable[AnyEvent], until: int) -> list[tuple[int, int]]:
    """The steps from 1 to `until` without any event, as first and last of each gap."""
    present: set[int] = set()
    for event in found:
        if isinstance(event, StepFinished):
            present.add(event.step)
        elif isinstance(event, RunResumed):
            present = {step for step in present if step <= event.from_step}
    edges = [0, *sorted(step for step in present if step <= until), until + 1]
    return [(before + 1, after - 1) for before, after in pairwise(edges) if after - before > 1]


def missing_words(gaps: list[tuple[int, int]]) -> str:
    """A sentence about the missing steps; empty if there are none."""
    if not gaps:
        return ""
    each = [f"{first}–{last}" if first < last else str(first) for first, last in gaps]
    return message(
        "steps {each} and their evaluations are missing from the curves, because events.jsonl "
        "was deleted or changed; the training itself was not affected",
        each=", ".join(each),
    )


def cut_torn_line(path: Path) -> None:
    """Cut off the half line that a process leaves if it dies while writing."""
    if not path.exists():
        return
    with os.fdopen(open_inside(path.parent, path.name, os.O_RDWR), "rb+") as file:
        size = file.seek(0, os.SEEK_END)
        position = size
        while position:
            start = max(0, position - 65536)
            file.seek(start)
            newline = file.read(position - start).rfind(b"\n")
            if newline >= 0:
                file.truncate(start + newline + 1)
                return
            position = start
        file.truncate(0)


def read_events(path: Path, size: int | None = None) -> list[AnyEvent]:
    """All events of a run so far, or those in the first `size` bytes."""
    if not path.exists():
        return []
    with open_unlinked(path) as file:
        return list(decode_all(lines_of(file, size)))
