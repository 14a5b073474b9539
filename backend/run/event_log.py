"""Owns the writing end of `events.jsonl`: one writer, whole lines, in groups."""

import os
from pathlib import Path

from backend.contract.events import AnyEvent, Event, decode_all, encode


class EventLog:
    """Appends events. What `append` was given waits for the next `write` or `flush`, and all is written together."""

    def __init__(self, path: Path) -> None:
        cut_torn_line(path)
        self._file = path.open("ab", buffering=0)
        self._waiting: list[bytes] = []

    def append(self, event: Event) -> None:
        """Write with what comes next."""
        self._waiting.append(encode(event))

    def write(self, event: Event) -> None:
        """Write now, for events that people wait for."""
        self._waiting.append(encode(event))
        self.flush()

    def flush(self) -> None:
        """Hand everything that waits to the system, in one write unless the disk takes only a part of it."""
        while rest := b"".join(self._waiting):
            self._waiting = [rest[self._file.write(rest) :]]

    def close(self) -> None:
        """Flush to disk and close."""
        self.flush()
        os.fsync(self._file.fileno())
        self._file.close()


def cut_torn_line(path: Path) -> None:
    """A process that died while writing leaves half a line; the next attempt cuts it."""
    if not path.exists():
        return
    with path.open("rb+") as file:
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
    with path.open("rb") as file:
        return list(decode_all(file if size is None else file.read(size).splitlines()))
