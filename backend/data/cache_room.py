"""Owns how much room the caches take, and making room without taking anything from under a run."""

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from filelock import FileLock, Timeout

PARTS = ("features", "lengths", "report", "tables", "pages", "weights", "jax")
"""Folders of the cache."""


@dataclass
class Room:
    """Bytes that were freed and kept, and what could not be taken away."""

    freed: int = 0
    kept: int = 0
    failed: list[str] = field(default_factory=list)


def size_of(folder: Path) -> int:
    """Bytes on the disk of everything in a folder; what vanishes meanwhile counts nothing. Links count once."""
    total, seen = 0, set[tuple[int, int]]()
    for entry in _files(folder):
        with suppress(OSError):
            stat = entry.stat(follow_symlinks=False)
            if stat.st_ino and (stat.st_dev, stat.st_ino) in seen:
                continue
            seen.add((stat.st_dev, stat.st_ino))
            total += getattr(stat, "st_blocks", 0) * 512 or stat.st_size
    return total


def clear(folder: Path, used_since: float | None) -> Room:
    """Take away everything in one part of the cache but what was used since (seconds since the epoch; None: nothing was).

    What another process is just writing stays too.
    """
    room = Room()
    for entry in sorted(folder.iterdir()) if folder.is_dir() else []:
        if entry.suffix in (".lock", ".part"):
            continue  # a lock that is taken away would let two write at once
        if entry.name.startswith(".") and _is_written(entry):
            continue
        size = size_of(entry) if entry.is_dir() else entry.stat().st_size
        try:
            if used_since is not None and entry.stat().st_mtime >= used_since:
                room.kept += size
            elif _remove(entry):
                room.freed += size
            else:
                room.kept += size
        except OSError as error:
            room.kept += size
            room.failed.append(f"{entry} could not be taken away: {error.strerror or error}")
    return room


def _is_written(entry: Path) -> bool:
    """Whether the process is alive that writes a file beside the one it is to be: `.name.PID`."""
    number = entry.suffix.removeprefix(".")
    return number.isdecimal() and psutil.pid_exists(int(number))


def _remove(entry: Path) -> bool:
    """Away with it, unless somebody writes it; renamed first, so that nobody opens one half of it."""
    lock = FileLock(entry.with_name(f"{entry.name}.lock"))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return False
    try:
        beside = entry.with_name(f"{entry.name}.part")
        shutil.rmtree(beside, ignore_errors=True)
        entry.rename(beside)
        if beside.is_dir():
            shutil.rmtree(beside)
        else:
            beside.unlink()
    finally:
        lock.release()
    return True


def _files(folder: Path) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            found = list(entries)
    except OSError:
        return
    for entry in found:
        if entry.is_dir(follow_symlinks=False):
            yield from _files(Path(entry.path))
        else:
            yield entry
