"""The table of rows beside the selected row, with navigation between rows and to the next mistake."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from PySide6.QtCore import QObject, Qt, QTimer, Signal
from PySide6.QtGui import QGuiApplication, QKeySequence, QResizeEvent, QShortcut
from PySide6.QtWidgets import QFrame, QScrollArea, QStackedWidget, QWidget

from app.core.i18n import tr
from app.core.predictions.predicted_row import PredictedRow
from app.pages.predictions.overview_card import OverviewCard
from app.pages.predictions.table_card import TableCard
from app.services.prediction_rows import ANSWERS, PredictionRows
from app.widgets.card import Card
from app.widgets.icon_label import IconToolButton
from app.widgets.pill import Pill
from app.widgets.row_views.row_view import PlainView, RowView
from app.widgets.tables.layout_memory import RememberedSplitter
from app.widgets.tables.row_table import RowTable
from backend.contract.rpc.predictions import AT_THRESHOLD

ROWS_AT_ONCE = 500
MAX_ROWS = 1_000_000
BESIDE = 840
"""Pixels from which a tall page has room for the row beside the table."""


class RowsView(RememberedSplitter):
    """Shows the rows of one file, or the subset set by `show_indices`."""

    message = Signal(str, str)
    try_requested = Signal(dict)
    """A row's values by column."""
    all_rows_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("predictions", parent=parent)
        self.rows: PredictionRows | None = None
        self.form: type[RowView] = PlainView
        self.indices: Sequence[int] | None = None
        self._columns: Mapping[str, str] = {}
        self._bounds: tuple[float, float] | None = None
        self.card = TableCard(self)
        self.table: RowTable = self.card.table
        self.side = QStackedWidget(self)
        self.overview, self.details = OverviewCard(self.side), RowCard(self.side)
        self.steps = MistakeSearch(self)
        self.side.addWidget(self.overview)
        self.side.addWidget(self.details)
        self.hold((self.card, self.side), (3, 2), (640, 380))
        self._connect()

    def _connect(self) -> None:
        self.card.message.connect(self.message)
        self.table.set_color(self.color)
        self.table.row_selected.connect(self._show_row)
        self.overview.row_chosen.connect(self.show_source_row)
        self.overview.threshold.threshold_changed.connect(self._on_threshold_changed)
        self.details.closed.connect(self.table.clearSelection)
        self.details.closed.connect(lambda: self.table.setCurrentIndex(self.table.rootIndex()))
        self.details.step_requested.connect(self.step_to_mistake)
        self.details.row_step_requested.connect(self.step)
        self.details.try_requested.connect(self.try_requested)
        self.steps.found.connect(self._on_mistake_found)
        self.steps.ended.connect(self._on_no_mistake)
        for keys, direction in (("Ctrl+Down", 1), ("Ctrl+Up", -1)):
            QShortcut(QKeySequence(keys), self, lambda direction=direction: self.step_to_mistake(direction))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """In half a screen the selected row stands below the table, which has no room beside it."""
        super().resizeEvent(event)
        is_tall = event.size().width() < min(BESIDE, event.size().height())
        self.setOrientation(Qt.Orientation.Vertical if is_tall else Qt.Orientation.Horizontal)

    def show_rows(self, rows: PredictionRows, form: type[RowView], columns: Mapping[str, str], kind: str) -> None:
        """Show all rows of a file in its task's view; `columns` maps roles to columns."""
        self.rows, self.form, self._columns, self.indices = rows, form, columns, None
        self._bounds = rows.bounds()
        self.card.show_rows(rows, self._usual_columns(), kind)
        self.details.use(form)

    def clear(self) -> None:
        """Show nothing; the caller closes the rows."""
        self.steps.stop()
        if self.rows is not None:
            self.card.show_rows(None)
        self.rows, self.indices = None, None
        self.overview.clear()
        self.side.setCurrentWidget(self.overview)

    def show_indices(self, indices: Sequence[int] | None) -> None:
        """Show only these rows in this order; None shows all in file order."""
        self.steps.stop()
        self.indices = indices
        self.table.set_indices(indices)
        self.table.scrollToTop()
        self.side.setCurrentWidget(self.overview)

    def enter(self) -> None:
        """Focus the rows."""
        self.table.setFocus()
        if not self.table.currentIndex().isValid() and self.table.shown_count():
            self.table.selectRow(0)

    def _usual_columns(self) -> list[str]:
        assert self.rows is not None
        columns = self.rows.shown_columns(hidden=self.form.hidden(self._columns))
        inputs = columns[: min((columns.index(name) for name in ANSWERS if name in columns), default=0)]
        parts = set(self._columns.values())
        # What plays no part in the task comes last: the table is read from the left.
        further = [name for name in inputs if name not in parts] if parts.intersection(inputs) else []
        return [*(name for name in columns if name not in further), *further]

    def is_right(self, row: int) -> bool | None:
        """Whether a row is correct; None if unknown or not applicable."""
        return self.rows.is_right(row) if self.rows is not None and self.form.compares else None

    def color(self, row: int, column: str) -> str:
        """A cell's colour token: correct and wrong predictions, and those that a threshold changes."""
        if column == AT_THRESHOLD and self.rows is not None:
            same = self.rows.cells([row], column)[0] == self.rows.value(row, "prediction")
            return "faint" if same else "accent_text"
        right = self.is_right(row) if column == "prediction" else None
        return "" if right is None else "success" if right else "danger"

    def row_at(self, line: int) -> int:
        """The file's row shown on a line."""
        return line if self.indices is None else int(self.indices[line])

    # From row to row

    def _show_row(self, row: int) -> None:
        if self.rows is None or row < 0:
            self.side.setCurrentWidget(self.overview)
            return
        predicted = PredictedRow(self.rows.pages.row(row), self._columns, self._bounds)
        self.details.show_row(tr("Row {row:,}", row=row + 1), predicted, self.is_right(row))
        self.side.setCurrentWidget(self.details)

    def step(self, direction: int) -> None:
        """Select the row below (+1) or above (−1) in the displayed order."""
        line = self.table.currentIndex().row() + direction
        if 0 <= line < self.table.shown_count():
            self.table.selectRow(line)

    def step_to_mistake(self, direction: int) -> None:
        """Select the next wrong row below (+1) or above (−1) in the displayed order."""
        start, count = self.table.currentIndex().row(), self.table.shown_count()
        self.steps.search(start, count, direction, lambda line: self.is_right(self.row_at(line)) is False)

    def _on_mistake_found(self, line: int) -> None:
        self.table.selectRow(line)
        self.table.setFocus()

    def _on_no_mistake(self, direction: int) -> None:
        words = tr("No mistakes below this row.") if direction > 0 else tr("No mistakes above this row.")
        self.message.emit("info", words)

    def show_source_row(self, row: int) -> None:
        """Select a row of the file, showing all rows if the current ones do not include it."""
        lines = [row] if self.indices is None else [line for line, one in enumerate(self.indices) if one == row]
        if not lines:
            self.all_rows_wanted.emit()
            lines = [row]
        self.table.selectRow(lines[0])

    def _on_threshold_changed(self, label: str, value: float | None) -> None:
        if self.rows is None:
            return
        had = self.rows.threshold is not None
        self.rows.set_threshold(label, value)
        if had != (value is not None):
            self.card.show_threshold(self._usual_columns())
        self.table.refresh()


