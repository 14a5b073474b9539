"""Reads a text file for the Tokenizer page: completely if it is small, else in parts."""

import os
from pathlib import Path
from typing import IO

from app.core.i18n import tr
from backend.contract.errors import InputError
from backend.contract.safe_files import open_regular

SMALL_BYTES = 200_000
"""A larger file is not put into an editor, whose layout would stop the window."""


def is_small(path: Path) -> bool:
    """Whether it fits an editor. Raises OSError."""
    with _open(path) as file:
        return os.fstat(file.fileno()).st_size <= SMALL_BYTES


def read_text(path: Path) -> str:
    """A small file as text, with invalid UTF-8 replaced. Raises OSError."""
    with _open(path) as file:
        return file.read(SMALL_BYTES).decode("utf-8-sig", "replace").replace("\r\n", "\n")


def read_stretch(path: Path, begin: int, end: int) -> str:
    """Bytes `begin` to `end` as text. Raises OSError."""
    with _open(path) as file:
        file.seek(begin)
        return file.read(end - begin).decode("utf-8", "replace")


def refusal(path: Path, error: OSError) -> str:
    """Why a file was not read, as a sentence."""
    reason = error.strerror or error
    return tr("{name} can't be read ({strerror}); choose another file.", name=path.name, strerror=reason)


def _open(path: Path) -> IO[bytes]:
    try:
        return open_regular(path)
    except InputError as error:  # a pipe or a device, which would stop the window
        raise OSError(str(error)) from None
