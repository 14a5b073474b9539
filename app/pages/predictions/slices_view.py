"""How well each slice of the rows is answered: lengths, labels, values of columns and similar texts, the worst first."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QHeaderView, QPushButton, QVBoxLayout, QWidget

from app import theme
from app.core.backend_words import capitalize
from app.core.formatting import group_digits, metric_title, number, with_full_stop
from app.core.i18n import figure, tr, trn
from app.widgets.card import label
from app.widgets.forms.inputs import QuietComboBox
from app.widgets.tables.text_table import TextTable
from backend.contract.rpc.predictions import RowSlice, SliceReport
from backend.contract.rpc.protocol import Progress

SEARCHING = tr("Comparing slices of the rows…")
_HINT = tr("Click a slice to see its rows.")
_FEW = tr("too few rows to tell")


class SlicesView(QWidget):
    """Asks for its report when it is first shown by a click; `start` is for a page that shows nothing else."""

    report_wanted = Signal(str)
    """Measured by this metric; empty: the task's main one."""
    slice_chosen = Signal(object)
    """The number of a slice and its name; None for all rows."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._report: SliceReport | None = None
        self._chosen: int | None = None
        self._is_asked = False
        self.start = QPushButton(tr("Find the worst slices"))
        self.start.clicked.connect(self.on_shown)
        self.choice = QuietComboBox()
        self.choice.setAccessibleName(tr("Measured by"))
        self.choice.setSizeAdjustPolicy(QuietComboBox.SizeAdjustPolicy.AdjustToContents)
        self.choice.activated.connect(lambda _: self._ask(self.choice.currentData()))
        self.said = label("", wrap=True)
        self.table = TextTable(tr("Slices"))
        self.table.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        theme.role(self.table, "tight")
        self.table.row_chosen.connect(self._on_row_chosen)
        self.hint = label(_HINT, "faint", wrap=True)
        self._lay_out()
        self.clear()

    def _lay_out(self) -> None:
        by = QHBoxLayout()
        by.setSpacing(8)
        self._by = label(tr("Measured by"), "muted")
        by.addWidget(self._by)
        by.addWidget(self.choice)
        by.addWidget(self.hint, 1)
        start = QHBoxLayout()
        start.addWidget(self.start)
        start.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(10)
        column.addLayout(start)
        column.addWidget(self.said)
        column.addLayout(by)
        column.addWidget(self.table, 1)

    def clear(self) -> None:
        """Forget the report, as of another file."""
        self._report, self._chosen, self._is_asked = None, None, False
        self.said.setText("")
        self.choice.clear()
        self.table.show_rows((), ())
        self._show()

    def _show(self) -> None:
        there = self._report is not None
        self.start.setVisible(not there and not self._is_asked)
        self.said.setVisible(bool(self.said.text()))
        for part in (self._by, self.choice, self.table, self.hint):
            part.setVisible(there)

    def on_shown(self) -> None:
        """Ask once."""
        if not self._is_asked:
            self._ask("")

    def _ask(self, metric: str) -> None:
        self._is_asked = True
        self.said.setText(SEARCHING)
        self._show()
        self.report_wanted.emit(metric)

    def show_progress(self, progress: Progress) -> None:
        """Show how many slices are measured."""
        if progress.total:
            self.said.setText(tr("Comparing slices of the rows, {part:.0%}…", part=progress.done / progress.total))

    def show_mistake(self, sentence: str) -> None:
        """Show why there are none."""
        self.said.setText(with_full_stop(capitalize(sentence)))
        self._show()

    def show_report(self, report: SliceReport) -> None:
        """Show every slice."""
        self._report = report
        self.said.setText(with_full_stop(capitalize(report.sentence)))
        self.choice.clear()
        for name in report.metrics:
            self.choice.addItem(metric_title(name), name)
        self.choice.setCurrentIndex(self.choice.findData(report.metric))
        header = (tr("Slice"), tr("Rows"), metric_title(report.metric))
        rows = [(slice_words(one), group_digits(one.rows), _score_words(one)) for one in report.slices]
        colors = {
            place: "danger" if one.is_worse else "faint"
            for place, one in enumerate(report.slices)
            if one.is_worse or one.is_few
        }
        self.table.set_choosable(tr("Show these rows"))
        self.table.show_rows(header, rows, colors, [_hint(one) for one in report.slices])
        self._fit_columns()
        self._show()
        self.show_chosen(self._chosen)

    def _fit_columns(self) -> None:
        header = self.table.horizontalHeader()
        header.setStretchLastSection(False)
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        header.setMinimumSectionSize(60)
        for place in (1, 2):
            header.setSectionResizeMode(place, QHeaderView.ResizeMode.ResizeToContents)

    def show_chosen(self, number: int | None) -> None:
        """Mark the slice whose rows are shown, or none; emits nothing."""
        self._chosen = number
        slices = self._report.slices if self._report is not None else []
        row = next((place for place, one in enumerate(slices) if one.number == number), None)
        self.table.clearSelection()
        if row is not None:
            self.table.selectRow(row)

    def _on_row_chosen(self, row: int) -> None:
        assert self._report is not None
        one = self._report.slices[row]
        self.slice_chosen.emit(None if one.number == self._chosen else (one.number, slice_words(one)))


def slice_words(one: RowSlice) -> str:
    """What a slice is called: `text: 12 to 40 characters`."""
    column = one.column.replace("_", " ")
    if one.bounds is not None:
        low, high = (figure(end, ".6g") for end in one.bounds)
        value = low if low == high else tr("{low} to {high}", low=low, high=high)
    else:
        value = tr("(empty)") if one.value is None else one.value
    if one.by == "length":
        return tr("{column}: {value} characters", column=column, value=value)
    if one.by == "words":
        return tr("{column}: {value} words", column=column, value=value)
    if one.by == "label":
        return tr("Label: {value}", value=value)
    return tr("About: {words}", words=value) if one.by == "cluster" else f"{column}: {value}"


def _score_words(one: RowSlice) -> str:
    """Shorter than elsewhere: there is little room."""
    value = number(one.score, 3)
    if one.interval is None:
        return value
    low, high = (number(end, 2) for end in one.interval)
    return tr("{value} ({low} to {high})", value=value, low=low, high=high)


def _hint(one: RowSlice) -> str:
    words = [slice_words(one), trn("{count} row", "{count} rows", one.rows)]
    if one.others is not None:
        words.append(tr("Other rows: {value}", value=number(one.others)))
    if one.p_holm is None:
        words.append(_FEW)
    else:
        words.append(tr("p = {p} after Holm's correction", p=figure(one.p_holm, ".2g")))
    return "\n".join(words)
