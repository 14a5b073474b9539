"""Owns the error browser: the rows of one predictions file, filtered and sorted, and the chosen one whole."""

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QKeySequence, QShortcut
from PySide6.QtWidgets import QSplitter, QStackedWidget, QVBoxLayout, QWidget

from app.core.predicted_row import PredictedRow
from app.core.run_task import RunTask, read_run_task
from app.core.wording import count, grouped, metric_title, number
from app.panels.predictions_cards.export_dialog import ExportChoice, Offer
from app.panels.predictions_cards.exporting import Exporting
from app.panels.predictions_cards.file_prediction import FilePrediction
from app.panels.predictions_cards.filter_bar import FilterBar
from app.panels.predictions_cards.overview_card import OverviewCard
from app.panels.predictions_cards.row_card import RowCard
from app.panels.predictions_cards.row_steps import RowSteps
from app.panels.predictions_cards.row_views.plain_view import PlainView
from app.panels.predictions_cards.row_views.registry import view_of
from app.panels.predictions_cards.row_views.row_view import RowView
from app.panels.predictions_cards.statistics import Statistics
from app.panels.predictions_cards.table_card import TableCard
from app.services.chosen_rows import ChosenRows
from app.services.context import AppContext
from app.services.prediction_rows import PredictionRows
from app.widgets.activity_line import ActivityLine
from app.widgets.empty_state import EmptyState
from app.widgets.row_table import RowTable
from backend.contract.predictions import AT_THRESHOLD
from backend.contract.run_folder import RunFolder


