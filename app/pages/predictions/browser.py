"""Browses one predictions file: its rows, filtered and sorted, and the selected row in full."""

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QDragEnterEvent, QDragLeaveEvent, QDropEvent, QKeySequence, QShortcut
from PySide6.QtWidgets import QStackedWidget, QVBoxLayout, QWidget

from app.core.formatting import group_digits, metric_title, sure_number
from app.core.i18n import inside, tr, trn
from app.core.runs.run_spec import RunTask, read_run_task
from app.pages.predictions.export_dialog import ExportChoice, ExportOffer, PredictionsExport
from app.pages.predictions.file_prediction import FilePrediction
from app.pages.predictions.filter_bar import FilterBar
from app.pages.predictions.overview_card import Statistics
from app.pages.predictions.rows_view import RowsView
from app.services.context import AppContext
from app.services.prediction_rows import ChosenRows, PredictionRows
from app.services.preloading import ArrowLoading
from app.widgets.drop_hint import DropHint
from app.widgets.empty_state import EmptyState
from app.widgets.progress import ActivityLine
from app.widgets.row_views.registry import view_of
from app.widgets.row_views.row_view import RowView
from backend.contract.rpc.predictions import AT_THRESHOLD, CombinedGroup
from backend.contract.run.folder import RunFolder
from backend.contract.run.group import RunGroup


