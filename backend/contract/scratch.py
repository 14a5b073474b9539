"""Owns the folders in which a process keeps what nobody needs once it has ended, however it ended (stdlib only)."""

import os
import shutil
from contextlib import suppress
from pathlib import Path

from backend.contract.places import cache_folder

NAME = "scratch"


def folder(pid: int) -> Path:
    """That of a process; it is not made."""
    return cache_folder() / NAME / str(pid)


def remove(pid: int) -> None:
    """Take away what the process left; nothing where it kept nothing."""
    shutil.rmtree(folder(pid), ignore_errors=True)
    with suppress(OSError):  # another process keeps something there
        folder(pid).parent.rmdir()


def remove_leftovers(alive: set[int]) -> None:
    """Take away what processes left that are not `alive`: both they and whoever looked after them were killed."""
    root = cache_folder() / NAME
    for path in root.iterdir() if root.is_dir() else ():
        if path.name.isdecimal() and int(path.name) not in alive and int(path.name) != os.getpid():
            shutil.rmtree(path, ignore_errors=True)
