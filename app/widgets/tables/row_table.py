"""A table over rows fetched page by page: it can show a million rows without storing them."""

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from PySide6.QtCore import (
    QAbstractTableModel,
    QItemSelection,
    QItemSelectionModel,
    QModelIndex,
    QPersistentModelIndex,
    Qt,
    Signal,
)
from PySide6.QtGui import QGuiApplication, QKeyEvent, QKeySequence, QResizeEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QTableView,
    QWidget,
)

from app import theme
from app.core.backend_words import capitalize
from app.core.i18n import figure, group_digits, tr
from app.core.table_rows import TableRows
from app.widgets.tables.layout_memory import RememberedColumns
from app.widgets.tables.row_delegate import RowDelegate

ROW_HEIGHT = 34
NUMBER_WIDTH, NUMBER_ROOM = 48, 30
"""Pixels of a short row number, and around the digits of a longer one."""
TITLES = {
    "prediction": tr("Prediction"),
    "actual": tr("Actual"),
    "confidence": tr("Confidence"),
    "lost_words": tr("Truncated words"),
}
"""Columns that are not a person's own."""
LEAST_ALONE, LEAST_STRETCHED = 150, 130
"""Pixels of a column, one alone or each of several, below which a table is rather scrolled sideways."""
ANSWERS = ("actual", "prediction")
"""Columns that are seen without scrolling where a narrower text leaves them room."""
LEAST_TEXT = 96
SHARE = 0.36
"""Of the table's width, for a column of texts in a table that is scrolled sideways."""
LONGEST_CELL = 300
"""Characters of a cell that are drawn; a whole document in a cell would slow every paint."""
AnyIndex = QModelIndex | QPersistentModelIndex
_ROOT = QModelIndex()


class PagedModel(Protocol):
    """A source of rows; reading a cell may read a page, but never the whole file.

    A source with `cells(rows, name)` returns many values of a column at once, so its rows are fetched in blocks.
    """

    @property
    def columns(self) -> Sequence[str]:
        """Names, in order."""
        ...

    @property
    def row_count(self) -> int:
        """The number of rows."""
        ...

    def cell(self, row: int, column: int) -> object:
        """One value."""
        ...


CellColor = Callable[[int, str], str]
"""(row of the source, column name) → colour token, or empty for the usual colour."""
BLOCK_LINES = 32
"""Lines that are fetched together, about as many as are in view."""
KEPT_BLOCKS = 24
"""Blocks in memory."""


@dataclass(frozen=True)
class CellBlock:
    """`texts[column][line]`, and colour tokens likewise (empty for the default colour)."""

    texts: list[list[str]]
    tokens: list[list[str]]


class CellCache:
    """Creates a block on first access and drops those not used for long."""

    def __init__(self, make: Callable[[range], CellBlock]) -> None:
        self._make = make
        self._blocks: OrderedDict[int, CellBlock] = OrderedDict()

    def clear(self) -> None:
        """Drop all blocks: the lines have changed."""
        self._blocks.clear()

    def at(self, line: int) -> tuple[CellBlock, int]:
        """The block of a line, and the line's index in it."""
        number, place = divmod(line, BLOCK_LINES)
        block = self._blocks.get(number)
        if block is None:
            block = self._blocks[number] = self._make(range(number * BLOCK_LINES, (number + 1) * BLOCK_LINES))
            if len(self._blocks) > KEPT_BLOCKS:
                self._blocks.popitem(last=False)
        else:
            self._blocks.move_to_end(number)
        return block, place


