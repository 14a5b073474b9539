"""A table with a few rows of data: column names, their types, and their roles in colour."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, QRect, QSize, Qt, Signal
from PySide6.QtGui import QBrush, QColor, QFont, QGuiApplication, QKeyEvent, QKeySequence, QPainter, QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView, QWidget

from app import theme
from app.core.i18n import group_digits, tr

ROW_HEIGHT, HEADER_HEIGHT = 30, 46
NUMBER_WIDTH = 48
NARROW, WIDE, LETTER = 72, 170, 7
"""Pixels of a column without texts, and of a letter."""
LONG = 24
"""Letters from which a column is a text, which takes what room there is."""
LEAST_STRETCHED = 140
SHOWN, HINTED, HINT_WIDTH = 200, 1500, 90
"""Characters of a cell that are drawn, that its tooltip has, and in one line of it."""
PART_COLORS = ("plot_1", "plot_2", "plot_3", "plot_4", "plot_5")
Index = QModelIndex | QPersistentModelIndex
_ROOT = QModelIndex()


@dataclass(frozen=True)
class PreviewColumn:
    """`part` is its role, empty if none; `color` is a colour token."""

    name: str
    kind: str = ""
    part: str = ""
    color: str = ""


def part_color(place: int) -> str:
    """The colour of the role at an index among the task's."""
    return PART_COLORS[place % len(PART_COLORS)]


class _Rows(QAbstractTableModel):
    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.shown: list[PreviewColumn] = []
        self.rows: Sequence[Sequence[str]] = ()
        self.places: list[int] = []

    def set(self, shown: list[PreviewColumn], rows: Sequence[Sequence[str]], places: list[int]) -> None:
        self.beginResetModel()
        self.shown, self.rows, self.places = shown, rows, places
        self.endResetModel()

    def rowCount(self, parent: Index = _ROOT) -> int:
        return 0 if parent.isValid() else len(self.rows)

    def columnCount(self, parent: Index = _ROOT) -> int:
        return 0 if parent.isValid() or not self.shown else len(self.shown) + 1

    def cell(self, row: int, section: int) -> str:
        cells, place = self.rows[row], self.places[section - 1]
        return cells[place] if place < len(cells) else ""

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if orientation != Qt.Orientation.Horizontal:
            return None
        column = self.shown[section - 1] if section else None
        if role == Qt.ItemDataRole.DisplayRole:
            return column.name if column else "#"
        if role in (Qt.ItemDataRole.ToolTipRole, Qt.ItemDataRole.AccessibleTextRole) and column:
            return column_words(column)
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        row, section = index.row(), index.column()
        if role == Qt.ItemDataRole.DisplayRole:
            return one_line(self.cell(row, section)) if section else group_digits(row + 1)
        if role == Qt.ItemDataRole.ToolTipRole and section:
            text = self.cell(row, section)
            return _tip(text) if len(text) > LONG else None
        if role == Qt.ItemDataRole.ForegroundRole and (not section or not self.shown[section - 1].part):
            return theme.color("faint" if not section else "muted")
        if role == Qt.ItemDataRole.BackgroundRole and section and self.shown[section - 1].color:
            return _tint(self.shown[section - 1].color)
        return None


def column_words(column: PreviewColumn) -> str:
    """A column in words: `stars: Label, whole numbers`."""
    parts = [word for word in (column.part or tr("unused"), column.kind) if word]
    return f"{column.name}: {', '.join(parts)}"


def _below(column: PreviewColumn) -> str:
    """The text below the name: the role, and the kind unless it is text, as it usually is."""
    lower_line = (column.part, column.kind if column.kind != "text" or not column.part else "")
    return " · ".join(filter(None, lower_line))


def one_line(text: str) -> str:
    """A cell on one line: line breaks visible, undrawable characters as spaces, long texts truncated."""
    line = (text if len(text) <= SHOWN else f"{text[:SHOWN]}…").replace("\n", " ⏎ ")
    return line if line.isprintable() else "".join(letter if letter.isprintable() else " " for letter in line)


def _tip(text: str) -> str:
    """A cell as an HTML tooltip, because Qt only wraps HTML."""
    excerpt = text if len(text) <= HINTED else f"{text[:HINTED]}…"
    return "\n".join(textwrap.fill(line, HINT_WIDTH, replace_whitespace=False) for line in excerpt.split("\n"))


def _tint(token: str) -> QBrush:
    color = QColor(theme.color(token))
    color.setAlphaF(0.14 if theme.is_dark() else 0.07)
    return QBrush(color)


