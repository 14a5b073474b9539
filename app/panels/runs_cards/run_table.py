"""Owns the table of all runs."""

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QItemSelection, QItemSelectionModel, QModelIndex, QRect, QSize, Qt, Signal
from PySide6.QtGui import QFont, QKeyEvent, QPainter
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QWidget,
)

from app import theme
from app.core.language import tr
from app.core.outcome import KINDS
from app.core.run_library import RunSummary
from app.core.run_order import Line
from app.panels.runs_cards.run_lines import COLUMNS, Index, RunLines
from app.panels.runs_cards.run_name import RunName
from app.widgets.pill import KINDS as PILL_KINDS
from app.widgets.remembered import RememberedColumns

WIDTHS = {
    tr("State"): 136,
    tr("Task"): 150,
    tr("Model"): 112,
    tr("Data"): 112,
    tr("Best"): 146,
    tr("Steps"): 100,
    tr("Duration"): 102,
    tr("Started"): 110,
    tr("Tags"): 120,
}
LEAVING = (tr("Steps"), tr("Tags"), tr("Data"), tr("Task"), tr("Duration"), tr("Model"))
"""What is left out first where there is little room; tags stand below the name too."""
LEAST_FOR_NAME = 180
NAME, STATE = COLUMNS.index(tr("Run")), COLUMNS.index(tr("State"))
FIRST_DESCENDING = (tr("Best"), tr("Steps"), tr("Duration"), tr("Started"))
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
        run = model.run(index.row())
        if run is None:
            super().paint(painter, option, index)
            return
        ink, ground = PILL_KINDS[KINDS.get(run.state, "neutral")]
        blank.widget.style().drawControl(QStyle.ControlElement.CE_ItemViewItem, blank, painter, blank.widget)
        font = theme.font(12, QFont.Weight.DemiBold)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(font)
        width = painter.fontMetrics().horizontalAdvance(text) + 20
        area = QRect(option.rect.left() + INSET, option.rect.center().y() - 10, width, 22)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color(ground))
        painter.drawRoundedRect(area, 11, 11)
        painter.setPen(theme.color(ink))
        painter.drawText(area, Qt.AlignmentFlag.AlignCenter, text)
        painter.restore()

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        """Room for the longest word."""
        return QSize(100, 30)


class RunTable(QTableView):
    """Keeps the chosen runs chosen while the list changes."""

    run_chosen = Signal(object)
    """A RunSummary, or None where none or several are chosen."""
    run_opened = Signal(str)
    sort_asked = Signal(str, bool)
    """A column, and whether its largest value comes first."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._model = RunLines(self)
        self._pills, self._names = _StatePill(self), RunName(self)
        self._chosen: set[Path] = set()
        self._changing = False
        self.setModel(self._model)
        self.setItemDelegateForColumn(STATE, self._pills)
        self.setItemDelegateForColumn(NAME, self._names)
        self.setShowGrid(False)
        self.setAlternatingRowColors(True)
        self.setWordWrap(False)
        self.setTabKeyNavigation(False)  # Tab leaves the table
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setAccessibleName(tr("Runs"))
        self._set_headers()
        self.selectionModel().selectionChanged.connect(self._on_selected)
        self.selectionModel().currentRowChanged.connect(self._on_current)
        self.doubleClicked.connect(self._on_double_click)

    def _set_headers(self) -> None:
        for header in (self.horizontalHeader(), self.verticalHeader()):
            # Their own selection: with the table's, selecting everything asks every header section for every row.
            header.setSelectionModel(QItemSelectionModel(self._model, self))
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(38)
        header = self.horizontalHeader()
        header.setFixedHeight(36)
        header.setHighlightSections(False)
        header.setMinimumSectionSize(60)
        header.setSectionsClickable(True)
        header.setSortIndicatorShown(True)
        self.show_sorted(tr("Started"), descending=True)
        header.sectionClicked.connect(self._on_header_clicked)
        for section, name in enumerate(COLUMNS):
            if name == tr("Run"):
                header.setSectionResizeMode(section, QHeaderView.ResizeMode.Stretch)
            else:
                self.setColumnWidth(section, WIDTHS[name])
        RememberedColumns(self, "runs", lambda: list(COLUMNS)).restore()

    @property
    def runs(self) -> list[RunSummary]:
        """The runs that are listed."""
        return [line for line in self._model.lines if isinstance(line, RunSummary)]

    def set_lines(self, lines: Sequence[Line]) -> None:
        """List these."""
        chosen = set(self._chosen)
        if self._model.set(lines):
            self.clearSpans()
            for row in range(len(lines)):
                if self._model.run(row) is None:
                    self.setSpan(row, 0, 1, len(COLUMNS))
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
            wanted.select(self._model.index(row, 0), self._model.index(row, len(COLUMNS) - 1))
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
        self.horizontalHeader().setSortIndicator(COLUMNS.index(column), order)
        self._sorted = (column, descending)

    def _on_header_clicked(self, section: int) -> None:
        column = COLUMNS[section]
        again = column == self._sorted[0]
        descending = not self._sorted[1] if again else column in FIRST_DESCENDING
        self.show_sorted(column, descending=descending)
        self.sort_asked.emit(column, descending)

    def show_columns_for(self, width: int) -> None:
        """Leave out what matters least where there is little room for the runs' names."""
        left = width - LEAST_FOR_NAME - sum(WIDTHS.values())
        for name in LEAVING:
            self.setColumnHidden(COLUMNS.index(name), left < 0)
            left += WIDTHS[name] if left < 0 else 0

    def resizeEvent(self, event) -> None:
        """Fit the columns."""
        self.show_columns_for(event.size().width())
        super().resizeEvent(event)

    def apply_theme(self) -> None:
        """Colours are asked for at every paint."""
        self.viewport().update()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter opens."""
        run = self.chosen()
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and run is not None:
            self.run_opened.emit(str(run.path))
            return
        super().keyPressEvent(event)

    def _on_double_click(self, index: Index) -> None:
        if run := self._model.run(index.row()):
            self.run_opened.emit(str(run.path))

    def _on_selected(self, *_: QItemSelection) -> None:
        if self._changing:
            return
        rows = {index.row() for index in self.selectionModel().selectedRows()}
        self._chosen = {run.path for row in rows if (run := self._model.run(row))}
        self.run_chosen.emit(self.chosen())

    def _on_current(self, current: QModelIndex) -> None:
        if not self._changing and current.isValid() and not self.selectionModel().hasSelection():
            # The first focus makes a line current without selecting it.
            self.selectRow(current.row())
