"""Owns the rows of one split as they were read: an Arrow table, where each row stands, and what could not be used."""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa


@dataclass(frozen=True)
class Skipped:
    """A row that could not be used: where it stands (`file.csv:12`) and why, in a few plain words."""

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
    skipped: tuple[Skipped, ...] = ()
    continuous: bool = False
    """The rows are the lines of running text, whose line breaks belong to it."""

    def __len__(self) -> int:
        return self.table.num_rows

    def place(self, row: int) -> str:
        """Where a row stands, for people: `reviews.csv:12`."""
        return f"{self.files[self.file_index[row]]}:{self.lines[row]}"

    def take(self, indices: np.ndarray, fingerprint: str) -> "Rows":
        """These rows in this order, under a new fingerprint."""
        return replace(
            self,
            table=_taken(self.table, indices),
            file_index=self.file_index[indices],
            lines=self.lines[indices],
            fingerprint=fingerprint,
            skipped=(),
        )

    def with_skipped(self, skipped: tuple[Skipped, ...]) -> "Rows":
        """The same rows with another list of what could not be used."""
        return replace(self, skipped=skipped)

    def without(self, unusable: list[tuple[int, str]], fingerprint: str) -> "Rows":
        """The rows that are left when `unusable` (row, reason) are taken out and added to `skipped`."""
        if not unusable:
            return self
        keep = np.ones(len(self), dtype=bool)
        keep[[row for row, _ in unusable]] = False
        more = tuple(Skipped(self.place(row), reason) for row, reason in unusable)
        return replace(self.take(np.flatnonzero(keep), fingerprint), skipped=self.skipped + more)


def _taken(table: pa.Table, indices: np.ndarray) -> pa.Table:
    """Rows of a table: a view where they lie together, else chunk by chunk, so that no column must be joined first.

    Joining would copy a whole memory-mapped column, and fails above 2 GB of text.
    """
    if len(indices) == 0 or bool(np.all(np.diff(indices) == 1)):
        return table.slice(int(indices[0]) if len(indices) else 0, len(indices))
    if not bool(np.all(np.diff(indices) > 0)):
        return table.take(pa.array(indices))
    batches = table.to_batches()
    ends = np.cumsum([batch.num_rows for batch in batches])
    cuts = np.searchsorted(indices, ends)
    starts = np.concatenate([[0], cuts[:-1]])
    taken = [
        batch.take(pa.array(indices[start:cut] - (end - batch.num_rows)))
        for batch, start, cut, end in zip(batches, starts, cuts, ends, strict=True)
        if cut > start
    ]
    return pa.Table.from_batches(taken, schema=table.schema)