class RowCard(Card):
    """Shows rows in one view, recreated only for another task."""

    step_requested = Signal(int)
    """+1 for the next mistake below, −1 for the one above."""
    row_step_requested = Signal(int)
    """+1 for the row below, −1 for the one above, right or wrong."""
    try_requested = Signal(dict)
    """The row's values by column."""
    closed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(tr("Row"), parent)
        self._values: Mapping[str, Any] = {}
        self.view: RowView | None = None
        self.correctness = Pill("")
        self.previous = self._step("chevron-up", tr("Previous mistake (Ctrl+Up)"), -1)
        self.next = self._step("chevron-down", tr("Next mistake (Ctrl+Down)"), 1)
        before = IconToolButton("chevron-left", tr("Previous row (Up)"))
        after = IconToolButton("chevron-right", tr("Next row (Down)"))
        for button, direction in ((before, -1), (after, 1)):
            button.clicked.connect(lambda _=False, direction=direction: self.row_step_requested.emit(direction))
        copy = IconToolButton("copy", tr("Copy row"))
        copy.clicked.connect(self.copy)
        close = IconToolButton("close", tr("Close row (Escape)"))
        close.setShortcut(QKeySequence("Escape"))
        close.clicked.connect(self.closed)
        self.attempt = IconToolButton("play", tr("Open this row in Try"), "accent_text")
        self.attempt.clicked.connect(lambda: self.try_requested.emit(dict(self._values)))
        for widget in (self.correctness, self.attempt, before, after, self.previous, self.next, copy, close):
            self.corner.addWidget(widget)
        self.corner.setSpacing(2)
        self.corner.insertSpacing(1, 6)
        self._area = QScrollArea(widgetResizable=True)
        self._area.setFrameShape(QFrame.Shape.NoFrame)
        self._area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.add(self._area, 1)
        self.setMinimumWidth(320)

    def _step(self, icon: str, hint: str, direction: int) -> IconToolButton:
        button = IconToolButton(icon, hint)
        button.clicked.connect(lambda: self.step_requested.emit(direction))
        return button

    def use(self, kind: type[RowView]) -> None:
        """Use this view for rows from now on."""
        if type(self.view) is not kind:
            self.view = kind()
            self._area.setWidget(self.view)
        for button in (self.previous, self.next):
            button.setVisible(kind.compares)

    def show_row(self, title: str, row: PredictedRow, right: bool | None) -> None:
        """Show a row with whether it is correct beside the title."""
        assert self.view is not None
        self._values = row.values
        self.set_title(title)
        self.correctness.setVisible(right is not None)
        self.correctness.set(tr("Correct") if right else tr("Wrong"), "success" if right else "danger")
        self.view.show_row(row)
        self._area.verticalScrollBar().setValue(0)

    def copy(self) -> None:
        """Copy the row to the clipboard, one `name: value` per line."""
        lines = (f"{name}: {value}" for name, value in self._values.items())
        QGuiApplication.clipboard().setText("\n".join(lines))


class MistakeSearch(QObject):
    """Searches the lines of a table; a new search stops the previous one."""

    found = Signal(int)
    """The line of the next wrong row."""
    ended = Signal(int)
    """There is none in this direction (+1 or −1)."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._timer = QTimer(self, interval=0)
        self._timer.timeout.connect(self._scan)
        self._lines: Iterator[int] = iter(())
        self._is_wrong: Callable[[int], bool] = lambda line: False
        self._direction = 1

    def search(self, start: int, count: int, direction: int, is_wrong: Callable[[int], bool]) -> None:
        """Search below (+1) or above (−1) a line for a wrong row."""
        stop = min(count, start + MAX_ROWS) if direction > 0 else -1
        self._lines, self._direction, self._is_wrong = (
            iter(range(start + direction, stop, direction)),
            direction,
            is_wrong,
        )
        self._scan()

    def stop(self) -> None:
        """Stop searching."""
        self._timer.stop()

    def _scan(self) -> None:
        for _ in range(ROWS_AT_ONCE):
            line = next(self._lines, None)
            if line is None:
                self._timer.stop()
                self.ended.emit(self._direction)
                return
            if self._is_wrong(line):
                self._timer.stop()
                self.found.emit(line)
                return
        self._timer.start()
