"""In-memory table rows for a RowTable."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from app.core.i18n import plain


@dataclass(frozen=True)
class TableRows:
    """Values row by row; `shown` formats a column's values."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    color: Callable[[int, str], str] = lambda row, column: ""
    """The colour token of a cell, by its row and column name."""
    shown: Callable[[Any, str], object] = lambda value, column: value

    @property
    def row_count(self) -> int:
        """The number of rows."""
        return len(self.rows)

    def cell(self, row: int, column: int) -> object:
        """A cell's display text."""
        return self.shown(self.rows[row][column], self.columns[column])

    def copy_value(self, row: int, column: int) -> object:
        """The same, with numbers as programs read them."""
        displayed, value = self.cell(row, column), self.rows[row][column]
        return plain(displayed) if isinstance(displayed, str) and isinstance(value, int | float) else displayed

    def order(self, column: str, descending: bool) -> list[int]:
        """The rows sorted by a column, those without a value last; unsorted without a column."""
        if not column:
            return list(range(self.row_count))
        place = list(self.columns).index(column)
        known = [row for row, values in enumerate(self.rows) if values[place] is not None]
        unknown = [row for row, values in enumerate(self.rows) if values[place] is None]
        return [*sorted(known, key=lambda row: self.rows[row][place], reverse=descending), *unknown]
