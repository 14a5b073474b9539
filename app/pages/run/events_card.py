"""The lists below the plots of the Run page: events, warnings, process log, sample predictions, notes."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QAbstractItemView,
    QButtonGroup,
    QFrame,
    QHBoxLayout,
    QHeaderView,
    QPushButton,
    QScrollArea,
    QStackedWidget,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from app import theme
from app.core import formatting
from app.core.i18n import tr
from app.core.predictions.predicted_row import PredictedRow
from app.core.runs.run_state import JournalLine, RunState
from app.widgets.card import Card, label
from app.widgets.forms.inputs import QuietComboBox
from app.widgets.forms.notes_bar import NotesBar
from app.widgets.row_views.registry import view_of
from app.widgets.row_views.row_view import RowView
from app.widgets.tables.layout_memory import RememberedSplitter
from app.widgets.tables.log_view import LogView
from app.widgets.text.directed_text import DirectedText
from backend.contract.run.events import RowsSampled, SampledRow

KINDS = {"worst": tr("Worst"), "best": tr("Best"), "drawn": tr("Fixed sample")}
COLUMNS = ("", tr("Row"), tr("Prediction"), tr("Actual"), tr("Previous"), tr("Rating"))
LATEST = tr("Latest evaluation")
LONGEST_CELL = 60
NOTHING = tr("Each evaluation shows sample rows here: the worst, the best, and a few fixed ones.")

PAGES = (tr("Events"), tr("Process log"), tr("Warnings"), tr("Samples"), tr("Notes"))


class EventsCard(Card):
    """Three lists of lines, which only take new lines; sample predictions; notes and tags."""

    page_shown = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(tr("Log"), parent)
        self.journal = LogView(tr("No events yet."))
        self.process = LogView(tr("The process has written nothing."))
        self.attention = LogView(tr("No warnings."))
        self.samples, self.notes = SampledPredictions(), NotesBar()
        self._pages = QStackedWidget(self)
        self._chips = QButtonGroup(self, exclusive=True)
        chips = QHBoxLayout()
        chips.setSpacing(6)
        for number, (name, view) in enumerate(
            zip(PAGES, (self.journal, self.process, self.attention, self.samples, _at_the_top(self.notes)), strict=True)
        ):
            view.setAccessibleName(name)
            self._pages.addWidget(view)
            chip = QPushButton(name)
            chip.setCheckable(True)
            theme.role(chip, "chip")
            self._chips.addButton(chip, number)
            chips.addWidget(chip)
        self.corner.addLayout(chips)
        self.add(self._pages, 1)
        self._chips.button(0).setChecked(True)
        self._chips.idClicked.connect(self._pages.setCurrentIndex)
        self._chips.idClicked.connect(lambda number: self.page_shown.emit(PAGES[number]))
        self._chips.idClicked.connect(self._on_page_chosen)
        self._is_log_of_failure = False
        self._taken = 0
        self._attention_lines = 0

    def _on_page_chosen(self) -> None:
        self._is_log_of_failure = False

    def offer_notes(self, offered: bool) -> None:
        """Enable notes only for a run in the library."""
        chip = self._chips.button(PAGES.index(tr("Notes")))
        chip.setVisible(offered)
        if chip.isChecked() and not offered:
            self.show_page(PAGES[0])

    def show_page(self, name: str) -> None:
        """Show one of PAGES."""
        self._chips.button(PAGES.index(name)).click()

    def show_failure(self) -> None:
        """Show the process log, if it has lines, until another run is shown or the person chooses a page."""
        if self._pages.currentWidget() is not self.process and self.process.line_count():
            self.show_page(tr("Process log"))
            self._is_log_of_failure = True

    def leave_failure(self) -> None:
        """Show the events of another run, if the log was shown because of how the one before failed."""
        if self._is_log_of_failure:
            self.show_page(PAGES[0])

    def clear(self) -> None:
        """Clear for another run."""
        self._taken = self._attention_lines = 0
        for view in (self.journal, self.process, self.attention):
            view.clear()
        self.samples.clear()
        self._chips.button(2).setText(PAGES[2])

    def show_state(self, state: RunState) -> None:
        """Add the new lines."""
        new = state.journal[self._taken :]
        self._taken += len(new)
        self.journal.append_lines([_line(line) for line in new])
        self.samples.show_state(state)
        self._show_attention(state, [line for line in new if line.kind != "info"])

    def _show_attention(self, state: RunState, new: list[JournalLine]) -> None:
        lines = [_line(line) for line in new]
        if lines:
            self.attention.append_lines(lines)
            self._attention_lines += len(lines)
            self._chips.button(2).setText(f"{PAGES[2]} ({self._attention_lines})")

    def add_process_lines(self, lines: list[str]) -> None:
        """Add lines of `process.log`."""
        self.process.append_lines(lines)


def _at_the_top(widget: QWidget) -> QWidget:
    page = QWidget()
    column = QVBoxLayout(page)
    column.setContentsMargins(0, 0, 0, 0)
    column.addWidget(widget)
    column.addStretch(1)
    return page


def _line(line: JournalLine) -> str:
    mark = {"warning": "warning: ", "error": "error: "}.get(line.kind, "")
    return f"{formatting.clock(line.time)}  {mark}{line.text}"


class SampledPredictions(QStackedWidget):
    """Shows the latest evaluation until the user chooses an earlier one."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.steps = QuietComboBox()
        self.steps.setAccessibleName(tr("Evaluation"))
        self.steps.setMinimumWidth(170)
        self.steps.currentIndexChanged.connect(lambda _: self._show_chosen())
        self.measure = label("", "faint")
        self.list = QTableWidget(0, len(COLUMNS))
        self.list.setItemDelegate(DirectedText(self.list))
        self.list.setAccessibleName(tr("Sample rows"))
        self.list.setHorizontalHeaderLabels(COLUMNS)
        self.list.setShowGrid(False)
        self.list.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.list.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.list.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.list.verticalHeader().hide()
        self.list.verticalHeader().setDefaultSectionSize(26)
        self.list.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        self.list.horizontalHeader().setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        self.list.currentCellChanged.connect(lambda row, *_: self._show_row(row))
        self.view: RowView | None = None
        self._area = QScrollArea(widgetResizable=True)
        self._area.setFrameShape(QFrame.Shape.NoFrame)
        nothing = label(NOTHING, "faint", wrap=True)
        nothing.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.addWidget(nothing)
        self.addWidget(self._body())
        self.clear()

    def _body(self) -> QWidget:
        body, row = QWidget(), QHBoxLayout()
        row.addWidget(self.steps)
        row.addWidget(self.measure)
        row.addStretch(1)
        split = RememberedSplitter("samples", Qt.Orientation.Horizontal)
        split.addWidget(self.list)
        split.addWidget(self._area)
        split.setSizes([560, 420])
        column = QVBoxLayout(body)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        column.addLayout(row)
        column.addWidget(split, 1)
        return body

    def clear(self) -> None:
        """Clear for another run."""
        self._samples: dict[int, RowsSampled] = {}
        self._task, self._shown = "", None
        self.steps.blockSignals(True)
        self.steps.clear()
        self.steps.addItem(LATEST)
        self.steps.blockSignals(False)
        self.list.setRowCount(0)
        self.setCurrentIndex(0)

    def show_state(self, state: RunState) -> None:
        """Take over new events."""
        steps = sorted(state.samples)
        if steps == sorted(self._samples) and all(self._samples[step] is state.samples[step] for step in steps):
            return
        self._samples, self._task = dict(state.samples), state.task
        chosen = self.steps.currentData()
        self.steps.blockSignals(True)
        self.steps.clear()
        self.steps.addItem(LATEST)
        for step in reversed(steps):
            self.steps.addItem(tr("Step {step}", step=formatting.group_digits(step)), step)
        self.steps.setCurrentIndex(max(0, self.steps.findData(chosen)) if chosen is not None else 0)
        self.steps.blockSignals(False)
        self.setCurrentIndex(1 if steps else 0)
        self._show_chosen()

    def _show_chosen(self) -> None:
        if not self._samples:
            return
        chosen = self.steps.currentData()
        sample = self._samples[max(self._samples) if chosen is None else chosen]
        if sample is self._shown:
            return
        self._shown = sample
        words = (
            tr("rated by {measure}", measure=sample.measure)
            if any(row.rating is not None for row in sample.rows)
            else ""
        )
        self.measure.setText(
            tr(
                "step {step}{value}{words}",
                step=formatting.group_digits(sample.step),
                value=" · " if words else "",
                words=words,
            )
        )
        place, before = max(0, self.list.currentRow()), self._before(sample.step)
        self.list.setRowCount(len(sample.rows))
        for number, row in enumerate(sample.rows):
            for column, cell in enumerate(_cells(row, before.get(row.row))):
                self.list.setItem(number, column, QTableWidgetItem(cell))
        place = min(place, len(sample.rows) - 1)
        self.list.setCurrentCell(place, 0)
        self._show_row(place)

    def _before(self, step: int) -> dict[int, SampledRow]:
        """The previous evaluation's predictions for its rows."""
        earlier = [at for at in self._samples if at < step]
        return {row.row: row for row in self._samples[max(earlier)].rows} if earlier else {}

    def _show_row(self, place: int) -> None:
        if self._shown is None or not 0 <= place < len(self._shown.rows):
            return
        row = self._shown.rows[place]
        kind = view_of(self._task, row.values)
        if type(self.view) is not kind:
            self.view = kind()
            self._area.setWidget(self.view)
        assert self.view is not None
        self.view.show_row(PredictedRow(row.values, self._shown.columns))
        self._area.verticalScrollBar().setValue(0)


def _cells(row: SampledRow, before: SampledRow | None) -> tuple[str, ...]:
    return (
        KINDS.get(row.kind, row.kind),
        formatting.group_digits(row.row + 1),
        _cell(row.values.get("prediction")),
        _cell(row.values.get("actual")),
        _cell(before.values.get("prediction")) if before is not None else "",
        "" if row.rating is None else formatting.number(abs(row.rating)),
    )


def _cell(value: object) -> str:
    if value is None:
        return ""
    text = formatting.number(value) if isinstance(value, float) else " ".join(str(value).split())
    return text if len(text) <= LONGEST_CELL else f"{text[:LONGEST_CELL]}…"
