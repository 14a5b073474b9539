"""The lock of a run, and of any small file that several processes change (stdlib only).

The lock is the kernel's: it is released when its holder dies, however it dies.
"""

import errno
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from backend.contract.messages import message
from backend.contract.safe_files import open_inside

LOCK_TRIES = 40
"""A process that only checks whether a run is alive (`is_locked`) holds the lock for an instant; starting then retries."""

CHANGE_TRIES = 500
"""Five seconds: changing a small file takes milliseconds."""


class RunLocked(RuntimeError):
    """Another process is running this run."""


if os.name == "nt":
    import msvcrt

    def _try_lock(descriptor: int, shared: bool = False) -> bool:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        except OSError:
            return False
        return True
else:
    import fcntl

    def _try_lock(descriptor: int, shared: bool = False) -> bool:
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except OSError:
            return False
        return True


def take_lock(path: Path, tries: int = LOCK_TRIES, *, of_all_users: bool = False) -> int:
    """Hold the lock until the descriptor is closed or the process ends. Raises RunLocked.

    A lock `of_all_users` can be taken by anyone who may write to its folder, whoever created the file.
    """
    descriptor = _open_for_all(path) if of_all_users else open_inside(path.parent, path.name, os.O_RDWR | os.O_CREAT)
    for _ in range(tries):
        if _try_lock(descriptor):
            return descriptor
        time.sleep(0.01)
    os.close(descriptor)
    raise RunLocked(str(path))


def _open_for_all(path: Path) -> int:
    try:
        descriptor = open_inside(path.parent, path.name, os.O_RDWR | os.O_CREAT)
    except PermissionError:
        return open_inside(path.parent, path.name, os.O_RDONLY)  # which suffices to lock it, but on NFS
    if os.name != "nt":
        with suppress(OSError):  # it is another user's, who has seen to that
            os.fchmod(descriptor, path.parent.stat().st_mode & 0o666 | 0o600)
    return descriptor


@contextmanager
def hold_lock(path: Path, *, of_all_users: bool = False) -> Iterator[None]:
    """Hold the lock for a block. Raises RunLocked."""
    descriptor = take_lock(path, of_all_users=of_all_users)
    try:
        yield
    finally:
        os.close(descriptor)


@contextmanager
def changing(path: Path, *, of_all_users: bool = False) -> Iterator[None]:
    """Lock the file at `path` against other users of this function while it is read and rewritten. Raises OSError."""
    try:
        descriptor = take_lock(path.with_name(f".{path.name}.lock"), CHANGE_TRIES, of_all_users=of_all_users)
    except RunLocked:
        raise TimeoutError(
            errno.ETIMEDOUT, message("timed out while another process was changing it"), str(path)
        ) from None
    try:
        yield
    finally:
        os.close(descriptor)


def is_locked(path: Path) -> bool | None:
    """Whether some process holds the lock now; None if this user cannot even read the file.

    Takes a shared lock for an instant, so that two readers do not conflict and another user's run can be checked.
    """
    try:
        descriptor = open_inside(path.parent, path.name, os.O_RDONLY)
    except PermissionError:
        return None
    except OSError:
        return False
    try:
        return not _try_lock(descriptor, shared=True)
    finally:
        os.close(descriptor)
