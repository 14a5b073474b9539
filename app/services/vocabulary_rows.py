"""Shows a vocabulary whose tables are memory-mapped Arrow files, so that 256,000 rows cost nothing.

The folder belongs to this process and is removed with it; `backend.contract.tokens.vocabulary` describes its files.
"""

import shutil
import tempfile
import weakref
from pathlib import Path
from typing import Any

import numpy as np

from app.core.formatting import group_digits
from app.core.i18n import figure, plain
from app.core.text.invisible_characters import SPACES
from backend.contract.arrow_numbers import numbers, whole_numbers

FREQUENCY = "frequency"
_FIGURES = (FREQUENCY, "score", "rank")


class VocabularyFolder:
    """The folder that the helper writes a vocabulary to; removed when it is no longer used."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="burnish-vocabulary-"))
        # Also when the window ends: nothing else takes its widgets apart then.
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


class VocabularyRows:
    """One table of a vocabulary (`pieces` or `merges`) for a RowTable."""

    def __init__(self, folder: VocabularyFolder, name: str) -> None:
        import pyarrow as pa  # a quarter of a second, which only who looks at a vocabulary pays

        self._folder = folder
        with pa.memory_map(str(folder.path / f"{name}.arrow")) as source:
            self._table = pa.ipc.open_file(source).read_all()

    @property
    def columns(self) -> list[str]:
        """Names, in order; the frequency comes last once it is known."""
        return self._table.column_names

    @property
    def row_count(self) -> int:
        """The number of rows."""
        return self._table.num_rows

    def set_counts(self, path: str) -> None:
        """Load each piece's frequency from a numpy file."""
        counts = whole_numbers(np.load(path))
        known = [name for name in self.columns if name == FREQUENCY]
        self._table = self._table.drop_columns(known).append_column(FREQUENCY, counts)

    def value(self, row: int, column: str) -> Any:
        """A cell's stored value; None if there is none."""
        return self._table[column][row].as_py()

    def cell(self, row: int, column: int) -> str | None:
        """A cell's display text: large numbers grouped, spaces visible, None if there is no value."""
        name = self.columns[column]
        value = self.value(row, name)
        if name == "text":
            return (value or "").translate(SPACES)
        if value is None:
            return None
        if name in (FREQUENCY, "rank"):
            return group_digits(value)
        return figure(value, ".4f") if name == "score" else str(value)

    def copy_value(self, row: int, column: int) -> str | None:
        """The same, with numbers as programs read them; a piece may look like one, and stays what it is."""
        displayed = self.cell(row, column)
        return plain(displayed) if displayed and self.columns[column] in _FIGURES else displayed

    def row_of_id(self, number: int) -> int:
        """The row of an id, or −1; rows are in id order."""
        ids = numbers(self._table["id"])
        row = int(np.searchsorted(ids, number))
        return row if row < len(ids) and ids[row] == number else -1


def read_numbers(path: str) -> np.ndarray:
    """Row numbers from a file that the helper wrote for this one answer; the file is deleted."""
    found = np.load(path)
    Path(path).unlink(missing_ok=True)
    return found


def write_numbers(folder: VocabularyFolder, rows: np.ndarray) -> str:
    """A file of row numbers for a helper query."""
    path = folder.path / "shown.npy"
    np.save(path, rows)
    return str(path)
