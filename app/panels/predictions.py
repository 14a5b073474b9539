"""Owns the Predictions page: the rows of a run with what was predicted, filtered, sorted, and taken home as CSV."""

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QFileDialog,
    QSplitter,
    QStackedWidget,
    QWidget,
)

from app.core.wording import count, grouped, metric_title, number
from app.panels.predictions_cards.filter_bar import SPLITS, FilterBar
from app.services.backend_client import Ticket
from app.services.context import AppContext
from app.services.prediction_rows import PredictionRows, write_indices
from app.widgets.card import Card
from app.widgets.empty_state import EmptyState
from app.widgets.icon_label import IconButton
from app.widgets.page_header import PageHeader, page_layout
from app.widgets.row_details import RowDetails
from app.widgets.row_table import RowTable
from backend.contract.queries import Exported, Mistake
from backend.contract.queries import PredictionRows as RowsAnswer
from backend.contract.run_folder import RunFolder


class Panel(QWidget):
    """Shows one predictions file; emits what it wants to say."""

    message = Signal(str, str)
    runs_requested = Signal()

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("page")
        self._context = context
        self._rows: PredictionRows | None = None
        self._run: Path | None = None
        self._indices: Sequence[int] | None = None
        self._sort: tuple[str, bool] = ("", False)
        self._ticket: Ticket | None = None
        self.header = PageHeader("Predictions")
        self.export_button = IconButton("Export CSV", "download")
        self.export_button.clicked.connect(self._choose_output)
        self.header.buttons.addWidget(self.export_button)
        self.filters = FilterBar()
        self.filters.run_chosen.connect(self.show_run)
        self.filters.split_chosen.connect(self._open)
        self.filters.changed.connect(self._filter)
        self.empty = EmptyState("target", "", "", "Show runs")
        self.empty.asked.connect(self.runs_requested)
        self.stack = QStackedWidget()
        self.stack.addWidget(self.empty)
        self.stack.addWidget(self._content())
        column = page_layout(self)
        column.addWidget(self.header)
        column.addWidget(self.filters)
        column.addWidget(self.stack, 1)
        context.library_watcher.changed.connect(self._list_runs)
        self._list_runs()
        self._show_nothing()

    # Building

    def _content(self) -> QWidget:
        self.table = RowTable()
        self.table.setAccessibleName("Predictions")
        self.table.set_color(self._color)
        self.table.row_selected.connect(self._show_row)
        self.table.sort_requested.connect(self._on_sort_requested)
        card = Card()
        card.layout().setContentsMargins(1, 6, 1, 8)  # type: ignore[union-attr]
        card.add(self.table, 1)
        self.details = RowDetails("Row")
        self.details.hide()
        self.splitter = QSplitter(Qt.Orientation.Horizontal)
        self.splitter.setHandleWidth(14)
        self.splitter.setChildrenCollapsible(False)
        self.splitter.addWidget(card)
        self.splitter.addWidget(self.details)
        self.splitter.setStretchFactor(0, 1)
        self.splitter.setSizes([740, 280])
        return self.splitter

    def shown(self) -> None:
        """The newest run with predictions, if none was chosen; what was written since is read."""
        self._list_runs()
        if self._run is None and self.filters.run_choice.count():
            self.show_run(self.filters.run_choice.itemData(0))
        elif self._run is not None and (self._rows is None or self._rows.is_old):
            self.show_run(str(self._run))

    def _list_runs(self) -> None:
        self.filters.list_runs(self._context.library.runs, self._run)

    # What is shown

    def show_run(self, path: str) -> None:
        """Show the predictions of a run folder; validation first."""
        if not path:
            return
        self._run = Path(path)
        self._list_runs()
        folder = RunFolder(self._run)
        splits = [split for _, split in SPLITS if folder.predictions(split, "parquet").is_file()]
        self.filters.offer_splits(splits)
        self._open()

    def _open(self) -> None:
        if self._run is None:
            return
        path = RunFolder(self._run).predictions(self.filters.split, "parquet")
        self._close_rows()
        if not path.is_file():
            self._show_nothing()
            return
        try:
            self._rows = PredictionRows(path)
        except (OSError, ValueError) as error:
            self._show_nothing()
            self.empty.set_words("These predictions cannot be read", f"{path.name}: {error}")
            return
        self._show_rows(self._rows)

    def _close_rows(self) -> None:
        if self._rows is not None:
            self.table.set_source(None)
            self._rows.close()
        if self._ticket is not None:
            self._ticket.cancel()
        self._rows, self._indices, self._sort = None, None, ("", False)
        self.details.hide()

    def _show_nothing(self) -> None:
        title = "No predictions yet"
        sentence = "A run writes its predictions when it ends. Choose a run that has finished."
        if self._run is not None:
            sentence = f"{self._run.name} has not written predictions yet; it does so when it ends."
        self.empty.set_words(title, sentence)
        self.stack.setCurrentWidget(self.empty)
        self.header.set_subtitle("What a model answered, row by row")
        self._enable(False, has_actual=False)

    def _enable(self, on: bool, has_actual: bool) -> None:
        self.export_button.setEnabled(on)
        self.export_button.setVisible(on)
        self.filters.offer_rows(on, has_actual)
        self.filters.setVisible(on or self.filters.run_choice.count() > 0)

    def _show_rows(self, rows: PredictionRows) -> None:
        self.table.set_source(rows, rows.shown_columns())
        self.table.set_widths(*rows.widths())
        self.stack.setCurrentWidget(self.splitter)
        self._enable(True, rows.has_actual)
        self._write_subtitle()
        self._filter()

    def _write_subtitle(self) -> None:
        assert self._rows is not None
        assert self._run is not None
        words = [count(self._rows.row_count, "row")]
        shown = self.table.shown_count()
        if shown != self._rows.row_count:
            words.append(f"{grouped(shown)} shown")
        run = self._context.library.find(self._run)
        if run is not None and run.metric and run.best is not None and self.filters.split == "validation":
            words.append(f"{metric_title(run.metric).lower()} {number(run.best)}")
        words.append(run.title if run is not None else self._run.name)
        self.header.set_subtitle(" · ".join(words))

    def _color(self, row: int, column: str) -> str:
        if column != "prediction" or self._rows is None:
            return ""
        right = self._rows.is_right(row)
        return "" if right is None else "success" if right else "danger"

    def _show_row(self, row: int) -> None:
        if self._rows is None or row < 0:
            self.details.hide()
            return
        self.details.set_title(f"Row {row + 1}")
        right = self._rows.is_right(row)
        self.details.show_values(self._rows.pages.row(row), {} if right is None else self._verdict(right))
        self.details.show()

    def _verdict(self, right: bool) -> dict[str, str]:
        return {"prediction": "success" if right else "danger"}

    # Filter and sort

    def _on_sort_requested(self, column: str, descending: bool) -> None:
        self._sort = (column, descending)
        self._filter()

    def _filter(self) -> None:
        if self._rows is None:
            return
        right, text = self.filters.right, self.filters.text
        if self._ticket is not None:
            self._ticket.cancel()
        if right is None and not text and not self._sort[0]:
            self._show_indices(None)
        elif self._rows.small:
            self._show_indices(self._rows.filter(right, text, *self._sort).tolist())
        else:
            question = {"parquet": str(self._rows.path), "right": right, "text": text}
            question |= {"sort_by": self._sort[0] or None, "descending": self._sort[1]}
            self._ticket = self._context.client.ask("filter_predictions", question, self._on_filtered, self._on_mistake)

    def _on_filtered(self, answer: RowsAnswer) -> None:
        if self._rows is not None:
            self._show_indices(self._rows.pages.read_indices(answer.arrow))  # type: ignore[arg-type]

    def _show_indices(self, indices: Sequence[int] | None) -> None:
        self._indices = indices
        self.table.set_indices(indices)
        self.details.hide()
        self._write_subtitle()

    def _on_mistake(self, mistake: Mistake) -> None:
        self.message.emit("error", mistake.message)

    # Export

    def _choose_output(self) -> None:
        assert self._run is not None
        suggested = str(Path.home() / f"{self._run.name}-predictions.csv")
        path, _ = QFileDialog.getSaveFileName(self, "Export predictions as CSV", suggested, "CSV (*.csv)")
        if path:
            self.export(path)

    def export(self, path: str) -> None:
        """Write the rows that are shown now, in their order, to a CSV file."""
        assert self._rows is not None
        preferences = self._context.preferences
        question = {
            "parquet": str(self._rows.path),
            "indices": None if self._indices is None else write_indices(self._indices),
            "output": path,
            "defuse": preferences.csv_defuse,
            "bom": preferences.csv_bom,
        }
        self.export_button.setEnabled(False)
        self._context.client.ask("export_predictions", question, self._on_exported, self._on_not_exported)

    def _on_exported(self, answer: Exported) -> None:
        self.export_button.setEnabled(True)
        self.message.emit("success", f"Wrote {count(answer.rows, 'row')} to {answer.path}.")

    def _on_not_exported(self, mistake: Mistake) -> None:
        self.export_button.setEnabled(True)
        self._on_mistake(mistake)
