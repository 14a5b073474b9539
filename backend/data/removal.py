"""Removes unneeded files and folders, and never raises during cleanup."""

import shutil
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ASIDE = ".removed-"
"""Part of the hidden name of what could be renamed but not deleted; the next cleanup tries again."""


@dataclass(frozen=True)
class RemovalFailure:
    """What could not be deleted, where it is now, and why."""

    path: Path
    reason: str


def remove(path: Path) -> RemovalFailure | None:
    """Rename `path` to a hidden name beside it, then delete it; None if nothing of it is left.

    A path that cannot even be renamed (on Windows because a file in it is open) stays whole, under its name.
    """
    try:
        aside = set_aside(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        return RemovalFailure(path, error.strerror or str(error))
    return _delete(aside)


def set_aside(path: Path) -> Path:
    """Rename `path` to a hidden name beside it, ready for `delete`. Raises OSError."""
    return path.rename(path.with_name(f".{path.name.lstrip('.')}{ASIDE}{time.time_ns()}"))


def delete(paths: Iterable[Path]) -> list[RemovalFailure]:
    """Delete as much of these as possible; returns those that still exist."""
    return [kept for path in list(paths) if (kept := _delete(path)) is not None]


def _delete(path: Path) -> RemovalFailure | None:
    try:
        if path.is_symlink() or not path.is_dir():
            path.unlink(missing_ok=True)
            return None
        shutil.rmtree(path, ignore_errors=True)  # one file that stays must not keep the others
        if path.exists():
            shutil.rmtree(path)  # says why
    except FileNotFoundError:
        return None
    except OSError as error:
        return RemovalFailure(path, error.strerror or str(error))
    return None
