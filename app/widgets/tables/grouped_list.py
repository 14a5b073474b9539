"""A list grouped under headings; columns are hidden when there is little room, and Enter activates a row."""

from collections.abc import Mapping, Sequence
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QItemSelectionModel, QModelIndex, QPersistentModelIndex, Qt, Signal
from PySide6.QtGui import QFont, QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView, QWidget

from app import theme
from app.core.heading import GroupHeading

Index = QModelIndex | QPersistentModelIndex
_ROOT = QModelIndex()


class GroupedListModel(QAbstractTableModel):
    """Items and headings; `titles` are the columns by name, and headings are in the first column."""

    def __init__(self, titles: Mapping[str, str]) -> None:
        super().__init__()
        self.titles, self.names = titles, tuple(titles)
        self.lines: list[Any] = []

    def show(self, lines: Sequence[Any]) -> None:
        """Show these."""
        self.beginResetModel()
        self.lines = list(lines)
        self.endResetModel()

    def item(self, row: int) -> Any:
        """The item on a line, None for a heading."""
        line = self.lines[row] if 0 <= row < len(self.lines) else None
        return None if isinstance(line, GroupHeading) else line

    @property
    def items(self) -> list[Any]:
        """All items without the headings."""
        return [line for line in self.lines if not isinstance(line, GroupHeading)]

    def of_item(self, item: Any, column: str, role: int) -> object:
        """The item's data for a Qt role."""
        raise NotImplementedError

    def rowCount(self, parent: Index = _ROOT) -> int:
        return 0 if parent.isValid() else len(self.lines)

    def columnCount(self, parent: Index = _ROOT) -> int:
        return len(self.names)

    def flags(self, index: Index) -> Qt.ItemFlag:
        """A heading can be neither selected nor reached with the arrow keys."""
        return super().flags(index) if self.item(index.row()) is not None else Qt.ItemFlag.NoItemFlags

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if orientation != Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        return self.titles[self.names[section]] if role == Qt.ItemDataRole.DisplayRole else None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        line = self.lines[index.row()]
        if isinstance(line, GroupHeading):
            return _of_heading(line, index.column(), role)
        return self.of_item(line, self.names[index.column()], role)


def _of_heading(heading: GroupHeading, column: int, role: int) -> object:
    if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole) and column == 0:
        return f"{heading.title}  ·  {heading.count}"
    if role == Qt.ItemDataRole.ForegroundRole:
        return theme.color("muted")
    if role == Qt.ItemDataRole.BackgroundRole:
        return theme.color("window")
    return theme.font(12, QFont.Weight.DemiBold) if role == Qt.ItemDataRole.FontRole else None


class GroupedList(QTableView):
    """The first column gets the remaining width; those of `leaving` are hidden first if that is less than `least`."""

    taken = Signal(object)
    """An item, by Enter or a double click."""

    def __init__(
        self,
        lines: GroupedListModel,
        widths: Mapping[str, int],
        leaving: Sequence[str],
        least: int,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        theme.follow(self)
        self._lines, self._widths, self._leaving, self._least = lines, widths, leaving, least
        lines.setParent(self)
        self.setModel(lines)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setTabKeyNavigation(False)  # Tab leaves the list
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        for header in (self.horizontalHeader(), self.verticalHeader()):
            # Their own selection: with the table's, selecting everything asks every header section for every row.
            header.setSelectionModel(QItemSelectionModel(lines, self))
        self.verticalHeader().hide()
        header = self.horizontalHeader()
        header.setHighlightSections(False)
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        for name, width in widths.items():
            self.setColumnWidth(lines.names.index(name), width)
        self.doubleClicked.connect(lambda index: self._take(lines.item(index.row())))

    def item_at_hand(self) -> Any:
        """The item that Enter activates; None if there is none."""
        return self._lines.item(self.currentIndex().row())

    def span_headings(self) -> None:
        """Let every heading span the whole line."""
        self.clearSpans()
        for row in range(len(self._lines.lines)):
            if self._lines.item(row) is None:
                self.setSpan(row, 0, 1, len(self._lines.names))

    def show_columns_for(self, width: int) -> None:
        """Hide the least important columns if there is little room for the first."""
        left = width - self._least - sum(self._widths.values())
        for name in self._leaving:
            self.setColumnHidden(self._lines.names.index(name), left < 0)
            left += self._widths[name] if left < 0 else 0

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Fit the columns."""
        self.show_columns_for(event.size().width())
        super().resizeEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter activates the item."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self.item_at_hand() is not None:
            self._take(self.item_at_hand())
            return
        super().keyPressEvent(event)

    def _take(self, item: Any) -> None:
        if item is not None:
            self.taken.emit(item)

    def apply_theme(self) -> None:
        """Nothing to update: colours are read at every paint."""
        self.viewport().update()
