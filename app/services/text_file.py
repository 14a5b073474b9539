"""Owns reading a text file that a person opens on the Tokenizer page: whole where it is small, else in stretches."""

from pathlib import Path

SMALL_BYTES = 200_000
"""A larger file is not put into an editor, whose layout would stop the window."""


def is_small(path: Path) -> bool:
    """Whether an editor takes it. Raises OSError."""
    return path.stat().st_size <= SMALL_BYTES


def read_text(path: Path) -> str:
    """A small file as text, what is no UTF-8 replaced. Raises OSError."""
    return path.read_bytes().decode("utf-8-sig", "replace").replace("\r\n", "\n")


def read_stretch(path: Path, begin: int, end: int) -> str:
    """Bytes `begin` to `end` as text. Raises OSError."""
    with path.open("rb") as file:
        file.seek(begin)
        return file.read(end - begin).decode("utf-8", "replace")
