"""A small table of texts that can be read, selected and copied, such as a comparison."""

from collections.abc import Mapping, Sequence

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt, Signal
from PySide6.QtGui import QGuiApplication, QKeyEvent, QKeySequence, QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView, QWidget

from app import theme
from app.core.i18n import plain
from app.widgets.text.directed_text import DirectedText

ROW_HEIGHT = 30
LEAST_WIDTH, MAX_WIDTH = 90, 260
Index = QModelIndex | QPersistentModelIndex
_ROOT = QModelIndex()


class _Texts(QAbstractTableModel):
    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.header: Sequence[str] = ()
        self.rows: Sequence[Sequence[str]] = ()
        self.hint = ""
        self.hints: Sequence[str] = ()
        self.colors: Mapping[int, str] = {}

    def set(
        self, header: Sequence[str], rows: Sequence[Sequence[str]], colors: Mapping[int, str], hints: Sequence[str]
    ) -> None:
        self.beginResetModel()
        self.header, self.rows, self.colors, self.hints = header, rows, colors, hints
        self.endResetModel()

    def rowCount(self, parent: Index = _ROOT) -> int:
        return 0 if parent.isValid() else len(self.rows)

    def columnCount(self, parent: Index = _ROOT) -> int:
        return 0 if parent.isValid() else len(self.header)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if orientation != Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        named = role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole)
        return self.header[section] if named else None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if role == Qt.ItemDataRole.ToolTipRole and self.hints:
            return self.hints[index.row()]
        if role == Qt.ItemDataRole.ToolTipRole and self.hint:
            return self.hint
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole):
            return self.rows[index.row()][index.column()]
        if role == Qt.ItemDataRole.ForegroundRole and index.row() in self.colors:
            return theme.color(self.colors[index.row()])
        if role == Qt.ItemDataRole.ForegroundRole and index.column() == 0:
            return theme.color("muted")
        return None


class TextTable(QTableView):
    """`show_rows` fills it; the first column names the row."""

    row_chosen = Signal(int)
    """A row was clicked, or Enter pressed on it, in a table whose rows can be chosen."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        theme.follow(self)
        self._texts = _Texts(self)
        self._wanted: list[int] = []
        """Pixels with which every column would show its longest text."""
        self._dragged: set[int] = set()
        """Columns whose width the person chose."""
        self._is_fitting = False
        self.setModel(self._texts)
        self.setItemDelegate(DirectedText(self))
        self.setAccessibleName(name)
        self.setShowGrid(False)
        self.setAlternatingRowColors(True)
        self.setWordWrap(False)
        self.setTabKeyNavigation(False)  # Tab leaves the table
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.clicked.connect(lambda index: self._choose(index.row()))
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(ROW_HEIGHT)
        header = self.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        header.setStretchLastSection(True)
        header.setHighlightSections(False)
        header.setMinimumHeight(ROW_HEIGHT)
        header.sectionResized.connect(self._on_section_resized)

    def show_rows(
        self,
        header: Sequence[str],
        rows: Sequence[Sequence[str]],
        colors: Mapping[int, str] | None = None,
        hints: Sequence[str] = (),
    ) -> None:
        """Show these texts, sizing each column to its texts, within limits if they do not all fit.

        `colors` has a colour's token for some rows, `hints` what is said of each row instead of its texts.
        """
        if list(header) != list(self._texts.header):
            self._dragged.clear()
        self._is_fitting = True  # a reset gives columns their default widths
        self._texts.set(header, rows, colors or {}, hints)
        self._is_fitting = False
        metrics = self.fontMetrics()
        longest = [
            max(metrics.horizontalAdvance(text) for text in (title, *(row[column] for row in rows[:200])))
            for column, title in enumerate(header)
        ]
        self._wanted = [max(LEAST_WIDTH, width + 32) for width in longest]
        self._set_widths()

    def _set_widths(self) -> None:
        fits = sum(self._wanted) <= self.viewport().width()
        self._is_fitting = True
        for column, wanted in enumerate(self._wanted):
            if column not in self._dragged:
                self.setColumnWidth(column, wanted if fits else min(MAX_WIDTH, wanted))
        self._is_fitting = False

    def _on_section_resized(self, column: int) -> None:
        is_stretched = column == len(self._wanted) - 1
        if not self._is_fitting and not is_stretched:
            self._dragged.add(column)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Use the room for whole texts."""
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self._set_widths()

    def set_choosable(self, hint: str) -> None:
        """Make rows selectable, with a hint that says what happens; empty: not selectable."""
        self._texts.hint = hint
        shape = Qt.CursorShape.PointingHandCursor if hint else Qt.CursorShape.ArrowCursor
        self.viewport().setCursor(shape)

    def _choose(self, row: int) -> None:
        if self._texts.hint:
            self.row_chosen.emit(row)

    def texts(self) -> list[list[str]]:
        """The texts shown, row by row."""
        return [list(row) for row in self._texts.rows]

    def header_texts(self) -> list[str]:
        """The titles of the columns."""
        return list(self._texts.header)

    def apply_theme(self) -> None:
        """Nothing to update: colours are read at every paint."""
        self.viewport().update()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter activates a row; copying takes the selected cells, tab-separated, numbers as programs read them."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self._texts.hint and self.currentIndex().isValid():
            self._choose(self.currentIndex().row())
            return
        if not event.matches(QKeySequence.StandardKey.Copy):
            super().keyPressEvent(event)
            return
        rows: dict[int, list[str]] = {}
        for index in sorted(self.selectedIndexes(), key=lambda one: (one.row(), one.column())):
            text = str(index.data())
            rows.setdefault(index.row(), []).append(plain(text) if index.column() else text)
        QGuiApplication.clipboard().setText("\n".join("\t".join(row) for row in rows.values()))
