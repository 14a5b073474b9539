"""Shows a vocabulary whose cells are in memory-mapped numpy files, so that 256,000 rows cost nothing.

The folder belongs to this process and is removed with it; `backend.contract.tokens.vocabulary` describes its files.
"""

import shutil
import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from app.core.formatting import group_digits
from app.core.i18n import figure, plain
from app.core.text.invisible_characters import SPACES

FREQUENCY = "frequency"
_WRITTEN = ("text",)
"""Text columns, whose spaces are made visible."""
_NUMBERS = ("rank",)
_FIGURES = (FREQUENCY, "score", *_NUMBERS)
"""Columns of numbers; a piece may look like one, and stays what it is."""


class VocabularyFolder:
    """The folder that the helper writes a vocabulary to; removed when it is no longer used."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="burnish-vocabulary-"))
        # Also when the window ends: nothing else takes its widgets apart then.
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


class VocabularyRows:
    """One table of a vocabulary (`pieces` or `merges`) for a RowTable; all cells are texts."""

    def __init__(self, folder: VocabularyFolder, name: str, columns: Sequence[str]) -> None:
        self._folder = folder
        self._cells = np.load(folder.path / f"{name}.cells.npy", mmap_mode="r")
        self._offsets = np.load(folder.path / f"{name}.offsets.npy", mmap_mode="r")  # (columns, rows + 1)
        self._names = list(columns)
        self._counts: np.ndarray | None = None

    @property
    def columns(self) -> list[str]:
        """Names, in order; the frequency comes last once it is known."""
        return [*self._names, *([FREQUENCY] if self._counts is not None else [])]

    @property
    def row_count(self) -> int:
        """The number of rows."""
        return self._offsets.shape[1] - 1

    def set_counts(self, path: str) -> None:
        """Load each piece's frequency from a numpy file."""
        self._counts = np.load(path) if path else None

    def raw(self, row: int, column: str) -> str:
        """A cell's stored text; empty if there is no value."""
        if column == FREQUENCY:
            return "" if self._counts is None else str(self._counts[row])
        begin, end = self._offsets[self._names.index(column), row : row + 2]
        return self._cells[begin:end].tobytes().decode("utf-8", "replace")

    def cell(self, row: int, column: int) -> str | None:
        """A cell's display text: large numbers grouped, spaces visible, None if there is no value."""
        name = self.columns[column]
        value = self.raw(row, name)
        if name in _WRITTEN:
            return value.translate(SPACES)
        if name == FREQUENCY or name in _NUMBERS:
            return group_digits(int(value)) if value else None
        if name == "score":
            return figure(float(value), ".4f") if value else None
        return value or None

    def copy_value(self, row: int, column: int) -> str | None:
        """The same, with numbers as programs read them."""
        displayed = self.cell(row, column)
        return plain(displayed) if displayed and self.columns[column] in _FIGURES else displayed

    def row_of_id(self, number: int) -> int:
        """The row of an id, or −1; rows are in id order."""
        low, high = 0, self.row_count
        while low < high:
            middle = (low + high) // 2
            if int(self.raw(middle, "id")) < number:
                low = middle + 1
            else:
                high = middle
        return low if low < self.row_count and self.raw(low, "id") == str(number) else -1


def read_numbers(path: str) -> np.ndarray:
    """Row numbers from a file that the helper wrote for this one answer; the file is deleted."""
    numbers = np.load(path)
    Path(path).unlink(missing_ok=True)
    return numbers


def write_numbers(folder: VocabularyFolder, numbers: np.ndarray) -> str:
    """A file of row numbers for a helper query."""
    path = folder.path / "shown.npy"
    np.save(path, numbers)
    return str(path)
