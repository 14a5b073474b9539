"""Owns the Predictions page: the rows of a run with what was predicted, filtered, sorted, and taken home as CSV."""

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import (
    QFileDialog,
    QHBoxLayout,
    QLineEdit,
    QSplitter,
    QStackedWidget,
    QWidget,
)

from app.core.wording import count, number
from app.services.backend_client import Ticket
from app.services.context import AppContext
from app.services.prediction_rows import PredictionRows, write_indices
from app.widgets.card import Card
from app.widgets.chips import chips
from app.widgets.empty_state import EmptyState
from app.widgets.icon_label import IconButton
from app.widgets.page_header import PageHeader, page_layout
from app.widgets.quiet_combo_box import QuietComboBox
from app.widgets.row_details import RowDetails
from app.widgets.row_table import RowTable
from backend.contract.queries import Exported, Mistake
from backend.contract.queries import PredictionRows as RowsAnswer
from backend.contract.run_folder import RunFolder

CALM_MS = 200
SPLITS = (("Validation", "validation"), ("Test", "test"))
RIGHTNESS: tuple[tuple[str, bool | None], ...] = (("All", None), ("Right", True), ("Wrong", False))


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
        self._calm = QTimer(self, interval=CALM_MS, singleShot=True)
        self._calm.timeout.connect(self._filter)
        self.header = PageHeader("Predictions")
        self.export_button = IconButton("Export CSV", "download")
        self.export_button.clicked.connect(self._choose_output)
        self.header.buttons.addWidget(self.export_button)
        self.empty = EmptyState("target", "", "", "Show runs")
        self.empty.asked.connect(self.runs_requested)
        self.stack = QStackedWidget()
        self.stack.addWidget(self.empty)
        self.stack.addWidget(self._content())
        column = page_layout(self)
        column.addWidget(self.header)
        column.addWidget(self._toolbar())
        column.addWidget(self.stack, 1)
        context.library_watcher.changed.connect(self._list_runs)
        self._list_runs()
        self._show_nothing()

    # Building

    def _toolbar(self) -> QWidget:
        self.toolbar = QWidget()
        self.run_choice = QuietComboBox()
        self.run_choice.setMinimumWidth(240)
        self.run_choice.setAccessibleName("Run")
        self.run_choice.activated.connect(lambda _: self.show_run(self.run_choice.currentData()))
        self.split_group, splits = chips([title for title, _ in SPLITS])
        self.right_group, rights = chips([title for title, _ in RIGHTNESS])
        self.split_group.idClicked.connect(lambda _: self._open())
        self.right_group.idClicked.connect(lambda _: self._filter())
        self.search = QLineEdit(placeholderText="Find text in any column", clearButtonEnabled=True)
        self.search.setAccessibleName("Find text in any column")
        self.search.setMaximumWidth(320)
        self.search.textChanged.connect(self._calm.start)
        row = QHBoxLayout(self.toolbar)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(18)
        row.addWidget(self.run_choice, 1)
        row.addLayout(splits)
        row.addLayout(rights)
        row.addStretch(1)
        row.addWidget(self.search, 2)
        return self.toolbar

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
        self.splitter.setSizes([700, 320])
        return self.splitter

    def shown(self) -> None:
        """The newest run with predictions, if none was chosen."""
        self._list_runs()
        if self._run is None and self.run_choice.count():
            self.show_run(self.run_choice.itemData(0))
        elif self._run is not None and self._rows is None:
            self._open()

    def _list_runs(self) -> None:
        runs = [run for run in self._context.library.runs if run.has_predictions]
        known = [(f"{run.title} · {run.name}", str(run.path)) for run in runs]
        if self._run is not None and str(self._run) not in [path for _, path in known]:
            known.insert(0, (self._run.name, str(self._run)))
        if known == [
            (self.run_choice.itemText(i), self.run_choice.itemData(i)) for i in range(self.run_choice.count())
        ]:
            return
        self.run_choice.clear()
        for title, path in known:
            self.run_choice.addItem(title, path)
        if self._run is not None:
            self.run_choice.setCurrentIndex(self.run_choice.findData(str(self._run)))

    # What is shown

    def show_run(self, path: str) -> None:
        """Show the predictions of a run folder; validation first."""
        if not path:
            return
        self._run = Path(path)
        self._list_runs()
        self.run_choice.setCurrentIndex(self.run_choice.findData(str(self._run)))
        folder = RunFolder(self._run)
        for place, (_, split) in enumerate(SPLITS):
            self.split_group.button(place).setEnabled(folder.predictions(split, "parquet").is_file())
        first = next((i for i in range(len(SPLITS)) if self.split_group.button(i).isEnabled()), 0)
        self.split_group.button(first).setChecked(True)
        self._open()

    def _open(self) -> None:
        assert self._run is not None
        split = SPLITS[self.split_group.checkedId()][1]
        path = RunFolder(self._run).predictions(split, "parquet")
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
        self._enable(False)

    def _enable(self, on: bool) -> None:
        for widget in (self.export_button, self.search, *self.right_group.buttons()):
            widget.setEnabled(on)
        self.export_button.setVisible(on)
        self.toolbar.setVisible(on or self.run_choice.count() > 0)

    def _show_rows(self, rows: PredictionRows) -> None:
        self.table.set_source(rows, rows.shown_columns())
        self.table.set_widths(*rows.widths())
        self.stack.setCurrentWidget(self.splitter)
        self._enable(True)
        for button in self.right_group.buttons()[1:]:
            button.setEnabled(rows.has_actual)
        if not rows.has_actual:
            self.right_group.button(0).setChecked(True)
        self._write_subtitle()
        self._filter()

    def _write_subtitle(self) -> None:
        assert self._rows is not None
        assert self._run is not None
        words = [count(self._rows.row_count, "row")]
        shown = self.table.shown_count()
        if shown != self._rows.row_count:
            words.append(f"{shown:,} shown")
        run = self._context.library.find(self._run)
        if run is not None and run.metric and run.best is not None and self.split_group.checkedId() == 0:
            words.append(f"{run.metric} {number(run.best)}")
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
        right, text = RIGHTNESS[self.right_group.checkedId()][1], self.search.text().strip()
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
