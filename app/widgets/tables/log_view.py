"""A log: a table with one column and rows of equal height, the fastest list in Qt."""

import math
from collections.abc import Sequence

from PySide6.QtCore import QAbstractTableModel, QItemSelectionModel, QModelIndex, QPersistentModelIndex, Qt
from PySide6.QtGui import QFontMetricsF, QGuiApplication, QKeyEvent, QKeySequence, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QTableView, QWidget

from app import theme
from app.core.i18n import tr

MAX_LINES = 100_000
ROW_HEIGHT = 18
ROOM = 24
"""Pixels around a line: the cell's padding and some air before the edge."""


AnyIndex = QModelIndex | QPersistentModelIndex
_ROOT = QModelIndex()


class _Lines(QAbstractTableModel):
    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.lines: list[str] = []

    def rowCount(self, parent: AnyIndex = _ROOT) -> int:
        return 0 if parent.isValid() else len(self.lines)

    def columnCount(self, parent: AnyIndex = _ROOT) -> int:
        return 1

    def data(self, index: AnyIndex, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        return self.lines[index.row()] if role == Qt.ItemDataRole.DisplayRole else None

    def append(self, lines: Sequence[str]) -> None:
        """Add lines; drops the oldest tenth when there are too many."""
        self.beginInsertRows(QModelIndex(), len(self.lines), len(self.lines) + len(lines) - 1)
        self.lines.extend(lines)
        self.endInsertRows()
        surplus = len(self.lines) - MAX_LINES
        if surplus > 0:
            gone = surplus + MAX_LINES // 10
            self.beginRemoveRows(QModelIndex(), 0, gone - 1)
            del self.lines[:gone]
            self.endRemoveRows()

    def clear(self) -> None:
        """Forget all lines."""
        self.beginResetModel()
        self.lines.clear()
        self.endResetModel()


class LogView(QTableView):
    """Follows the end unless the user scrolled up; Ctrl+C copies lines. `nothing` is shown if there are none."""

    def __init__(self, nothing: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.nothing = nothing
        theme.role(self, "log")
        self._model = _Lines(self)
        self._widest = 0.0
        self.setModel(self._model)
        theme.give_font(self, 12, mono=True)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setTabKeyNavigation(False)  # Tab leaves the table
        self.setTextElideMode(Qt.TextElideMode.ElideNone)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        for header in (self.horizontalHeader(), self.verticalHeader()):
            # Their own selection: with the table's, selecting everything asks every header section for every row.
            header.setSelectionModel(QItemSelectionModel(self._model, self))
            header.hide()
        self.verticalHeader().setMinimumSectionSize(ROW_HEIGHT)
        self.verticalHeader().setDefaultSectionSize(ROW_HEIGHT)
        self.setAccessibleName(tr("Log"))
        self._follows = True
        self.verticalScrollBar().valueChanged.connect(self._on_scrolled)
        self.verticalScrollBar().rangeChanged.connect(self._on_range_changed)

    def line_count(self) -> int:
        """The number of lines."""
        return len(self._model.lines)

    def text(self) -> str:
        """All lines."""
        return "\n".join(self._model.lines)

    def append_lines(self, lines: Sequence[str]) -> None:
        """Add lines at the end."""
        if not lines:
            return
        self._model.append(lines)
        # Letters are of one width, but for a few from other fonts: the longest line is as good as the widest.
        self._widen(max(lines, key=len))

    def _on_scrolled(self, value: int) -> None:
        self._follows = value >= self.verticalScrollBar().maximum() - ROW_HEIGHT

    def _on_range_changed(self, least: int, most: int) -> None:
        if self._follows:
            self.verticalScrollBar().setValue(most)

    def clear(self) -> None:
        """Forget all lines."""
        self._model.clear()
        self._follows = True
        self._widest = 0.0
        self._fit()

    def _widen(self, line: str) -> None:
        self._widest = max(self._widest, QFontMetricsF(theme.mono_font(12)).horizontalAdvance(line))
        self._fit()

    def _fit(self) -> None:
        # No line is cut: what is wider than the view is scrolled to.
        self.setColumnWidth(0, max(self.viewport().width(), math.ceil(self._widest) + ROOM))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Mark a selected line over the full width; at the end, avoid a partial line at the top."""
        super().resizeEvent(event)
        self._fit()
        before = self.viewportMargins().top()
        spare = (self.viewport().height() + before) % ROW_HEIGHT
        if spare != before:
            self.setViewportMargins(0, spare, 0, 0)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the placeholder text if there are no lines."""
        super().paintEvent(event)
        if not self._model.lines and self.nothing:
            painter = QPainter(self.viewport())
            painter.setPen(theme.color("muted"))
            painter.setFont(theme.font())
            painter.drawText(self.viewport().rect(), Qt.AlignmentFlag.AlignCenter, self.nothing)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Ctrl+C copies whole lines."""
        if event.matches(QKeySequence.StandardKey.Copy):
            self.copy()
            return
        super().keyPressEvent(event)

    def copy(self) -> None:
        """Copy the selected lines, or all if none are selected, to the clipboard."""
        ranges = self.selectionModel().selection().toList()
        rows = sorted({row for span in ranges for row in range(span.top(), span.bottom() + 1)})
        lines = [self._model.lines[row] for row in rows] if rows else self._model.lines
        QGuiApplication.clipboard().setText("\n".join(lines))
