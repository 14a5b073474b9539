"""Owns the table over rows that are fetched page by page: it holds a view on a million rows, never the rows."""

from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from PySide6.QtCore import QAbstractTableModel, QItemSelectionModel, QModelIndex, QPersistentModelIndex, Qt, Signal
from PySide6.QtGui import QGuiApplication, QKeyEvent, QKeySequence, QPalette, QResizeEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QWidget,
)

from app import theme
from app.widgets.remembered import RememberedColumns

ROW_HEIGHT = 34
NUMBER_WIDTH = 60
LEAST_STRETCHED = 90
"""Pixels of a column below which a table is rather scrolled sideways."""
LONGEST_CELL = 300
"""Characters of a cell that are drawn; a whole document in a cell would slow every paint."""


AnyIndex = QModelIndex | QPersistentModelIndex
_ROOT = QModelIndex()


class PagedModel(Protocol):
    """Where rows come from; reading a cell may read a page, but never the whole file."""

    @property
    def columns(self) -> Sequence[str]:
        """Names, in order."""
        ...

    @property
    def row_count(self) -> int:
        """How many rows there are."""
        ...

    def cell(self, row: int, column: int) -> object:
        """One value."""
        ...


CellColor = Callable[[int, str], str]
"""(row of the source, column name) → colour token, or empty for the usual colour."""


