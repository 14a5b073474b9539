"""Keeps folders that one process writes once and many read, and frees space in the cache on request."""

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import psutil
from filelock import FileLock, Timeout

from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.data.removal import RemovalFailure, remove
from backend.data.sources.source import Report

Content = TypeVar("Content")

_UNWRITABLE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS}

PARTS = ("features", "lengths", "report", "tables", "pages", "weights", "jax")
"""Folders of the cache."""


class DamagedCacheError(Exception):
    """The folder's content is not what was written there."""


def open_or_write(
    folder: Path, open_folder: Callable[[Path], Content], write: Callable[[Path], None], report: Report
) -> Content:
    """Open `folder` with `open_folder`; if it is missing or raises DamagedCacheError, fill it with `write` first.

    `write` fills a temporary folder, which is flushed and renamed, so that readers see nothing or all of it. If two
    processes want the same folder, it is written once.
    """
    content = _open_entry(folder, open_folder)
    if content is not None:
        return content
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _hold_lock(folder.with_name(f"{folder.name}.lock"), report):
        content = _open_entry(folder, open_folder)  # another process may have written it while this one waited
        if content is None:
            _write(folder, write)
            content = open_folder(folder)
    return content


def _open_entry(folder: Path, open_folder: Callable[[Path], Content]) -> Content | None:
    try:
        content = open_folder(folder)
    except DamagedCacheError:
        return None
    with suppress(OSError):  # a cache that may only be read
        os.utime(folder)  # eviction goes by the time of last use
    return content


@contextmanager
def _hold_lock(path: Path, report: Report) -> Iterator[None]:
    lock = FileLock(path)
    while True:
        try:
            lock.acquire(timeout=0.5)
            break
        except Timeout:
            report(0, 0, message("waiting for another process"))  # which may raise, so that waiting can be stopped
    try:
        yield
    finally:
        lock.release()


def _write(folder: Path, write: Callable[[Path], None]) -> None:
    # The lock makes the name safe; a killed writer's folder is taken away by the next one.
    beside = folder.with_name(f"{folder.name}.part")
    _move_aside(beside)
    beside.mkdir()
    try:
        write(beside)
        for path in beside.iterdir():
            _flush(path)
        _move_aside(folder)  # it is damaged
        beside.replace(folder)
    except OSError as error:
        if error.errno not in _UNWRITABLE:
            raise
        raise InputError(
            "the cache {parent} cannot be written ({strerror}); free up some space there, or set "
            "BURNISH_CACHE to a folder on another disk",
            parent=folder.parent,
            strerror=error.strerror or error,
        ) from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _move_aside(path: Path) -> None:
    """Rename and delete a damaged folder as far as possible; the cache's `clear` retries the rest."""
    match remove(path):
        case RemovalFailure(path=left, reason=reason) if left == path:
            raise InputError(
                "the cache cannot be written: {path} is damaged and cannot be replaced ({reason}); delete "
                "it, or set BURNISH_CACHE to another folder",
                path=path,
                reason=reason,
            )


def _flush(path: Path) -> None:
    # Without this a power cut leaves files of the right length that are full of zeros.
    with path.open("rb+") as file:
        os.fsync(file.fileno())


@dataclass
class ClearedSpace:
    """Bytes freed and kept, and what could not be removed."""

    freed: int = 0
    kept: int = 0
    failed: list[str] = field(default_factory=list)


def size_of(folder: Path) -> int:
    """Bytes on disk of everything in a folder; files that vanish meanwhile are ignored. Links count once."""
    total, seen = 0, set[tuple[int, int]]()
    for entry in _files(folder):
        with suppress(OSError):
            stat = entry.stat(follow_symlinks=False)
            if stat.st_ino and (stat.st_dev, stat.st_ino) in seen:
                continue
            seen.add((stat.st_dev, stat.st_ino))
            total += getattr(stat, "st_blocks", 0) * 512 or stat.st_size
    return total


def clear(folder: Path, used_since: float | None) -> ClearedSpace:
    """Remove everything in one part of the cache except what was used since (seconds since the epoch; None: all).

    Anything that another process is writing is kept too.
    """
    room = ClearedSpace()
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
            room.failed.append(
                message("{entry} could not be removed: {strerror}", entry=entry, strerror=error.strerror or error)
            )
    return room


def _is_written(entry: Path) -> bool:
    """Whether the process that writes this temporary file (`.name.PID`) is alive."""
    number = entry.suffix.removeprefix(".")
    return number.isdecimal() and psutil.pid_exists(int(number))


def _remove(entry: Path) -> bool:
    """Remove an entry unless it is being written; renamed first, so that no reader opens half of it."""
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
