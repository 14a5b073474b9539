"""Owns the table of all runs."""

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QItemSelection, QItemSelectionModel, QModelIndex, QRect, QSize, Qt, Signal
from PySide6.QtGui import QFont, QPainter
from PySide6.QtWidgets import (
    QAbstractItemView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from app import theme
from app.core.i18n import tr
from app.core.runs.run_library import RunSummary
from app.core.runs.run_order import COLUMNS, Line
from app.core.runs.run_status import kind_of
from app.pages.runs.run_lines import RunLines
from app.pages.runs.run_name import RunName
from app.widgets.pill import GAP, SIGN, paint_pill
from app.widgets.tables.grouped_list import GroupedList, Index
from app.widgets.tables.layout_memory import RememberedColumns

WIDTHS = {
    "state": 136,
    "task": 150,
    "model": 112,
    "data": 112,
    "best": 156,
    "steps": 100,
    "duration": 102,
    "started": 110,
    "tags": 120,
}
LEAVING = ("steps", "tags", "data", "task", "duration", "model")
"""What is left out first where there is little room; tags stand below the name too."""
LEAST_FOR_NAME = 180
NAMES = tuple(COLUMNS)
NAME, STATE = NAMES.index("run"), NAMES.index("state")
FIRST_DESCENDING = ("best", "steps", "duration", "started")
"""Columns of which the largest value is looked for."""


INSET = 13
"""Where the words of a cell begin, and those of its heading."""


class _StatePill(QStyledItemDelegate):
    """Paints the state as a pill."""

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        blank = QStyleOptionViewItem(option)
        self.initStyleOption(blank, index)
        text, blank.text = blank.text, ""
        model = index.model()
        assert isinstance(model, RunLines)
        run = model.item(index.row())
        if run is None:
            super().paint(painter, option, index)
            return
        blank.widget.style().drawControl(QStyle.ControlElement.CE_ItemViewItem, blank, painter, blank.widget)
        font = theme.font(12, QFont.Weight.DemiBold)
        painter.save()
        painter.setFont(font)
        sign = SIGN + GAP if run.doubt else 0
        width = painter.fontMetrics().horizontalAdvance(text) + sign + 20
        area = QRect(option.rect.left() + INSET, option.rect.center().y() - 10, width, 22)
        paint_pill(painter, area, text, kind_of(run.state, run.doubt), with_sign=bool(run.doubt))
        painter.restore()

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        """Room for the longest word."""
        return QSize(100, 30)


class RunTable(GroupedList):
    """Keeps the chosen runs chosen while the list changes."""

    run_chosen = Signal(object)
    """A RunSummary, or None where none or several are chosen."""
    run_opened = Signal(str)
    sort_asked = Signal(str, bool)
    """The name of a column, and whether its largest value comes first."""

    def __init__(self, parent: QWidget | None = None) -> None:
        self._model = RunLines()
        super().__init__(self._model, WIDTHS, LEAVING, LEAST_FOR_NAME, parent)
        self._pills, self._names = _StatePill(self), RunName(self)
        self._chosen: set[Path] = set()
        self._changing = False
        self.setItemDelegateForColumn(STATE, self._pills)
        self.setItemDelegateForColumn(NAME, self._names)
        self.setAlternatingRowColors(True)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setAccessibleName(tr("Runs"))
        self._set_headers()
        self.taken.connect(lambda run: self.run_opened.emit(str(run.path)))
        self.selectionModel().selectionChanged.connect(self._on_selected)
        self.selectionModel().currentRowChanged.connect(self._on_current)

    def _set_headers(self) -> None:
        self.verticalHeader().setDefaultSectionSize(38)
        header = self.horizontalHeader()
        header.setFixedHeight(36)
        header.setMinimumSectionSize(60)
        header.setSectionsClickable(True)
        header.setSortIndicatorShown(True)
        self.show_sorted("started", descending=True)
        header.sectionClicked.connect(self._on_header_clicked)
        RememberedColumns(self, "runs", lambda: list(NAMES)).restore()

    @property
    def runs(self) -> list[RunSummary]:
        """The runs that are listed."""
        return self._model.items

    def set_lines(self, lines: Sequence[Line]) -> None:
        """List these."""
        chosen = set(self._chosen)
        if self._model.set(lines):
            self.span_headings()
            self._select(chosen)
        self.run_chosen.emit(self.chosen())

    def chosen(self) -> RunSummary | None:
        """The run whose line is selected; None where several are."""
        found = self.chosen_runs()
        return found[0] if len(found) == 1 else None

    def chosen_runs(self) -> list[RunSummary]:
        """All runs that are selected, each once, in the order of the list."""
        return list({run.path: run for run in self.runs if run.path in self._chosen}.values())

    def choose(self, *paths: Path | None) -> None:
        """Select the lines of these runs."""
        self._select({path for path in paths if path is not None})
        self._on_selected()

    def _select(self, paths: set[Path]) -> None:
        self._changing = True
        rows = self._rows_of(paths)
        self._chosen = {run.path for run in self.runs if run.path in paths}
        wanted = QItemSelection()
        for row in rows:
            wanted.select(self._model.index(row, 0), self._model.index(row, len(NAMES) - 1))
        if rows and self.currentIndex().row() not in rows:
            self.setCurrentIndex(self._model.index(rows[0], 0))
        self.selectionModel().select(wanted, QItemSelectionModel.SelectionFlag.ClearAndSelect)
        self._changing = False

    def _rows_of(self, paths: set[Path]) -> list[int]:
        """The first line of each: under its other tags a run need not be marked."""
        rows: dict[Path, int] = {}
        for row, line in enumerate(self._model.lines):
            if isinstance(line, RunSummary) and line.path in paths:
                rows.setdefault(line.path, row)
        return list(rows.values())

    def show_sorted(self, column: str, *, descending: bool) -> None:
        """Mark the column by which the list is sorted."""
        order = Qt.SortOrder.DescendingOrder if descending else Qt.SortOrder.AscendingOrder
        self.horizontalHeader().setSortIndicator(NAMES.index(column), order)
        self._sorted = (column, descending)

    def _on_header_clicked(self, section: int) -> None:
        column = NAMES[section]
        again = column == self._sorted[0]
        descending = not self._sorted[1] if again else column in FIRST_DESCENDING
        self.show_sorted(column, descending=descending)
        self.sort_asked.emit(column, descending)

    def item_at_hand(self) -> RunSummary | None:
        """Enter opens the one run that is chosen."""
        return self.chosen()

    def _on_selected(self, *_: QItemSelection) -> None:
        if self._changing:
            return
        rows = {index.row() for index in self.selectionModel().selectedRows()}
        self._chosen = {run.path for row in rows if (run := self._model.item(row))}
        self.run_chosen.emit(self.chosen())

    def _on_current(self, current: QModelIndex) -> None:
        if not self._changing and current.isValid() and not self.selectionModel().hasSelection():
            # The first focus makes a line current without selecting it.
            self.selectRow(current.row())
