"""Owns who may read a folder that was written: whoever may read other new files here."""

from pathlib import Path


def share(folder: Path) -> None:
    """Gives the files of a new folder the rights that go with its own; safetensors leaves its files to their owner alone."""
    usual = folder.stat().st_mode & 0o666
    for path in folder.iterdir():
        if path.is_file():
            path.chmod(usual)