class _Rows(QAbstractTableModel):
    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.source: PagedModel | None = None
        self.shown: list[str] = []
        self.places: list[int] = []
        self.indices: Sequence[int] | None = None
        self.color: CellColor = lambda row, column: ""
        self.titles: dict[str, str] = {}
        self._blocks = CellCache(self._make_block)

    def set(self, source: PagedModel | None, shown: list[str], indices: Sequence[int] | None) -> None:
        """Show other rows or other columns."""
        self.beginResetModel()
        self.source, self.shown, self.indices = source, shown, indices
        self.places = [list(source.columns).index(name) for name in shown] if source else []
        self._blocks.clear()
        self.endResetModel()

    def forget(self) -> None:
        """The same rows have new content."""
        self._blocks.clear()

    @property
    def in_blocks(self) -> bool:
        """Whether the source returns many values at once."""
        return hasattr(self.source, "cells")

    def _make_block(self, lines: range) -> CellBlock:
        rows = [self.source_row(line) for line in lines if line < self.rowCount()]
        fetch = self.source.cells  # type: ignore[union-attr]
        texts = [[cell_text(value) for value in fetch(rows, name)] for name in self.shown]
        return CellBlock(texts, [[self.color(row, name) for row in rows] for name in self.shown])

    def source_row(self, row: int) -> int:
        """The source row on a line."""
        return int(self.indices[row]) if self.indices is not None else row

    def rowCount(self, parent: AnyIndex = _ROOT) -> int:
        if self.source is None or parent.isValid():
            return 0
        return len(self.indices) if self.indices is not None else self.source.row_count

    def row_total(self) -> int:
        """The number of source rows, shown or not."""
        return self.source.row_count if self.source is not None else 0

    def columnCount(self, parent: AnyIndex = _ROOT) -> int:
        return len(self.shown) + 1 if self.source else 0

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        if role == Qt.ItemDataRole.DisplayRole and orientation == Qt.Orientation.Horizontal:
            return "#" if section == 0 else self.title(self.shown[section - 1])
        return None

    def title(self, name: str) -> str:
        """A column's display title."""
        return self.titles.get(name) or TITLES.get(name) or capitalize(name.replace("_", " "))

    def data(self, index: AnyIndex, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if role == Qt.ItemDataRole.DisplayRole:
            return self._text(index.row(), index.column())
        if role == Qt.ItemDataRole.ForegroundRole:
            return self._color(index.row(), index.column())
        return None

    def _text(self, row: int, column: int) -> str:
        number = self.source_row(row)
        if column == 0 or self.source is None:
            return group_digits(number + 1)
        if self.in_blocks:
            block, place = self._blocks.at(row)
            return block.texts[column - 1][place]
        return cell_text(self.source.cell(number, self.places[column - 1]))

    def _color(self, row: int, column: int) -> object:
        if column == 0:
            return theme.color("faint")
        if self.in_blocks:
            block, place = self._blocks.at(row)
            token = block.tokens[column - 1][place]
            return theme.color(token) if token else None
        token = self.color(self.source_row(row), self.shown[column - 1])
        return theme.color(token) if token else None


def cell_text(value: object) -> str:
    """A value on one line: short numbers, visible line breaks, long texts truncated."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return figure(value, ".4f" if value == 0 or 1e-3 <= abs(value) < 1e3 else ".4g")
    text = " ".join(map(str, value)) if isinstance(value, list) else str(value)
    line = (text if len(text) <= LONGEST_CELL else f"{text[:LONGEST_CELL]}…").replace("\n", " ⏎ ")
    return line if line.isprintable() else "".join(letter if letter.isprintable() else " " for letter in line)


class RowTable(QTableView):
    """Shows a PagedModel, or the rows of it in `indices`, in that order."""

    row_selected = Signal(int)
    """The row of the source, or −1."""
    sort_requested = Signal(str, bool)
    """Column name (empty: the source's own order) and whether descending."""
    column_resized = Signal(str, int)
    """A person has made a column so wide, in pixels."""
    copied_part = Signal(int)
    """More lines were chosen than are copied; how many were."""

    def __init__(self, parent: QWidget | None = None, *, name: str = "", titles: dict[str, str] | None = None) -> None:
        super().__init__(parent)
        theme.follow(self)
        self.setAccessibleName(name)
        self._model = _Rows(self)
        self._model.titles = titles or {}
        self._sorted: tuple[str, bool] = ("", False)
        self._widths: dict[str, int] = {}
        self._stretched: frozenset[str] = frozenset()
        self._arrangement: tuple[bool, bool] | None = None
        self._is_laying_out = False
        self._remembered: RememberedColumns | None = None
        self.setModel(self._model)
        self.setItemDelegate(RowDelegate(self))
        self.setShowGrid(False)
        self.setAlternatingRowColors(True)
        self.setWordWrap(False)
        self.setTabKeyNavigation(False)  # Tab leaves the table
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        for header in (self.horizontalHeader(), self.verticalHeader()):
            # Their own selection: with the table's, selecting everything asks every header section for every row.
            header.setSelectionModel(QItemSelectionModel(self._model, self))
        self.verticalHeader().hide()
        self.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.verticalHeader().setDefaultSectionSize(ROW_HEIGHT)
        header = self.horizontalHeader()
        header.setFixedHeight(36)
        header.setHighlightSections(False)
        header.setSectionsClickable(True)
        header.setStretchLastSection(False)
        header.sectionClicked.connect(self._on_header_clicked)
        header.sectionResized.connect(self._on_section_resized)
        self.selectionModel().currentRowChanged.connect(self._on_current_changed)

    # What is shown

    def show_rows(
        self,
        rows: TableRows,
        widths: dict[str, int],
        stretched: Collection[str],
        columns: Sequence[str] | None = None,
        numbered: bool = False,
    ) -> None:
        """Show rows that are all there, in their own colours; the rest as the setters below."""
        self.set_source(rows, columns)
        self.set_color(rows.color)
        self.setColumnHidden(0, not numbered)
        self.set_widths({name: widths[name] for name in self.columns}, stretched)

    def set_source(self, source: PagedModel | None, columns: Sequence[str] | None = None) -> None:
        """Show all rows of a source; `columns` selects and orders the columns."""
        self._sorted = ("", False)
        self.horizontalHeader().setSortIndicatorShown(False)
        names = list(columns if columns is not None else source.columns if source else [])
        self._model.set(source, names, None)

    def set_indices(self, indices: Sequence[int] | None) -> None:
        """Show only these source rows, in this order; None shows all."""
        self._model.set(self._model.source, self._model.shown, indices)

    def set_many(self) -> None:
        """Allow selecting several rows, with Shift and Ctrl."""
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)

    def set_columns(self, columns: Sequence[str]) -> None:
        """Show other columns of the same rows."""
        self._arrangement = None
        self._model.set(self._model.source, list(columns), self._model.indices)

    def set_titles(self, titles: dict[str, str]) -> None:
        """Set columns' display titles."""
        self._model.titles = titles

    def title(self, name: str) -> str:
        """A column's display title."""
        return self._model.title(name)

    @property
    def columns(self) -> list[str]:
        """The visible columns, in order."""
        return list(self._model.shown)

    def source_row(self, line: int) -> int:
        """The source row on a line."""
        return self._model.source_row(line)

    def column_of(self, section: int) -> str:
        """The column at a position of the header; empty for the row numbers."""
        return self._model.shown[section - 1] if section > 0 else ""

    def refresh(self) -> None:
        """Read the visible rows again."""
        self._model.forget()
        self.viewport().update()

    def set_color(self, color: CellColor) -> None:
        """Set the function that returns each cell's colour."""
        self._model.color = color

    def remember(self, name: str) -> None:
        """Save the user's column widths and order, by name; `name` is the table's unique key."""
        self._remembered = RememberedColumns(self, name, lambda: ["", *self._model.shown])

    def set_widths(self, widths: dict[str, int], stretched: Collection[str] = ()) -> None:
        """Set widths by column name; `stretched` columns share the remaining width, unless it is too little."""
        self._widths = {name: max(width, self._title_width(name)) for name, width in widths.items()}
        self._stretched = frozenset([stretched] if isinstance(stretched, str) else stretched)
        self._arrangement = None
        self._lay_out_columns()

    def _title_width(self, name: str) -> int:
        if name not in self._model.shown:
            return 0
        return self.horizontalHeader().sectionSizeHint(self._model.shown.index(name) + 1)

    def _lay_out_columns(self) -> None:
        longest = "0" * len(str(self._model.row_total()))
        number_width = max(NUMBER_WIDTH, self.fontMetrics().horizontalAdvance(longest) + NUMBER_ROOM)
        room = self.viewport().width() - (0 if self.isColumnHidden(0) else number_width)
        widths = {name: self._widths.get(name, 120) for name in self._model.shown}
        taken = sum(width for name, width in widths.items() if name not in self._stretched)
        stretched_widths = {name: max(widths[name], round(SHARE * room)) for name in self._stretched if name in widths}
        least = LEAST_ALONE if len(stretched_widths) == 1 else LEAST_STRETCHED * len(stretched_widths)
        stretches = room - taken >= min(
            least, sum(stretched_widths.values())
        )  # else there would be nothing to scroll to
        tight = not stretches and room < sum(stretched_widths.values()) + sum(widths.get(name, 0) for name in ANSWERS)
        if (stretches, tight) == self._arrangement:
            return
        self._arrangement = (stretches, tight)
        if tight and not self._stretched.isdisjoint(widths) and any(name in widths for name in ANSWERS):
            stretched_widths = {
                name: width if name in ANSWERS else LEAST_TEXT for name, width in stretched_widths.items()
            }
        self._is_laying_out = True
        self.setColumnWidth(0, number_width)
        for section, name in enumerate(self._model.shown, start=1):
            fills = stretches and name in self._stretched
            mode = QHeaderView.ResizeMode.Stretch if fills else QHeaderView.ResizeMode.Interactive
            self.horizontalHeader().setSectionResizeMode(section, mode)
            self.setColumnWidth(section, stretched_widths.get(name, widths[name]))
        if self._remembered is not None:
            self._remembered.restore()
        self._is_laying_out = False

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Stretch columns only if the remaining width is enough."""
        super().resizeEvent(event)
        if self._widths:
            self._lay_out_columns()

    def shown_count(self) -> int:
        """The number of rows shown."""
        return self._model.rowCount()

    def shown_text(self, line: int, column: str) -> str:
        """The text on a line under a column name."""
        return self._model._text(line, self._model.shown.index(column) + 1)

    def apply_theme(self) -> None:
        """Nothing to update: cell colours are read at every paint."""
        self.viewport().update()

    # What people do

    def _on_header_clicked(self, section: int) -> None:
        if section == 0:
            self._sorted = ("", False)
            self.horizontalHeader().setSortIndicatorShown(False)
        else:
            name = self._model.shown[section - 1]
            self._sorted = (name, not self._sorted[1] if self._sorted[0] == name else False)
            order = Qt.SortOrder.DescendingOrder if self._sorted[1] else Qt.SortOrder.AscendingOrder
            self.horizontalHeader().setSortIndicatorShown(True)
            self.horizontalHeader().setSortIndicator(section, order)
        self.sort_requested.emit(*self._sorted)

    def _on_section_resized(self, section: int, old: int, new: int) -> None:
        mode = self.horizontalHeader().sectionResizeMode(section)
        if section > 0 and not self._is_laying_out and mode == QHeaderView.ResizeMode.Interactive:
            self.column_resized.emit(self._model.shown[section - 1], new)

    def _on_current_changed(self, current: QModelIndex) -> None:
        self.row_selected.emit(self._model.source_row(current.row()) if current.isValid() else -1)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Ctrl+C copies the selected rows as tab-separated cells."""
        if event.matches(QKeySequence.StandardKey.Copy) and self.selectionModel().hasSelection():
            self.copy_rows()
            return
        super().keyPressEvent(event)

    def copy_rows(self, with_titles: bool = False) -> None:
        """Copy the selected rows to the clipboard as shown, but in full."""
        lines, is_part = chosen_lines(self.selectionModel().selection())
        rows = [self._model.source_row(line) for line in lines]
        cells = list(zip(*[self._values(rows, place) for place in range(len(self._model.shown))], strict=True))
        titles = [tuple(self._model.shown)] if with_titles else []
        QGuiApplication.clipboard().setText(as_tsv([*titles, *cells]))
        if is_part:
            self.copied_part.emit(MAX_COPIED_LINES)

    def copy_cell(self) -> None:
        """Copy the current cell's value to the clipboard, in full."""
        index = self.currentIndex()
        if index.isValid() and index.column() > 0:
            [value] = self._values([self._model.source_row(index.row())], index.column() - 1)
            text = " ".join(map(str, value)) if isinstance(value, list) else "" if value is None else str(value)
            QGuiApplication.clipboard().setText(text)

    def _values(self, rows: Sequence[int], place: int) -> Sequence[object]:
        source = self._model.source
        assert source is not None
        if self._model.in_blocks:
            return source.cells(rows, self._model.shown[place])  # type: ignore[attr-defined]
        if hasattr(source, "copied"):
            return [source.copy_value(row, self._model.places[place]) for row in rows]  # type: ignore[attr-defined]
        return [source.cell(row, self._model.places[place]) for row in rows]


# What Ctrl+C takes: the chosen lines, cells separated by tabs, as a spreadsheet pastes them

MAX_COPIED_LINES = 5000
"""Lines that are copied at once; more take longer than a person should wait for a key, and are exported better."""


def chosen_lines(selection: QItemSelection) -> tuple[list[int], bool]:
    """The selected lines from top to bottom, and whether there are more than can be copied."""
    ranges = sorted({(selection.at(place).top(), selection.at(place).bottom()) for place in range(selection.count())})
    lines: list[int] = []
    for top, bottom in ranges:
        lines += range(top, min(bottom + 1, top + MAX_COPIED_LINES + 1 - len(lines)))
        if len(lines) > MAX_COPIED_LINES:
            return lines[:MAX_COPIED_LINES], True
    return lines, False


def as_tsv(rows: Iterable[Sequence[object]]) -> str:
    """Tab-separated lines; a cell with a tab, a line break or a quote is quoted as spreadsheets expect."""
    return "\n".join("\t".join(_copy_text(value) for value in row) for row in rows)


def _copy_text(value: object) -> str:
    text = "" if value is None else " ".join(map(str, value)) if isinstance(value, list) else str(value)
    return '"' + text.replace('"', '""') + '"' if any(mark in text for mark in '\t\n\r"') else text