class _Rows(QAbstractTableModel):
    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.source: PagedModel | None = None
        self.shown: list[str] = []
        self.places: list[int] = []
        self.indices: Sequence[int] | None = None
        self.color: CellColor = lambda row, column: ""

    def set(self, source: PagedModel | None, shown: list[str], indices: Sequence[int] | None) -> None:
        """Show other rows or other columns."""
        self.beginResetModel()
        self.source, self.shown, self.indices = source, shown, indices
        self.places = [list(source.columns).index(name) for name in shown] if source else []
        self.endResetModel()

    def source_row(self, row: int) -> int:
        """The row of the source that stands in a line."""
        return int(self.indices[row]) if self.indices is not None else row

    def rowCount(self, parent: AnyIndex = _ROOT) -> int:
        if self.source is None or parent.isValid():
            return 0
        return len(self.indices) if self.indices is not None else self.source.row_count

    def columnCount(self, parent: AnyIndex = _ROOT) -> int:
        return len(self.shown) + 1 if self.source else 0

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        if role == Qt.ItemDataRole.DisplayRole and orientation == Qt.Orientation.Horizontal:
            return "#" if section == 0 else self.shown[section - 1].replace("_", " ").capitalize()
        return None

    def data(self, index: AnyIndex, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if role == Qt.ItemDataRole.DisplayRole:
            return self._text(index.row(), index.column())
        if role == Qt.ItemDataRole.ForegroundRole:
            return self._color(index.row(), index.column())
        return None

    def _text(self, row: int, column: int) -> str:
        number = self.source_row(row)
        if column == 0 or self.source is None:
            return f"{number + 1:,}"
        return cell_text(self.source.cell(number, self.places[column - 1]))

    def _color(self, row: int, column: int) -> object:
        if column == 0:
            return theme.color("faint")
        token = self.color(self.source_row(row), self.shown[column - 1])
        return theme.color(token) if token else None


def cell_text(value: object) -> str:
    """A value in one line: numbers short, line breaks visible, long texts cut."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.4f}" if value == 0 or 1e-3 <= abs(value) < 1e3 else f"{value:.4g}"
    text = " ".join(map(str, value)) if isinstance(value, list) else str(value)
    line = (text if len(text) <= LONGEST_CELL else f"{text[:LONGEST_CELL]}…").replace("\n", " ⏎ ")
    return line if line.isprintable() else "".join(letter if letter.isprintable() else " " for letter in line)


class _KeepsColor(QStyledItemDelegate):
    """A selected cell keeps its own colour."""

    def initStyleOption(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> None:
        super().initStyleOption(option, index)
        color = index.data(Qt.ItemDataRole.ForegroundRole)
        if color is not None:
            option.palette.setColor(QPalette.ColorRole.HighlightedText, color)  # type: ignore[attr-defined]


class RowTable(QTableView):
    """Shows a PagedModel, or those of its rows that `indices` names, in that order."""

    row_selected = Signal(int)
    """The row of the source, or −1."""
    sort_requested = Signal(str, bool)
    """Column name (empty: the source's own order) and whether descending."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._model = _Rows(self)
        self._sorted: tuple[str, bool] = ("", False)
        self._widths: dict[str, int] = {}
        self._stretched: frozenset[str] = frozenset()
        self._is_stretched: bool | None = None
        self._remembered: RememberedColumns | None = None
        self.setModel(self._model)
        self.setItemDelegate(_KeepsColor(self))
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
        self.selectionModel().currentRowChanged.connect(self._on_current_changed)

    # What is shown

    def set_source(self, source: PagedModel | None, columns: Sequence[str] | None = None) -> None:
        """Show all rows of a source; `columns` chooses and orders."""
        self._sorted = ("", False)
        self.horizontalHeader().setSortIndicatorShown(False)
        names = list(columns if columns is not None else source.columns if source else [])
        self._model.set(source, names, None)

    def set_indices(self, indices: Sequence[int] | None) -> None:
        """Show only these rows of the source, in this order; None shows all."""
        self._model.set(self._model.source, self._model.shown, indices)

    def set_color(self, color: CellColor) -> None:
        """Decide the colour of each cell."""
        self._model.color = color

    def remember(self, name: str) -> None:
        """Keep widths and order of the columns, by their names, as a person leaves them; `name` is the table's own."""
        self._remembered = RememberedColumns(self, name, lambda: ["", *self._model.shown])

    def set_widths(self, widths: dict[str, int], stretched: Collection[str] = ()) -> None:
        """Widths by column name; those that are `stretched` share what is left, unless it is too little."""
        self._widths = widths
        self._stretched = frozenset([stretched] if isinstance(stretched, str) else stretched)
        self._is_stretched = None
        self._lay_out_columns()

    def _lay_out_columns(self) -> None:
        taken = NUMBER_WIDTH + sum(width for name, width in self._widths.items() if name not in self._stretched)
        stretches = self.viewport().width() - taken >= LEAST_STRETCHED * len(self._stretched)
        if stretches == self._is_stretched:
            return
        self._is_stretched = stretches
        self.setColumnWidth(0, NUMBER_WIDTH)
        for section, name in enumerate(self._model.shown, start=1):
            fills = stretches and name in self._stretched
            mode = QHeaderView.ResizeMode.Stretch if fills else QHeaderView.ResizeMode.Interactive
            self.horizontalHeader().setSectionResizeMode(section, mode)
            self.setColumnWidth(section, self._widths.get(name, 120))
        if self._remembered is not None:
            self._remembered.restore()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Columns share what is left only where that is enough."""
        super().resizeEvent(event)
        if self._widths:
            self._lay_out_columns()

    def shown_count(self) -> int:
        """How many rows can be scrolled to."""
        return self._model.rowCount()

    def shown_text(self, line: int, column: str) -> str:
        """The text in a line under a column name."""
        return self._model._text(line, self._model.shown.index(column) + 1)

    def apply_theme(self) -> None:
        """Cell colours are asked for at every paint."""
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

    def _on_current_changed(self, current: QModelIndex) -> None:
        self.row_selected.emit(self._model.source_row(current.row()) if current.isValid() else -1)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Ctrl+C copies the row, cells separated by tabs."""
        if event.matches(QKeySequence.StandardKey.Copy) and self.currentIndex().isValid():
            row, source = self._model.source_row(self.currentIndex().row()), self._model.source
            assert source is not None
            QGuiApplication.clipboard().setText("\t".join(str(source.cell(row, p)) for p in self._model.places))
            return
        super().keyPressEvent(event)
