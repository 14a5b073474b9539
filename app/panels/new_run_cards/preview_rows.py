"""Owns the few rows of a data preview as the table widget wants them: the columns that play a part come first."""

from collections.abc import Collection

from backend.contract.queries import DataPreview

NARROW, WIDE = 64, 150
"""Pixels of a column."""
LETTER = 8
LONG = 24
"""Letters from which a column is a text, which takes what room there is."""


class PreviewRows:
    """The rows of a `DataPreview`; `used` are the columns that play a part."""

    def __init__(self, preview: DataPreview, used: Collection[str] = ()) -> None:
        first = [name for name in dict.fromkeys(used) if name in preview.columns]
        self.columns = [*first, *(name for name in preview.columns if name not in first)]
        self.used = first
        self._places = [preview.columns.index(name) for name in self.columns]
        self._rows = preview.rows
        self.row_count = len(preview.rows)

    def cell(self, row: int, column: int) -> object:
        """One value; a short row has nothing there."""
        cells, place = self._rows[row], self._places[column]
        return cells[place] if place < len(cells) else None

    def widths(self) -> dict[str, int]:
        """Pixels for each column, by the longest of its first cells and its name."""
        return {name: min(WIDE, max(NARROW, 28 + LETTER * self._letters(name))) for name in self.columns}

    def texts(self) -> list[str]:
        """The columns in use that hold texts; without one the first column."""
        found = [name for name in self.used if self._letters(name) >= LONG]
        return found or self.used[:1] or self.columns[:1]

    def _letters(self, name: str) -> int:
        place = self.columns.index(name)
        cells = (str(self.cell(row, place)) for row in range(min(20, self.row_count)))
        return max(len(name), *map(len, cells)) if self.row_count else len(name)
