"""The rows of one split as they were read: an Arrow table, each row's location, and the rows that could not be used."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from backend.contract.places import cache_folder


@dataclass(frozen=True)
class SkippedRow:
    """A row that could not be used: its location (`file.csv:12`) and why, in a few plain words."""

    place: str
    reason: str


@dataclass(frozen=True)
class Rows:
    """One split. `table` holds every input column under its own name and in the input's order, never a made-up one.

    Text files give string columns throughout; "None", "NA" and "null" stay text, an empty cell is an empty string.
    """

    table: pa.Table
    files: tuple[str, ...]
    file_index: np.ndarray  # (rows,) int32, index into files
    lines: np.ndarray  # (rows,) int64, first line of the row in its file (record number where there are no lines)
    fingerprint: str
    """Changes with any byte of the content or with how it is read."""
    skipped: tuple[SkippedRow, ...] = ()
    continuous: bool = False
    """The rows are the lines of running text, whose line breaks belong to it."""
    metric_names: tuple[str, ...] = ()
    """What a metric is called for each of several files, such as `{metric}` and `{metric}_mm`; empty: `file/metric`."""

    sheets: str = ""
    """Which of a workbook's sheets was read and which others there are, in words; empty for anything else."""

    def __len__(self) -> int:
        return self.table.num_rows

    def place(self, row: int) -> str:
        """A row's location, for people: `reviews.csv:12`."""
        return f"{self.files[self.file_index[row]]}:{self.lines[row]}"

    def take(self, indices: np.ndarray, fingerprint: str) -> "Rows":
        """These rows in this order, under a new fingerprint."""
        return replace(
            self,
            table=pick(self.table, indices),
            file_index=self.file_index[indices],
            lines=self.lines[indices],
            fingerprint=fingerprint,
            skipped=(),
        )

    def with_skipped(self, skipped: tuple[SkippedRow, ...]) -> "Rows":
        """The same rows with a different list of skipped rows."""
        return replace(self, skipped=skipped)

    def without(self, unusable: list[tuple[int, str]], fingerprint: str) -> "Rows":
        """The rows without the `unusable` (row, reason) ones, which are added to `skipped`."""
        if not unusable:
            return self
        keep = np.ones(len(self), dtype=bool)
        keep[[row for row, _ in unusable]] = False
        more = tuple(SkippedRow(self.place(row), reason) for row, reason in unusable)
        return replace(self.take(np.flatnonzero(keep), fingerprint), skipped=self.skipped + more)


IN_MEMORY_BYTES = 1 << 28
"""Picked rows up to about this size are kept in memory."""


def pick(table: pa.Table, indices: np.ndarray) -> pa.Table:
    """These rows in this order; a view if they are contiguous."""
    if len(indices) == 0 or bool(np.all(np.diff(indices) == 1)):
        return table.slice(int(indices[0]) if len(indices) else 0, len(indices))
    if not bool(np.all(np.diff(indices) > 0)):
        return table.take(pa.array(indices))
    picked = _take_by_batch(table, indices)
    if table.nbytes * len(indices) // table.num_rows <= IN_MEMORY_BYTES:
        return pa.Table.from_batches(list(picked), schema=table.schema)
    return _on_disk(picked, table.schema)


def _take_by_batch(table: pa.Table, indices: np.ndarray) -> Iterator[pa.RecordBatch]:
    # Joining the batches first would copy a whole memory-mapped column, and fails above 2 GB of text.
    start = first = 0
    for batch in table.to_batches():
        cut = int(np.searchsorted(indices, first + batch.num_rows))
        if cut > start:
            yield batch.take(pa.array(indices[start:cut] - first))
        start, first = cut, first + batch.num_rows


def _on_disk(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    # In the cache folder rather than the system's temporary folder, which is often in memory.
    cache_folder().mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(suffix=".arrow", dir=cache_folder())
    os.close(descriptor)
    try:
        with pa.OSFile(name, "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
        return pa.ipc.open_file(pa.memory_map(name)).read_all()
    finally:
        with suppress(PermissionError):  # Windows keeps a mapped file; elsewhere it goes with its last reader
            Path(name).unlink()
