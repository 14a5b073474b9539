"""The interface of a data file reader: first its columns, then its rows in batches."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from backend.contract.errors import InputError

PIECE_ROWS = 8192
PIECE_BYTES = 1 << 25
MAX_COLUMNS = 10_000
"""Of one file, fields within columns included; whatever looks at every column would otherwise take minutes."""


@dataclass(frozen=True)
class Options:
    """How to parse text; `auto` and None mean detect it from the file."""

    delimiter: str | None = None
    encoding: str = "auto"
    quoting: str = "auto"
    sheet: str | None = None
    max_rows: int | None = None
    """No more rows than this are wanted, so a reader need not look further to learn the columns' types."""


@dataclass(frozen=True)
class RowChunk:
    """Some thousand rows."""

    batch: pa.RecordBatch
    lines: np.ndarray  # (rows,) int64, first line of each row in its file, or its record number
    position: int
    """Bytes of the file that have been read."""


class Reader(Protocol):
    """One file, opened for reading. Raises InputError in one sentence, without the spec key."""

    skipped: list[tuple[int, str]]
    """Line and reason of what could not be used; complete when `pieces` has ended."""

    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        ...

    def pieces(self, schema: pa.Schema) -> Iterator[RowChunk]:
        """All rows in order, as columns of that schema (this file's own, with types widened to match other files)."""
        ...


def check_width(name: str, columns: Collection[str] | pa.Schema) -> None:
    """Raises InputError for a file with more columns than `MAX_COLUMNS`."""
    count = _fields(columns) if isinstance(columns, pa.Schema) else len(columns)
    if count > MAX_COLUMNS:
        raise InputError(
            "{name} has more than {max_columns:,} columns; keep the ones with the texts and labels, and "
            "leave out the others",
            name=name,
            max_columns=MAX_COLUMNS,
        )


def first_repeated(names: Iterable[str]) -> str | None:
    """The first duplicate name."""
    known = set[str]()
    for name in names:
        if name in known:
            return name
        known.add(name)
    return None


def _fields(schema: pa.Schema) -> int:
    """The number of columns and nested fields."""
    count, rest = 0, [field.type for field in schema]
    while rest:
        kind = rest.pop()
        count += 1
        if isinstance(kind, pa.BaseExtensionType):
            kind = kind.storage_type
        rest += [kind.field(place).type for place in range(kind.num_fields)]
    return count
