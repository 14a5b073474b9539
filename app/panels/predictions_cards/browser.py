"""Owns the error browser: the rows of one predictions file, filtered and sorted, and the chosen one whole."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QStackedWidget, QVBoxLayout, QWidget

from app.core.predicted_row import PredictedRow
from app.core.run_task import RunTask, read_run_task
from app.core.wording import count, grouped, metric_title, number
from app.panels.predictions_cards.filter_bar import SPLITS, FilterBar
from app.panels.predictions_cards.overview_card import OverviewCard
from app.panels.predictions_cards.row_card import RowCard
from app.panels.predictions_cards.row_views.plain_view import PlainView
from app.panels.predictions_cards.row_views.registry import view_of
from app.panels.predictions_cards.row_views.row_view import RowView
from app.services.backend_client import Ticket
from app.services.context import AppContext
from app.services.prediction_rows import CONFIDENCE, PredictionRows, write_indices
from app.widgets.card import Card
from app.widgets.empty_state import EmptyState
from app.widgets.remembered import RememberedSplitter
from app.widgets.row_table import RowTable
from backend.contract.queries import Confusion, Exported, Mistake
from backend.contract.queries import PredictionRows as RowsAnswer
from backend.contract.run_folder import RunFolder

MOST_STEPS = 20_000
"""Rows that are looked at for the next mistake; a page of rows takes a few milliseconds."""


class Browser(QWidget):
    """Shows one file; emits what it wants to say."""

    message = Signal(str, str)
    summary_changed = Signal(str)
    """One line about what is shown; empty where nothing is."""
    exportable = Signal(bool)
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
        self._tickets: dict[str, Ticket] = {}
        self.filters = FilterBar()
        self.filters.run_chosen.connect(self.show_run)
        self.filters.split_chosen.connect(self._open)
        self.filters.changed.connect(self._filter)
        self.filters.order_chosen.connect(self._on_order_chosen)
        self.empty = EmptyState("target", "", "", "Show runs")
        self.empty.asked.connect(self.runs_requested)
        self.stack = QStackedWidget()
        self.stack.addWidget(self.empty)
        self.stack.addWidget(self._content())
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(14)
        column.addWidget(self.filters)
        column.addWidget(self.stack, 1)
        self._add_shortcuts()
        context.library_watcher.changed.connect(self._list_runs)
        self._list_runs()
        self._show_nothing()

    # Building

    def _content(self) -> QWidget:
        self.table = RowTable()
        self.table.remember("predictions")
        self.table.setAccessibleName("Predictions")
        self.table.set_color(self._color)
        self.table.row_selected.connect(self._show_row)
        self.table.sort_requested.connect(self._on_sort_requested)
        card = Card()
        card.layout().setContentsMargins(1, 6, 1, 8)  # type: ignore[union-attr]
        card.add(self.table, 1)
        self.overview, self.details = OverviewCard(), RowCard()
        self.overview.pair_chosen.connect(self._on_pair_chosen)
        self.details.closed.connect(self.table.clearSelection)
        self.details.closed.connect(lambda: self.table.setCurrentIndex(self.table.rootIndex()))
        self.details.step_requested.connect(self.step_to_mistake)
        self.details.try_requested.connect(self.try_requested)
        self.side = QStackedWidget()
        self.side.addWidget(self.overview)
        self.side.addWidget(self.details)
        self.splitter = RememberedSplitter("predictions", Qt.Orientation.Horizontal)
        self.splitter.setHandleWidth(14)
        self.splitter.setChildrenCollapsible(False)
        self.splitter.addWidget(card)
        self.splitter.addWidget(self.side)
        self.splitter.setStretchFactor(0, 3)
        self.splitter.setStretchFactor(1, 2)
        self.splitter.setSizes([600, 400])
        return self.splitter

    def _add_shortcuts(self) -> None:
        for keys, direction in (("Ctrl+Down", 1), ("Ctrl+Up", -1)):
            QShortcut(QKeySequence(keys), self, lambda direction=direction: self.step_to_mistake(direction))
        below = QShortcut(QKeySequence("Down"), self.filters.search, self._into_table)
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

    def show_run(self, path: str) -> None:
        """Show the predictions of a run folder; validation first."""
        if not path:
            return
        self.run = Path(path)
        self.task = read_run_task(self.run)
        self._list_runs()
        folder = RunFolder(self.run)
        splits = [split for _, split in SPLITS if folder.predictions(split, "parquet").is_file()]
        self.filters.offer_splits(splits)
        self._open()
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
        if self.rows is not None:
            self.table.set_source(None)
            self.rows.close()
        for ticket in self._tickets.values():
            ticket.cancel()
        self._tickets.clear()
        self.rows, self._indices, self._sort = None, None, ("", False)
        self.filters.show_pair(None)
        self.overview.clear()
        self.side.setCurrentWidget(self.overview)

    def _show_nothing(self) -> None:
        title = "No predictions yet"
        sentence = "A run writes its predictions when it ends. Choose a run that has finished."
        if self.run is not None:
            sentence = f"{self.run.name} has not written predictions yet; it does so when it ends."
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
        self.form = view_of(self.task.kind or (run.task if run else ""), rows.columns)
        self._bounds = rows.bounds()
        shown = rows.shown_columns(hidden=self.form.hidden(self.task.columns))
        self.table.set_source(rows, shown)
        self.table.set_widths(*rows.widths(shown))
        self.details.use(self.form)
        self.stack.setCurrentWidget(self.splitter)
        there = [*rows.columns, *(["actual"] if rows.has_actual else [])]
        self.filters.offer_orders([order for order in self.form.orders if order.fits(there)])
        self._enable(True, rows.has_actual and self.form.compares)
        self._count(rows)
        self._filter()

    def _count(self, rows: PredictionRows) -> None:
        """Right and wrong rows; of labels the whole matrix."""
        if not rows.has_actual or not self.form.compares:
            return
        if self.form.confuses:
            self._ask("confusion", {"parquet": str(rows.path)}, self._on_confusion)
        elif rows.small:
            right, wrong = (len(rows.filter(wanted, "", "", False)) for wanted in (True, False))
            self.overview.show_counts(right, wrong)

    def _on_confusion(self, confusion: Confusion) -> None:
        self.overview.show_confusion(confusion)

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

    def is_right(self, row: int) -> bool | None:
        """Whether a row is right; None where that is unknown or no question."""
        return self.rows.is_right(row) if self.rows is not None and self.form.compares else None

    def _color(self, row: int, column: str) -> str:
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

    def step_to_mistake(self, direction: int) -> None:
        """Choose the next wrong row below (+1) or above (−1) in the order that is shown."""
        line = next((line for line in self._lines_from(direction) if self.is_right(self._row_at(line)) is False), None)
        if line is None:
            self.message.emit("info", f"No mistake {'below' if direction > 0 else 'above'} this row.")
            return
        self.table.selectRow(line)
        self.table.setFocus()

    def _lines_from(self, direction: int) -> Iterator[int]:
        start = self.table.currentIndex().row() + direction
        stop = min(self.table.shown_count(), start + MOST_STEPS) if direction > 0 else max(-1, start - MOST_STEPS)
        return iter(range(start, stop, direction))

    def _row_at(self, line: int) -> int:
        return line if self._indices is None else int(self._indices[line])

    # Filter and sort

    def _on_pair_chosen(self, actual: str, predicted: str) -> None:
        self.filters.show_pair((actual, predicted) if actual or predicted else None)
        self._filter()

    def _on_order_chosen(self) -> None:
        self._sort = (self.filters.order.column, self.filters.order.descending)
        self.table.horizontalHeader().setSortIndicatorShown(False)
        self._filter()

    def _on_sort_requested(self, column: str, descending: bool) -> None:
        self._sort = (column, descending)
        self.filters.show_file_order()
        self._filter()

    def _filter(self) -> None:
        if self.rows is None:
            return
        right, text, pair = self.filters.right, self.filters.text, self.filters.pair
        self.overview.matrix.show_chosen(*(pair or ("", "")))
        if "filter_predictions" in self._tickets:
            self._tickets.pop("filter_predictions").cancel()
        if right is None and not text and not self._sort[0] and pair is None:
            self._show_indices(None)
        elif self.rows.small and pair is None and self._sort[0] in ("", CONFIDENCE, *self.rows.columns):
            self._show_indices(self.rows.filter(right, text, *self._sort).tolist())
        else:
            question: dict[str, Any] = {"parquet": str(self.rows.path), "right": right, "text": text}
            question |= {"sort_by": self._sort[0] or None, "descending": self._sort[1]}
            question |= dict(zip(("actual", "prediction"), pair, strict=True)) if pair else {}
            self._ask("filter_predictions", question, self._on_filtered)

    def _ask(self, query: str, question: dict[str, Any], on_answer: Any) -> None:
        self._tickets[query] = self._context.client.ask(query, question, on_answer, self._on_mistake)

    def _on_filtered(self, answer: RowsAnswer) -> None:
        if self.rows is not None:
            self._show_indices(self.rows.pages.read_indices(answer.arrow))  # type: ignore[arg-type]

    def _show_indices(self, indices: Sequence[int] | None) -> None:
        self._indices = indices
        self.table.set_indices(indices)
        self.side.setCurrentWidget(self.overview)
        self._write_summary()

    def _on_mistake(self, mistake: Mistake) -> None:
        self.message.emit("error", mistake.message)

    # Export

    def export(self, path: str) -> None:
        """Write the rows that are shown now, in their order, to a CSV file."""
        assert self.rows is not None
        preferences = self._context.preferences
        question = {
            "parquet": str(self.rows.path),
            "indices": None if self._indices is None else write_indices(self._indices),
            "output": path,
            "defuse": preferences.csv_defuse,
            "bom": preferences.csv_bom,
        }
        self.exportable.emit(False)
        self._context.client.ask("export_predictions", question, self._on_exported, self._on_not_exported)

    def _on_exported(self, answer: Exported) -> None:
        self.exportable.emit(True)
        self.message.emit("success", f"Wrote {count(answer.rows, 'row')} to {answer.path}.")

    def _on_not_exported(self, mistake: Mistake) -> None:
        self.exportable.emit(True)
        self._on_mistake(mistake)
