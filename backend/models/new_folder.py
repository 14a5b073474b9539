"""Finishes a folder that was newly written: readable by whoever may read other new files here, and on the disk."""

import os
from pathlib import Path


def share(folder: Path) -> None:
    """Gives the files of a new folder the rights that go with its own; safetensors leaves its files to their owner alone."""
    usual = folder.stat().st_mode & 0o666
    for path in folder.iterdir():
        if path.is_file():
            path.chmod(usual)


def flush_to_disk(folder: Path) -> None:
    """Wait until every file of the folder is on the disk, before a rename makes it count; whoever may read it, may."""
    share(folder)
    for path in (path for path in folder.rglob("*") if path.is_file()):
        with path.open("rb") as file:
            os.fsync(file.fileno())
    for inner in (path for path in folder.rglob("*") if path.is_dir()):
        flush_folder(inner)


def flush_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk."""
    if os.name == "nt":  # Windows cannot open a folder to flush it
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