class Browser(QWidget):
    """Shows one file; emits what it wants to say. A data file that is dropped on it is predicted by the run."""

    message = Signal(str, str)
    summary_changed = Signal(str)
    """One line about what is shown; empty where nothing is."""
    exportable = Signal(bool)
    predictable = Signal(bool)
    """Whether the run can predict another file now."""
    runs_requested = Signal()
    try_requested = Signal(dict)
    """A row's values by column."""
    run_shown = Signal()

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self.rows: PredictionRows | None = None
        self.run: Path | None = None
        self.task = RunTask()
        self.form: type[RowView] = PlainView
        self._bounds: tuple[float, float] | None = None
        self._indices: Sequence[int] | None = None
        self._sort: tuple[str, bool] = ("", False)
        self.setAcceptDrops(True)
        self.chosen = ChosenRows(context.client, self)
        self.steps = RowSteps(self)
        self.filters = FilterBar()
        self.further = FilePrediction(context.client)
        self.line = ActivityLine()
        self.exporting = Exporting(context.client, self.line, self)
        self.empty = EmptyState("target", "", "", "Show runs")
        self.stack = QStackedWidget()
        self.stack.addWidget(self.empty)
        self.stack.addWidget(self._content())
        self.statistics = Statistics(context.client, self.overview, self)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(14)
        for widget in (self.filters, self.further, self.line):
            column.addWidget(widget)
        column.addWidget(self.stack, 1)
        self._connect()
        self._list_runs()
        self._show_nothing()

    # Building

    def _content(self) -> QWidget:
        self.card = TableCard()
        self.table: RowTable = self.card.table
        self.filters.tools.addWidget(self.card.columns_button)
        self.overview, self.details = OverviewCard(), RowCard()
        self.side = QStackedWidget()
        self.side.addWidget(self.overview)
        self.side.addWidget(self.details)
        self.splitter = QSplitter(Qt.Orientation.Horizontal)
        self.splitter.setHandleWidth(14)
        self.splitter.setChildrenCollapsible(False)
        self.splitter.addWidget(self.card)
        self.splitter.addWidget(self.side)
        self.splitter.setStretchFactor(0, 3)
        self.splitter.setStretchFactor(1, 2)
        self.splitter.setSizes([660, 360])
        return self.splitter

    def _connect(self) -> None:
        self._context.library_watcher.changed.connect(self._list_runs)
        self.empty.asked.connect(self.runs_requested)
        self.filters.run_chosen.connect(self.show_run)
        self.filters.split_chosen.connect(self._open)
        self.filters.changed.connect(self._filter)
        self.filters.order_chosen.connect(self._on_order_chosen)
        self.chosen.changed.connect(self._show_indices)
        self.chosen.refused.connect(lambda words: self.message.emit("error", words))
        self.chosen.waiting.connect(self._on_waiting)
        self.chosen.opening.connect(self._on_opening)
        self.chosen.opened.connect(self.table.refresh)
        self.table.set_color(self._color)
        self.table.row_selected.connect(self._show_row)
        self.table.sort_requested.connect(self._on_sort_requested)
        self.card.value_wanted.connect(self.filters.want_value)
        for part in (self.card, self.further, self.exporting, self.statistics):
            part.message.connect(self.message)
        self.overview.pair_chosen.connect(self._on_pair_chosen)
        self.overview.bin_chosen.connect(self._on_bin_chosen)
        self.overview.row_chosen.connect(self.show_source_row)
        self.overview.mistakes_wanted.connect(self._on_mistakes_wanted)
        self.overview.threshold.threshold_changed.connect(self._on_threshold_changed)
        self.details.closed.connect(self.table.clearSelection)
        self.details.closed.connect(lambda: self.table.setCurrentIndex(self.table.rootIndex()))
        self.details.step_requested.connect(self.step_to_mistake)
        self.details.row_step_requested.connect(self.step)
        self.details.try_requested.connect(self.try_requested)
        self.steps.found.connect(self._on_mistake_found)
        self.steps.ended.connect(self._on_no_mistake)
        self.further.predicted.connect(self._on_predicted)
        self.further.busy.connect(lambda busy: self.predictable.emit(not busy and self.run is not None))
        self.exporting.busy.connect(lambda busy: self.exportable.emit(not busy and self.rows is not None))
        for keys, direction in (("Ctrl+Down", 1), ("Ctrl+Up", -1)):
            QShortcut(QKeySequence(keys), self, lambda direction=direction: self.step_to_mistake(direction))
        below = QShortcut(QKeySequence("Down"), self.filters.search.line, self._into_table)
        below.setContext(Qt.ShortcutContext.WidgetShortcut)

    def _into_table(self) -> None:
        self.table.setFocus()
        if not self.table.currentIndex().isValid() and self.table.shown_count():
            self.table.selectRow(0)

    def shown(self) -> None:
        """The newest run with predictions, if none was chosen; what was written since is read."""
        self._list_runs()
        if self.run is None and self.filters.run_choice.count():
            self.show_run(self.filters.run_choice.itemData(0))
        elif self.run is not None and (self.rows is None or self.rows.is_old):
            self.show_run(str(self.run))

    def _list_runs(self) -> None:
        self.filters.list_runs(self._context.library.runs, self.run)

    # What is shown

    def show_run(self, path: str, name: str = "") -> None:
        """Show the predictions of a run folder: those of a name, else validation first."""
        if not path:
            return
        self.run = Path(path)
        self.task = read_run_task(self.run)
        self._list_runs()
        self.filters.offer_splits(RunFolder(self.run).predicted(), name)
        self._open()
        self.predictable.emit(not self.further.is_busy)
        self.run_shown.emit()

    def _open(self) -> None:
        if self.run is None:
            return
        path = RunFolder(self.run).predictions(self.filters.split, "parquet")
        self._close_rows()
        if not path.is_file():
            self._show_nothing()
            return
        try:
            self.rows = PredictionRows(path)
        except (OSError, ValueError) as error:
            self._show_nothing()
            self.empty.set_words("These predictions cannot be read", f"{path.name}: {error}")
            return
        self._show_rows(self.rows)

    def _close_rows(self) -> None:
        for part in (self.chosen, self.statistics):
            part.close()
        self.steps.stop()
        if self.rows is not None:
            self.card.show_rows(None)
            self.rows.close()
        self.rows, self._indices, self._sort = None, None, ("", False)
        self.filters.forget()
        self.overview.clear()
        self.side.setCurrentWidget(self.overview)

    def _show_nothing(self) -> None:
        title = "No predictions yet"
        sentence = "A run writes its predictions when it ends. Choose a run that has finished."
        if self.run is not None:
            sentence = (
                f"{self.run.name} has not written predictions yet; it does so when it ends. "
                "Once it has a model, drop a data file here to predict it."
            )
        self.empty.set_words(title, sentence)
        self.stack.setCurrentWidget(self.empty)
        self.summary_changed.emit("")
        self._enable(False, has_actual=False)

    def _enable(self, on: bool, has_actual: bool) -> None:
        self.exportable.emit(on)
        self.filters.offer_rows(on, has_actual)
        self.filters.setVisible(on or self.filters.run_choice.count() > 0)

    def _show_rows(self, rows: PredictionRows) -> None:
        run = self._context.library.find(self.run) if self.run else None
        kind = self.task.kind or (run.task if run else "")
        self.form = view_of(kind, rows.columns)
        self._bounds = rows.bounds()
        self.card.show_rows(rows, self._usual_columns(), kind)
        self.filters.search.offer_columns([(name, self.table.title(name)) for name in rows.columns])
        self.details.use(self.form)
        self.stack.setCurrentWidget(self.splitter)
        there = [*rows.columns, *(["actual"] if rows.has_actual else [])]
        self.filters.offer_orders([order for order in self.form.orders if order.fits(there)])
        self._enable(True, rows.has_actual and self.form.compares)
        self.chosen.open(rows)
        self.statistics.open(rows, self.form)
        self._filter()

    def _usual_columns(self) -> list[str]:
        assert self.rows is not None
        return self.rows.shown_columns(hidden=self.form.hidden(self.task.columns))

    def _write_summary(self) -> None:
        assert self.rows is not None
        assert self.run is not None
        words = [count(self.rows.row_count, "row")]
        shown = self.table.shown_count()
        if shown != self.rows.row_count:
            words.append(f"{grouped(shown)} shown")
        run = self._context.library.find(self.run)
        if run is not None and run.metric and run.best is not None and self.filters.split == "validation":
            words.append(f"{metric_title(run.metric).lower()} {number(run.best)}")
        words.append(run.title if run is not None else self.run.name)
        self.summary_changed.emit(" · ".join(words))
        self.filters.show_count(f"{grouped(shown)} of {count(self.rows.row_count, 'row')}")

    def _on_waiting(self, waiting: bool) -> None:
        if waiting:
            self.filters.show_count("Looking…")

    def _on_opening(self, part: float) -> None:
        if self.filters.wanted.is_empty and not self._sort[0]:
            return
        self.filters.show_count(f"Preparing the file, {part:.0%}")

    def is_right(self, row: int) -> bool | None:
        """Whether a row is right; None where that is unknown or no question."""
        return self.rows.is_right(row) if self.rows is not None and self.form.compares else None

    def _color(self, row: int, column: str) -> str:
        if column == AT_THRESHOLD and self.rows is not None:
            return "accent_text" if self.rows.cells([row], column)[0] != self.rows.value(row, "prediction") else "faint"
        right = self.is_right(row) if column == "prediction" else None
        return "" if right is None else "success" if right else "danger"

    # One row

    def _show_row(self, row: int) -> None:
        if self.rows is None or row < 0:
            self.side.setCurrentWidget(self.overview)
            return
        values = self.rows.pages.row(row)
        self.details.show_row(
            f"Row {row + 1:,}", PredictedRow(values, self.task.columns, self._bounds), self.is_right(row)
        )
        self.side.setCurrentWidget(self.details)

    def step(self, direction: int) -> None:
        """Choose the row below (+1) or above (−1) in the order that is shown."""
        line = self.table.currentIndex().row() + direction
        if 0 <= line < self.table.shown_count():
            self.table.selectRow(line)

    def step_to_mistake(self, direction: int) -> None:
        """Choose the next wrong row below (+1) or above (−1) in the order that is shown."""
        self.steps.search(
            self.table.currentIndex().row(), self.table.shown_count(), direction,
            lambda line: self.is_right(self._row_at(line)) is False,
        )  # fmt: skip

    def _on_mistake_found(self, line: int) -> None:
        self.table.selectRow(line)
        self.table.setFocus()

    def _on_no_mistake(self, direction: int) -> None:
        words = "No mistake below this row." if direction > 0 else "No mistake above this row."
        self.message.emit("info", words)

    def show_source_row(self, row: int) -> None:
        """Choose a row of the file, among all rows where those that are shown do not have it."""
        lines = [row] if self._indices is None else [line for line, one in enumerate(self._indices) if one == row]
        if not lines:
            self.filters.clear()
            lines = [row]
        self.table.selectRow(lines[0])

    def _row_at(self, line: int) -> int:
        return line if self._indices is None else int(self._indices[line])

    # Filter and sort

    def _on_pair_chosen(self, actual: str, predicted: str) -> None:
        self.filters.want_pair((actual, predicted) if actual or predicted else None)

    def _on_bin_chosen(self, low: float, high: float) -> None:
        self.filters.want_confidence((low, high) if high else None)

    def _on_mistakes_wanted(self) -> None:
        self.filters.choose_order("confidence", mistakes=True)
        self._on_order_chosen()

    def _on_order_chosen(self) -> None:
        order = self.filters.order
        self._sort = (order.column, order.descending)
        self.table.horizontalHeader().setSortIndicatorShown(False)
        if order.mistakes:
            self.filters.want_right(False)
        else:
            self._filter()

    def _on_sort_requested(self, column: str, descending: bool) -> None:
        self._sort = (column, descending)
        self.filters.show_file_order()
        self._filter()

    def _filter(self) -> None:
        if self.rows is not None:
            wanted = self.filters.wanted
            self.overview.matrix.show_chosen(*(wanted.pair or ("", "")))
            self.overview.diagram.show_chosen(wanted.confidence)
            self.chosen.want(wanted, self._sort)

    def _show_indices(self, indices: Sequence[int] | None) -> None:
        if self.rows is None:
            return
        self.steps.stop()
        self._indices = indices
        self.table.set_indices(indices)
        self.table.scrollToTop()
        self.side.setCurrentWidget(self.overview)
        self._write_summary()

    def _on_threshold_changed(self, label: str, value: float | None) -> None:
        if self.rows is None:
            return
        had = self.rows.threshold is not None
        self.rows.set_threshold(label, value)
        if had != (value is not None):
            self.card.show_threshold(self._usual_columns())
        self.table.refresh()

    # Another file

    def predict_file(self, path: str) -> None:
        """Let the run predict a file, and show it when that is done."""
        if self.run is None:
            self.message.emit("info", "Choose a run first; it predicts the file.")
            return
        self.further.predict(self.run, Path(path))

    def _on_predicted(self, run: str, name: str) -> None:
        if self.run == Path(run):
            self.show_run(run, name)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """A file can be dropped here."""
        if self.run is not None and dropped_file(event) is not None:
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        """Predict it."""
        path = dropped_file(event)
        if path is not None:
            event.acceptProposedAction()
            self.predict_file(str(path))

    # Export

    def offer(self) -> Offer:
        """What could be exported now."""
        assert self.rows is not None
        columns, threshold = self.table.columns, self.rows.threshold
        words = "" if threshold is None else f"With what is predicted where {threshold[0]} begins at {threshold[1]:.3f}"
        return Offer(
            self.table.shown_count(), len(columns), self.rows.row_count, len(self.rows.pages.columns), words
        )  # fmt: skip

    def export(self, path: str, choice: ExportChoice) -> None:
        """Write the rows that are shown now, in their order, or all, to a file."""
        assert self.rows is not None
        columns = [name for name in self.table.columns if name in self.rows.columns]
        self.exporting.export(self.rows, path, choice, self._indices, columns)


def dropped_file(event: QDropEvent) -> Path | None:
    """The one file that is dragged, if it is one."""
    urls = event.mimeData().urls()
    path = Path(urls[0].toLocalFile()) if len(urls) == 1 and urls[0].isLocalFile() else None
    return path if path is not None and path.exists() else None
