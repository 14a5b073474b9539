"""Owns the rows of one split as they were read: an Arrow table, where each row stands, and what could not be used."""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from backend.data.picking import pick


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
    metric_names: tuple[str, ...] = ()
    """What a metric is called for each of several files, such as `{metric}` and `{metric}_mm`; empty: `file/metric`."""

    sheets: str = ""
    """Which of a workbook's sheets was read and which others there are, in words; empty for anything else."""

    def __len__(self) -> int:
        return self.table.num_rows

    def place(self, row: int) -> str:
        """Where a row stands, for people: `reviews.csv:12`."""
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
