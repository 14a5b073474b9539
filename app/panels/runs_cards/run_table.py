"""Owns the table of all runs."""

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import (
    QAbstractTableModel,
    QItemSelectionModel,
    QModelIndex,
    QPersistentModelIndex,
    QRect,
    QSize,
    Qt,
    Signal,
)
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
from app.core import wording
from app.core.outcome import KINDS, TITLES
from app.core.run_library import RunSummary
from app.widgets.pill import KINDS as PILL_KINDS

COLUMNS = ("Run", "State", "Task", "Model", "Data", "Best", "Steps", "Duration", "Started")
WIDTHS = {
    "State": 104,
    "Task": 140,
    "Model": 116,
    "Data": 116,
    "Best": 150,
    "Steps": 100,
    "Duration": 96,
    "Started": 110,
}
STATE = COLUMNS.index("State")
Index = QModelIndex | QPersistentModelIndex


def cell(run: RunSummary, column: str) -> str:
    """The text of one cell."""
    match column:
        case "Run":
            return run.title
        case "State":
            return TITLES.get(run.state, run.state)
        case "Task":
            return run.task.replace("_", " ").capitalize()
        case "Model":
            return wording.name_of_path(run.model)
        case "Data":
            return run.data
        case "Best":
            return f"{wording.metric_title(run.metric)} {wording.number(run.best)}" if run.best is not None else "–"
        case "Steps":
            total = f" / {wording.grouped(run.total_steps)}" if run.total_steps else ""
            return f"{wording.grouped(run.step)}{total}"
        case "Duration":
            return wording.duration(run.seconds)
        case _:
            return wording.moment(run.started)


class _Model(QAbstractTableModel):
    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.runs: list[RunSummary] = []

    def set(self, runs: Sequence[RunSummary]) -> None:
        """Show these; where the same runs stand in the same lines only their cells are painted anew."""
        same = [run.path for run in runs] == [run.path for run in self.runs]
        if same:
            self.runs = list(runs)
            if runs:
                self.dataChanged.emit(self.index(0, 0), self.index(len(runs) - 1, len(COLUMNS) - 1))
            return
        self.beginResetModel()
        self.runs = list(runs)
        self.endResetModel()

    def rowCount(self, parent: Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self.runs)

    def columnCount(self, parent: Index | None = None) -> int:
        return len(COLUMNS)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        if role == Qt.ItemDataRole.DisplayRole and orientation == Qt.Orientation.Horizontal:
            return COLUMNS[section]
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        run, column = self.runs[index.row()], COLUMNS[index.column()]
        if role == Qt.ItemDataRole.DisplayRole:
            return cell(run, column)
        if role == Qt.ItemDataRole.ToolTipRole:
            return run.message or str(run.path) if column in ("Run", "State") else cell(run, column)
        if role == Qt.ItemDataRole.ForegroundRole and column != "Run":
            return theme.color("muted")
        if role == Qt.ItemDataRole.FontRole and column == "Run":
            return theme.font(13, QFont.Weight.DemiBold)
        return None


class _StatePill(QStyledItemDelegate):
    """Paints the state as a pill."""

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        blank = QStyleOptionViewItem(option)
        self.initStyleOption(blank, index)
        text, blank.text = blank.text, ""
        model = index.model()
        assert isinstance(model, _Model)
        ink, ground = PILL_KINDS[KINDS.get(model.runs[index.row()].state, "neutral")]
        blank.widget.style().drawControl(QStyle.ControlElement.CE_ItemViewItem, blank, painter, blank.widget)
        font = theme.font(12, QFont.Weight.DemiBold)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(font)
        width = painter.fontMetrics().horizontalAdvance(text) + 20
        area = QRect(option.rect.left() + 8, option.rect.center().y() - 10, width, 22)
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
    """Keeps the chosen run chosen while the list changes."""

    run_chosen = Signal(object)
    """A RunSummary, or None."""
    run_opened = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._model = _Model(self)
        self._pills = _StatePill(self)
        self._chosen: Path | None = None
        self.setModel(self._model)
        self.setItemDelegateForColumn(STATE, self._pills)
        self.setShowGrid(False)
        self.setAlternatingRowColors(True)
        self.setWordWrap(False)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setAccessibleName("Runs")
        self._set_headers()
        self.selectionModel().currentRowChanged.connect(self._on_current)
        self.doubleClicked.connect(lambda index: self.run_opened.emit(str(self._model.runs[index.row()].path)))

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
        for section, name in enumerate(COLUMNS):
            if name == "Run":
                header.setSectionResizeMode(section, QHeaderView.ResizeMode.Stretch)
            else:
                self.setColumnWidth(section, WIDTHS[name])

    @property
    def runs(self) -> list[RunSummary]:
        """The runs that are listed."""
        return self._model.runs

    def set_runs(self, runs: Sequence[RunSummary]) -> None:
        """List these."""
        chosen = self._chosen
        self._model.set(runs)
        self._chosen = chosen
        self.choose(chosen)
        self.run_chosen.emit(self.chosen())

    def chosen(self) -> RunSummary | None:
        """The run whose line is selected."""
        return next((run for run in self._model.runs if run.path == self._chosen), None)

    def choose(self, path: Path | None) -> None:
        """Select the line of a run."""
        rows = [number for number, run in enumerate(self._model.runs) if run.path == path]
        if rows and self.currentIndex().row() != rows[0]:
            self.selectRow(rows[0])

    def show_columns_for(self, width: int) -> None:
        """Leave out what matters least where there is little room."""
        self.setColumnHidden(COLUMNS.index("Data"), width < 1000)
        self.setColumnHidden(COLUMNS.index("Steps"), width < 1150)

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

    def _on_current(self, current: QModelIndex) -> None:
        self._chosen = self._model.runs[current.row()].path if current.isValid() else None
        if current.isValid() and not self.selectionModel().isRowSelected(current.row(), QModelIndex()):
            # The first focus makes a line current without selecting it.
            self.selectRow(current.row())
        self.run_chosen.emit(self.chosen())