class PredictionsBrowser(QWidget):
    """Shows one file; messages are emitted as signals. A data file dropped on it is predicted by the run."""

    message = Signal(str, str)
    wrote = Signal(str, str)
    """What was exported, in words, and the file."""
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
        self._sort: tuple[str, bool] = ("", False)
        self.setAcceptDrops(True)
        self._arrow = ArrowLoading(self)
        self._arrow.ready.connect(self._open)
        self.chosen = ChosenRows(context.client, self)
        self.stack = QStackedWidget(self)
        self.view = RowsView(self.stack)
        self.table, self.overview, self.details = self.view.table, self.view.overview, self.view.details
        self.filters = FilterBar(self)
        self.filters.tools.addWidget(self.view.card.columns_button)
        self.further = FilePrediction(context.client, ActivityLine(self), self)
        self.line = ActivityLine(self)
        self.exporting = PredictionsExport(context.client, self.line, self)
        self.empty = EmptyState("target", "", "", tr("Show runs"), self.stack)
        self.stack.addWidget(self.empty)
        self.stack.addWidget(self.view)
        self.statistics = Statistics(context.client, self.overview, self)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(14)
        column.addWidget(self.filters)
        column.addWidget(self.further)
        column.addWidget(self.stack, 1)
        for line in (self.further.line, self.line):  # below the rows, which keep their places
            column.addWidget(line)
        self.hint = DropHint(self)
        self._connect()
        self._list_runs()
        self._show_nothing()

    def _connect(self) -> None:
        self._context.library_watcher.changed.connect(self._on_runs_changed)
        self.empty.action_clicked.connect(self.runs_requested)
        self.filters.run_chosen.connect(self.show_run)
        self.filters.split_chosen.connect(self._open)
        self.filters.changed.connect(self._filter)
        self.filters.order_chosen.connect(self._on_order_chosen)
        self.chosen.changed.connect(self._show_indices)
        self.chosen.refused.connect(self._on_refused)
        self.chosen.waiting.connect(self._on_waiting)
        self.chosen.loading_progressed.connect(self._on_loading_progressed)
        self.chosen.opened.connect(self._on_opened)
        self.table.sort_requested.connect(self._on_sort_requested)
        self.view.card.value_wanted.connect(self.filters.want_value)
        self.view.all_rows_wanted.connect(self.filters.clear)
        self.view.try_requested.connect(self.try_requested)
        for part in (self.view, self.further, self.exporting, self.statistics):
            part.message.connect(self.message)
        self.overview.pair_chosen.connect(self._on_pair_chosen)
        self.overview.bin_chosen.connect(self._on_bin_chosen)
        self.overview.slices.slice_chosen.connect(self.filters.want_slice)
        self.overview.mistakes_wanted.connect(self._on_mistakes_wanted)
        self.further.predicted.connect(self._on_predicted)
        self.further.busy.connect(
            lambda busy: self.predictable.emit(not busy and self.run is not None and not self.is_gone)
        )
        self.exporting.wrote.connect(self.wrote)
        self.exporting.busy.connect(lambda busy: self.exportable.emit(not busy and self.rows is not None))
        below = QShortcut(QKeySequence("Down"), self.filters.search.line, self.view.enter)
        below.setContext(Qt.ShortcutContext.WidgetShortcut)

    def on_shown(self) -> None:
        """Show the newest run with predictions, if none was chosen; read new results."""
        self._list_runs()
        if self.run is None and self.filters.run_choice.count():
            self.show_run(self.filters.run_choice.itemData(0))
        elif self.run is not None and (self.rows is None or self.rows.is_old):
            self.show_run(str(self.run))

    def _on_runs_changed(self) -> None:
        self._list_runs()
        if self.is_gone and self.rows is not None:
            self.show_run(str(self.run))
        elif self.rows is not None and self._form(self.rows) is not self.view.form:  # the catalog has come since
            self._show_rows(self.rows)

    def _list_runs(self) -> None:
        library = self._context.library
        self.filters.list_runs([*library.groups, *library.runs], self.run)

    # What is shown

    @property
    def is_gone(self) -> bool:
        """Whether the folder of the current run was deleted."""
        return self.run is not None and not self.run.is_dir()

    def show_run(self, path: str, name: str = "") -> None:
        """Show a run folder's predictions: those with this name, else validation first."""
        if not path:
            return
        self.run = Path(path)
        self.task = read_run_task(self.run)
        self._list_runs()
        self.filters.offer_splits(RunFolder(self.run).prediction_names(), name)
        self._open()
        self.predictable.emit(not self.further.is_busy and not self.is_gone)
        self.run_shown.emit()
        if RunGroup(self.run).exists():
            self._combine(self.run, name)

    def _combine(self, group: Path, name: str) -> None:
        """Let the group's own predictions be written, unless they are up to date, and show them."""

        def show(answer: CombinedGroup) -> None:
            if answer.written and self.run == group:
                self.filters.offer_splits(RunFolder(group).prediction_names(), name)
                self._open()

        self._context.client.ask("combine_group", {"group": str(group)}, show, lambda no: self._on_refused(no.message))

    def _open(self) -> None:
        if self.run is None:
            return
        if not self._arrow.is_done:
            self._arrow.begin()
            return
        folder = RunFolder(self.run)
        path = folder.predictions(self.filters.split, "parquet")
        self._close_rows()
        if not path.is_file():
            self._show_nothing()
            return
        try:
            folder.check()
            self.rows = PredictionRows(path)
        except (OSError, ValueError) as error:
            self._show_nothing()
            self.empty.set_words(tr("Couldn't read the predictions"), f"{path.name}: {error}")
            return
        self._show_rows(self.rows)

    def _close_rows(self) -> None:
        for part in (self.chosen, self.statistics):
            part.close()
        self.view.clear()
        if self.rows is not None:
            self.rows.close()
        self.rows, self._sort = None, ("", False)
        self.filters.forget()

    def _show_nothing(self) -> None:
        title = tr("No predictions yet")
        sentence = tr("A run writes its predictions when it finishes. Choose a finished run.")
        if self.run is not None and self.is_gone:
            title = tr("This run was deleted")
            sentence = tr("The folder of {name} is gone. Choose another run.", name=self.run.name)
        elif self.run is not None:
            sentence = tr(
                "{name} has no predictions yet. It writes them when it finishes. Once it has a "
                "model, you can drop a data file here to predict it.",
                name=self.run.name,
            )
        self.empty.set_words(title, sentence)
        self.stack.setCurrentWidget(self.empty)
        self.summary_changed.emit("")
        self._enable(False, has_actual=False)

    def _enable(self, on: bool, has_actual: bool) -> None:
        self.exportable.emit(on)
        self.filters.offer_rows(on, has_actual)
        self.filters.setVisible(on or self.filters.run_choice.count() > 0)

    def _task_kind(self) -> str:
        run = self._context.library.find(self.run) if self.run else None
        return self.task.kind or (run.task if run else "")

    def _form(self, rows: PredictionRows) -> type[RowView]:
        return view_of(self._task_kind(), rows.columns)

    def _show_rows(self, rows: PredictionRows) -> None:
        form = self._form(rows)
        self.view.show_rows(rows, form, self.task.columns, self._task_kind())
        self.filters.search.offer_columns([(name, self.table.title(name)) for name in rows.columns])
        self.stack.setCurrentWidget(self.view)
        there = [*rows.columns, *(["actual"] if rows.has_actual else [])]
        self.filters.offer_orders([order for order in form.orders if order.fits(there)])
        self._enable(True, rows.has_actual and form.compares)
        self.chosen.open(rows)
        if rows.needs_pages:  # else both would lay the file out at the same time
            self._on_loading_progressed(0.0)
        else:
            self.statistics.open(rows, form)
        self._filter()

    def _write_summary(self) -> None:
        assert self.rows is not None
        assert self.run is not None
        words = [trn("{count} row", "{count} rows", self.rows.row_count)]
        shown_count = self.table.shown_count()
        if shown_count != self.rows.row_count:
            words.append(tr("{shown} shown", shown=group_digits(shown_count)))
        run = self._context.library.find(self.run)
        value = run.metrics.get(run.metric) if run is not None else None  # of the saved model, which predicted these
        is_own = run is not None and not run.members  # a group's are the means of its seeds, not of all together
        if run is not None and is_own and value is not None and self.filters.split == "validation":
            words.append(f"{inside(metric_title(run.metric))} {sure_number(value, run.intervals.get(run.metric))}")
        words.append(run.title if run is not None else self.run.name)
        self.summary_changed.emit(" · ".join(words))
        self.filters.show_count(
            tr(
                "{shown} of {count}",
                shown=group_digits(shown_count),
                count=trn("{count} row", "{count} rows", self.rows.row_count),
            )
        )

    def _on_waiting(self, waiting: bool) -> None:
        if waiting:
            self.filters.show_count(tr("Searching…"))

    def _on_refused(self, words: str) -> None:
        self.overview.show_waiting("")
        self.message.emit("error", words)

    def _on_opened(self) -> None:
        assert self.rows is not None
        self.table.refresh()
        self.overview.show_waiting("")
        self.statistics.open(self.rows, self.view.form)

    def _on_loading_progressed(self, part: float) -> None:
        words = tr("Preparing the file, {part:.0%}", part=part)
        self.overview.show_waiting(words)
        if not self.filters.row_filter.is_empty or self._sort[0]:
            self.filters.show_count(words)

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
            wanted = self.filters.row_filter
            self.overview.show_chosen_pair(*(wanted.pair or ("", "")))
            self.overview.reliability.show_chosen(wanted.confidence)
            self.overview.slices.show_chosen(wanted.slice[0] if wanted.slice is not None else None)
            self.chosen.want(wanted, self._sort)

    def _show_indices(self, indices: Sequence[int] | None) -> None:
        if self.rows is None:
            return
        self.view.show_indices(indices)
        self._write_summary()

    # Another file

    def predict_file(self, path: str) -> None:
        """Let the run predict a file, and show the result."""
        if self.run is None:
            self.message.emit("info", tr("Choose a run to predict this file with."))
            return
        self.further.predict(self.run, Path(path))

    def _on_predicted(self, run: str, name: str) -> None:
        if self.run == Path(run):
            self.show_run(run, name)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Accept a file."""
        path = dropped_file(event)
        if self.run is not None and path is not None:
            event.acceptProposedAction()
            self.hint.show_target(self.rect(), tr("Predict {name} with {name_2}", name=path.name, name_2=self.run.name))

    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:
        """The drag has left."""
        self.hint.hide()

    def dropEvent(self, event: QDropEvent) -> None:
        """Predict the dropped file."""
        self.hint.hide()
        path = dropped_file(event)
        if path is not None:
            event.acceptProposedAction()
            self.predict_file(str(path))

    # Export

    def offer(self) -> ExportOffer:
        """What could be exported now."""
        assert self.rows is not None
        # Whether predictions at a threshold are exported is a choice of its own.
        columns = [name for name in self.table.columns if name != AT_THRESHOLD]
        own, threshold = self.rows.pages.columns, self.rows.threshold
        every = [name for name in self.rows.columns if name != AT_THRESHOLD]
        left_out = tuple(self.table.title(name) for name in every if name not in columns)
        derived = tuple(self.table.title(name) for name in every if name not in own)
        words = (
            ""
            if threshold is None
            else tr(
                "Include predictions at a {threshold} threshold of {threshold_2:.3f}",
                threshold=threshold[0],
                threshold_2=threshold[1],
            )
        )
        counts = (self.table.shown_count(), len(columns), self.rows.row_count, len(own))
        return ExportOffer(*counts, left_out, derived, words)

    def export(self, path: str, choice: ExportChoice) -> None:
        """Write the rows shown, in their order, or all rows to a file."""
        assert self.rows is not None
        columns = [name for name in self.table.columns if name in self.rows.columns]
        self.exporting.export(self.rows, path, choice, self.view.indices, columns)


def dropped_file(event: QDropEvent) -> Path | None:
    """The dragged file, if it is exactly one."""
    urls = event.mimeData().urls()
    path = Path(urls[0].toLocalFile()) if len(urls) == 1 and urls[0].isLocalFile() else None
    return path if path is not None and path.exists() else None