class _Header(QHeaderView):
    """Two lines: the name, and below it role and kind; a line in the role's colour at the bottom."""

    def __init__(self, parent: QTableView, rows: _Rows) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent)
        self._rows = rows
        self.setHighlightSections(False)
        self.setSectionsClickable(False)

    def sizeHint(self) -> QSize:
        """Room for two lines."""
        return QSize(super().sizeHint().width(), HEADER_HEIGHT)

    def paintSection(self, painter: QPainter, rect: QRect, logicalIndex: int) -> None:  # noqa: N803 (Qt's name)
        """The section in the theme's colours."""
        painter.save()
        painter.fillRect(rect, theme.color("card"))
        inside = rect.adjusted(13, 5, -6, -5)
        column = self._rows.shown[logicalIndex - 1] if logicalIndex else PreviewColumn("#")
        name, words = QRect(inside), QRect(inside)
        name.setHeight(18)
        words.setTop(name.bottom() + 1)
        painter.setFont(theme.font(12, QFont.Weight.DemiBold))
        painter.setPen(theme.color("text" if column.part else "muted"))
        self._draw(painter, name, column.name)
        painter.setFont(theme.font(11))
        painter.setPen(theme.color(column.color or "faint"))
        self._draw(painter, words, _below(column))
        foot = QRect(rect.left(), rect.bottom() - (2 if column.color else 0), rect.width(), 3 if column.color else 1)
        painter.fillRect(foot, theme.color(column.color or "border"))
        painter.restore()

    def _draw(self, painter: QPainter, area: QRect, text: str) -> None:
        elided = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, area.width())
        painter.drawText(area, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, elided)


class PreviewTable(QTableView):
    """Emits `row_requested` when a row is double-clicked, or Return is pressed on it."""

    row_requested = Signal(int)

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        theme.follow(self)
        self._model = _Rows(self)
        self._widths: list[int] = []
        self._texts: set[int] = set()
        self.setModel(self._model)
        self.setHorizontalHeader(_Header(self, self._model))
        self.setAccessibleName(name)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setTabKeyNavigation(False)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.verticalHeader().hide()
        self.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.verticalHeader().setDefaultSectionSize(ROW_HEIGHT)
        self.doubleClicked.connect(lambda index: self.row_requested.emit(index.row()))

    def show_rows(self, columns: Sequence[PreviewColumn], rows: Sequence[Sequence[str]]) -> None:
        """Show rows, with columns that have a role first; the cells of `rows` are in the order of `columns`."""
        places = sorted(range(len(columns)), key=lambda place: not columns[place].part)
        self._model.set([columns[place] for place in places], rows, places)
        letters = [self._letters(section) for section in range(1, len(places) + 1)]
        self._widths = [min(WIDE, max(NARROW, 26 + LETTER * count)) for count in letters]
        used = [at for at, place in enumerate(places) if columns[place].part]
        self._texts = {at for at in used if letters[at] >= LONG} or set(used[:1] or [0])
        self._lay_out()

    def _letters(self, section: int) -> int:
        column = self._model.shown[section - 1]
        cells = (len(self._model.cell(row, section)) for row in range(min(20, len(self._model.rows))))
        return max(len(column.name), len(column.kind) + len(column.part), *cells, 0)

    def shown_count(self) -> int:
        """The number of rows."""
        return self._model.rowCount()

    def shown_columns(self) -> list[PreviewColumn]:
        """The columns from left to right."""
        return self._model.shown

    def _lay_out(self) -> None:
        """Text columns share the remaining width, unless it is too little; then there is a scroll bar."""
        taken = NUMBER_WIDTH + sum(width for at, width in enumerate(self._widths) if at not in self._texts)
        room = self.viewport().width() - taken
        share = max(LEAST_STRETCHED, room // max(1, len(self._texts)))
        if self._model.shown:
            self.setColumnWidth(0, NUMBER_WIDTH)
        for at, width in enumerate(self._widths):
            self.setColumnWidth(at + 1, share if at in self._texts else width)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Distribute the width again."""
        super().resizeEvent(event)
        self._lay_out()

    def apply_theme(self) -> None:
        """Nothing to update: colours are read at every paint."""
        self.viewport().update()
        self.horizontalHeader().viewport().update()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Return shows the row in full, Ctrl+C copies it as tab-separated cells."""
        row = self.currentIndex().row()
        if event.matches(QKeySequence.StandardKey.Copy) and row >= 0:
            cells = [self._model.cell(row, section) for section in range(1, self._model.columnCount())]
            QGuiApplication.clipboard().setText("\t".join(cells))
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and row >= 0:
            self.row_requested.emit(row)
        else:
            super().keyPressEvent(event)
