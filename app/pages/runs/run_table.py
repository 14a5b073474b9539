"""The table of all runs: its rows and groups, and how a run's name is painted."""

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QEvent, QItemSelection, QItemSelectionModel, QModelIndex, QRect, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QCursor, QFont, QFontMetrics, QKeyEvent, QMouseEvent, QPainter, QPalette
from PySide6.QtWidgets import (
    QAbstractItemView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from app import theme
from app.core import formatting
from app.core.draft.run_copies import list_differences, previous_run
from app.core.i18n import inside, tr
from app.core.runs.run_columns import COLUMNS
from app.core.runs.run_library import RunSummary
from app.core.runs.run_list import Line
from app.core.runs.run_status import kind_of
from app.widgets.pill import GAP, SIGN, paint_pill
from app.widgets.tables.grouped_list import GroupedList, GroupedListModel, Index
from app.widgets.tables.layout_memory import RememberedColumns

LEFT = 12

LEAST_FOR_NAME = 180
NAMES = tuple(COLUMNS)
NAME, STATE = NAMES.index("run"), NAMES.index("state")
WIDTHS = {key: column.width for key, column in COLUMNS.items() if column.width}
LEAVING = sorted((key for key, column in COLUMNS.items() if column.leaves), key=lambda key: COLUMNS[key].leaves)

REST_MS = 3000
"""How long a mouse rests on the list before new lines may move what is under it."""
INSET = 13
"""Where the words of a cell begin, and those of its heading."""
FOLD, FOLD_SIGN = 22, 14
"""Pixels before the name of a group, where a sign unfolds its runs, and before the names of these; and the sign's size."""


class _StatePill(QStyledItemDelegate):
    """Paints the state as a pill."""

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        blank = QStyleOptionViewItem(option)
        self.initStyleOption(blank, index)
        text, blank.text = blank.text, ""
        model = index.model()
        assert isinstance(model, RunTableModel)
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
    """Keeps the selection while the list changes."""

    run_chosen = Signal(object)
    """A RunSummary, or None where none or several are chosen."""
    run_opened = Signal(str)
    unfold_requested = Signal(object, bool)
    """The folder of a group, and whether its runs are to be listed."""
    sort_requested = Signal(str, bool)
    """The name of a column, and whether its largest value comes first."""

    def __init__(self, parent: QWidget | None = None) -> None:
        self._model = RunTableModel()
        super().__init__(self._model, WIDTHS, LEAVING, LEAST_FOR_NAME, parent)
        self._pills, self._names = _StatePill(self), RunName(self)
        self._chosen: set[Path] = set()
        self._changing = False
        self._waiting: Sequence[Line] | None = None
        """Lines that would move what is under the mouse."""
        self._rest = QTimer(self, singleShot=True, interval=REST_MS)
        self._rest.timeout.connect(self._show_waiting)
        self.viewport().setMouseTracking(True)
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
        """The listed runs."""
        return self._model.items

    def set_lines(self, lines: Sequence[Line], *, keeps_place: bool = False) -> None:
        """List these. With `keeps_place` the run under the mouse stays there, if need be for a few seconds."""
        pointed = self._first_run(self._mouse_y(), lines) if keeps_place and self.viewport().underMouse() else None
        if pointed is None or not self._would_move(pointed, lines):
            self._stop_waiting()
        else:
            self._waiting = lines
            if not self._rest.isActive():
                self._rest.start()
            latest = {line.path: line for line in lines if isinstance(line, RunSummary)}
            lines = [latest[line.path] if isinstance(line, RunSummary) else line for line in self._model.lines]
        self._show(lines, pointed, keeps_place=keeps_place)

    def _show_waiting(self) -> None:
        if (lines := self._stop_waiting()) is not None:
            self._show(lines, None, keeps_place=True)

    def _stop_waiting(self) -> Sequence[Line] | None:
        """Return what has waited."""
        self._rest.stop()
        lines, self._waiting = self._waiting, None
        return lines

    def _show(self, lines: Sequence[Line], anchor: Path | None, *, keeps_place: bool) -> None:
        if anchor is None and keeps_place and self.verticalScrollBar().value() > 0:
            anchor = self._first_run(0, lines)
        top = self._top_of(anchor) if anchor else 0
        chosen = set(self._chosen)
        if self._model.set(lines):
            self.span_headings()
            self._select(chosen)
            if anchor:
                self._scroll_to(anchor, top)
        self.run_chosen.emit(self.chosen())

    def _mouse_y(self) -> int:
        return self.viewport().mapFromGlobal(QCursor.pos()).y()

    def _first_run(self, y: int, lines: Sequence[Line]) -> Path | None:
        """The first run at or below this height that is also among `lines`: headings and deleted runs are no anchor."""
        staying = {line.path for line in lines if isinstance(line, RunSummary)}
        shown = self._model.lines[row:] if (row := self.rowAt(y)) >= 0 else []
        return next((line.path for line in shown if isinstance(line, RunSummary) and line.path in staying), None)

    def _top_of(self, path: Path) -> int:
        """Pixels between the header and the run's line."""
        return self.rowViewportPosition(self._rows_of({path})[0])

    def _would_move(self, anchor: Path, lines: Sequence[Line]) -> bool:
        """Whether these lines, which have every run of now, cannot be scrolled so that the run stays where it is."""
        paths = [line.path if isinstance(line, RunSummary) else None for line in lines]
        if not {run.path for run in self._model.items} <= set(paths):
            return False
        height = self.verticalHeader().defaultSectionSize()
        wanted = paths.index(anchor) * height - self._top_of(anchor)
        return not 0 <= wanted <= max(0, len(lines) * height - self.viewport().height())

    def _scroll_to(self, path: Path, top: int) -> None:
        """Scroll so that the run is that many pixels below the header."""
        self.updateGeometries()  # else the scroll bar would still end where the lines before did
        bar = self.verticalScrollBar()
        bar.setValue(bar.value() + self._top_of(path) - top)

    def viewportEvent(self, event: QEvent) -> bool:
        """Show what has waited when the mouse leaves; while it moves, the person may be about to click."""
        if event.type() == QEvent.Type.Leave:
            self._show_waiting()
        elif event.type() == QEvent.Type.MouseMove and self._rest.isActive():
            self._rest.start()
        return super().viewportEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Show what has waited: the keyboard is in use, not the mouse. Right and left unfold and fold a group."""
        self._show_waiting()
        run = self.chosen()
        if run is not None and run.members and event.key() in (Qt.Key.Key_Right, Qt.Key.Key_Left):
            self.unfold_requested.emit(run.path, event.key() == Qt.Key.Key_Right)
            return
        super().keyPressEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """A click on the sign before a group's name unfolds or folds it."""
        index = self.indexAt(event.position().toPoint())
        run = self._model.item(index.row()) if index.isValid() and index.column() == NAME else None
        sign = self.visualRect(index).left() + LEFT + FOLD
        if run is not None and run.members and event.position().x() < sign:
            self.unfold_requested.emit(run.path, not self._model.is_unfolded(run))
            return
        super().mousePressEvent(event)

    def chosen(self) -> RunSummary | None:
        """The selected run; None if several are selected."""
        found = self.chosen_runs()
        return found[0] if len(found) == 1 else None

    def chosen_runs(self) -> list[RunSummary]:
        """All selected runs, each once, in list order."""
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
        """The first line of each: a run need not be selected under its other tags too."""
        rows: dict[Path, int] = {}
        for row, line in enumerate(self._model.lines):
            if isinstance(line, RunSummary) and line.path in paths:
                rows.setdefault(line.path, row)
        return list(rows.values())

    def show_sorted(self, column: str, *, descending: bool) -> None:
        """Mark the sort column."""
        order = Qt.SortOrder.DescendingOrder if descending else Qt.SortOrder.AscendingOrder
        self.horizontalHeader().setSortIndicator(NAMES.index(column), order)
        self._sorted = (column, descending)

    def _on_header_clicked(self, section: int) -> None:
        column = NAMES[section]
        again = column == self._sorted[0]
        descending = not self._sorted[1] if again else COLUMNS[column].largest_first
        self.show_sorted(column, descending=descending)
        self.sort_requested.emit(column, descending)

    def item_at_hand(self) -> RunSummary | None:
        """The run that Enter opens, if exactly one is selected."""
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


class RunName(QStyledItemDelegate):
    """Two lines if there is a note or a tag, else one."""

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        model = index.model()
        assert isinstance(model, RunTableModel)
        run = model.item(index.row())
        words = words_below(run) if run is not None else ""
        if run is None or not (words or run.members or run.seed is not None):
            super().paint(painter, option, index)
            return
        blank = QStyleOptionViewItem(option)
        self.initStyleOption(blank, index)
        name, blank.text = blank.text, ""
        blank.widget.style().drawControl(QStyle.ControlElement.CE_ItemViewItem, blank, painter, blank.widget)
        area = QRect(option.rect).adjusted(LEFT, 0, -LEFT // 2, 0)
        if run.members:
            sign = theme.pixmap("chevron-down" if model.is_unfolded(run) else "chevron-right", "muted", FOLD_SIGN)
            painter.drawPixmap(area.left(), area.center().y() - FOLD_SIGN // 2 + 1, sign)
        if run.members or run.seed is not None:
            area.setLeft(area.left() + FOLD)
        middle = area.center().y() + 1
        painter.save()
        if not words:
            painter.setFont(blank.font)
            painter.setPen(blank.palette.color(QPalette.ColorRole.Text))
            cut = blank.fontMetrics.elidedText(name, Qt.TextElideMode.ElideRight, area.width())
            painter.drawText(area, Qt.AlignmentFlag.AlignVCenter, cut)
            painter.restore()
            return
        for font, ink, top, height, text in (
            (
                theme.font(13, QFont.Weight.DemiBold),
                blank.palette.color(QPalette.ColorRole.Text),
                middle - 17,
                18,
                name,
            ),
            (theme.font(11), theme.color("muted"), middle + 1, 15, words),
        ):
            painter.setFont(font)
            painter.setPen(ink)
            cut = QFontMetrics(font).elidedText(text, Qt.TextElideMode.ElideRight, area.width())
            painter.drawText(QRect(area.left(), top, area.width(), height), Qt.AlignmentFlag.AlignVCenter, cut)
        painter.restore()


def words_below(run: RunSummary) -> str:
    """How many runs of a group have finished, the user's note and tags."""
    own = run.message if run.members else ""
    return "  ".join(filter(None, [own, run.note, *(f"#{tag}" for tag in run.tags)]))


class RunTableModel(GroupedListModel):
    """Runs, with headings if they are grouped."""

    def __init__(self) -> None:
        super().__init__({key: column.title for key, column in COLUMNS.items()})

    def set(self, lines: Sequence[Line]) -> bool:
        """Show these; if the lines hold the same runs, only repaint their cells. Returns whether the lines changed."""
        same = list(map(_identity, lines)) == list(map(_identity, self.lines))
        if not same:
            self.show(lines)
            return True
        self.lines = list(lines)
        if lines:
            self.dataChanged.emit(self.index(0, 0), self.index(len(lines) - 1, len(COLUMNS) - 1))
        return False

    def is_unfolded(self, group: RunSummary) -> bool:
        """Whether the runs of a group are listed below it."""
        return any(run.group == group.path for run in self.items)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if role == Qt.ItemDataRole.ToolTipRole:
            return tr("Sort by {COLUMNS}", COLUMNS=inside(COLUMNS[self.names[section]].title))
        return super().headerData(section, orientation, role)

    def of_item(self, item: RunSummary, column: str, role: int) -> object:
        if role == Qt.ItemDataRole.DisplayRole:
            return COLUMNS[column].text(item)
        if role == Qt.ItemDataRole.ToolTipRole:
            return self._tooltip(item) if column in ("run", "state") else (COLUMNS[column].hint or COLUMNS[column].text)(item)  # fmt: skip
        if role == Qt.ItemDataRole.AccessibleDescriptionRole and column == "run" and item.members:
            return tr("Group of runs, unfolded") if self.is_unfolded(item) else tr("Group of runs, folded")
        if role == Qt.ItemDataRole.AccessibleDescriptionRole and column == "state":
            return item.doubt
        if role == Qt.ItemDataRole.ForegroundRole and column != "run":
            return theme.color("muted")
        if role == Qt.ItemDataRole.FontRole and column == "run":
            return theme.font(13, QFont.Weight.DemiBold)
        return None

    def _tooltip(self, run: RunSummary) -> str:
        """Details not in any column: how it ended, the user's note, and what differs from the previous run."""
        before = None if run.members or run.group else previous_run(run, self.items)
        differs = list_differences(run, before) if before else []
        if before and differs:
            differs = [
                tr(
                    "Differences from {title} ({started}):",
                    title=before.title,
                    started=formatting.moment(before.started),
                ),
                *differs,
            ]
        return "\n".join(filter(None, [run.message, run.doubt, run.note, *differs])) or str(run.path)


def _identity(line: Line) -> object:
    return line.path if isinstance(line, RunSummary) else line
