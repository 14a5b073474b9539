"""Owns what a reader of one data file is: its columns first, then its rows in pieces."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

PIECE_ROWS = 8192
PIECE_BYTES = 1 << 25


@dataclass(frozen=True)
class Options:
    """How text is to be understood; `auto` and None leave it to the file."""

    delimiter: str | None = None
    encoding: str = "auto"
    quoting: str = "auto"
    sheet: str | None = None
    max_rows: int | None = None
    """No more rows than this are wanted, so a reader need not look further to learn the columns' types."""


@dataclass(frozen=True)
class Piece:
    """Some thousand rows."""

    batch: pa.RecordBatch
    lines: np.ndarray  # (rows,) int64, first line of each row in its file, or its record number
    position: int
    """Bytes of the file that have been read."""


class Reader(Protocol):
    """One file, opened to be read. Raises InputError in one sentence, without the key of the spec."""

    skipped: list[tuple[int, str]]
    """Line and reason of what could not be used; complete when `pieces` has ended."""

    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        ...

    def pieces(self, schema: pa.Schema) -> Iterator[Piece]:
        """All rows in order, as columns of that schema (this file's own, with types widened to suit others)."""
        ...
