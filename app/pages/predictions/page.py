"""The Predictions page: the predicted rows of a run, and the Try box."""

from functools import cached_property
from pathlib import Path
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFileDialog, QWidget

from app.core.actions import Action
from app.core.i18n import tr
from app.core.page_actions import OPEN_PREDICTIONS, PREDICTIONS
from app.core.runs.run_spec import read_subject
from app.pages.predictions.browser import PredictionsBrowser
from app.pages.predictions.export_dialog import ExportChoice, ExportDialog
from app.pages.predictions.file_prediction import PATTERNS
from app.pages.predictions.interactive.try_box import TryBox
from app.services.context import AppContext
from app.widgets.boxes import PageStack, keep_room
from app.widgets.commands import button_action
from app.widgets.forms.chips import chips
from app.widgets.icon_label import IconButton
from app.widgets.page_layout import PageHeader, page_layout
from backend.contract.resources import resource
from backend.contract.run.folder import RunFolder

ROWS, TRY = range(2)
SUBTITLES = (tr("See a model's predictions, row by row"), tr("Try any run or model on your own text"))


class Page(QWidget):
    """Two tabs: a file's rows, and the Try box."""

    message = Signal(str, str)
    wrote = Signal(str, str)
    """What was exported, in words, and the file."""
    runs_requested = Signal()
    bar_built = Signal(object)
    """A bar at the bottom, which no message may cover."""

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("page")
        self._summary = ""
        self._preferences = context.preferences
        self._context = context
        self.header = PageHeader(tr("Predictions"), parent=self)
        self.sides, row = chips([tr("Rows"), tr("Try")])
        self.sides.idClicked.connect(self.show_tab)
        self.header.buttons.addLayout(row)
        self.predict_button = IconButton(tr("Predict a file…"), "plus")
        self.predict_button.setToolTip(tr("Predict a data file with this run, or drop the file on this page"))
        self.predict_button.clicked.connect(self._choose_file)
        self.export_button = IconButton(tr("Export…"), "download")
        self.export_button.setToolTip(tr("Save these rows as a CSV or Parquet file"))
        self.export_button.clicked.connect(self.ask_export)
        for button in (self.predict_button, self.export_button):
            self.header.buttons.addWidget(button)
        keep_room(self.predict_button, self.export_button)  # else the choice beside them would move under the mouse
        self.pages = PageStack(self)
        self.browser = PredictionsBrowser(context, self.pages)
        self.browser.message.connect(self.message)
        self.browser.wrote.connect(self.wrote)
        self.browser.runs_requested.connect(self.runs_requested)
        self.browser.exportable.connect(self.export_button.setEnabled)
        self.browser.predictable.connect(self.predict_button.setEnabled)
        self.browser.summary_changed.connect(self._on_summary)
        self.browser.try_requested.connect(self._on_try_requested)
        self.pages.addWidget(self.browser)
        column = page_layout(self)
        column.addWidget(self.header)
        column.addWidget(self.pages, 1)
        self.bars = (self.browser.further.line, self.browser.line)
        self.export_button.setEnabled(self.browser.rows is not None)
        self.predict_button.setEnabled(False)
        self.show_tab(ROWS)

    @cached_property
    def attempt(self) -> TryBox:
        """The Try tab, built on first use: most people come for the rows."""
        attempt = TryBox(self._context, self.pages)
        attempt.message.connect(self.message)
        self.pages.addWidget(attempt)
        self.bar_built.emit(attempt.collecting.bar)
        return attempt

    @property
    def table(self) -> QWidget:
        """The table of the rows."""
        return self.browser.table

    def on_shown(self) -> None:
        """Read new results."""
        self.browser.on_shown()
        if self.pages.currentIndex() == TRY:
            self.attempt.on_shown()

    def offered_actions(self) -> list[Action]:
        """For the palette and the keyboard."""
        return [
            PREDICTIONS["rows"].bind(lambda: self.show_tab(ROWS)),
            PREDICTIONS["try"].bind(lambda: self.show_tab(TRY)),
            button_action(self.export_button, PREDICTIONS["export"], lambda: OPEN_PREDICTIONS),
        ]

    def show_run(self, path: str) -> None:
        """Show the predictions of a run folder, validation first."""
        self.browser.show_run(path)
        self.show_tab(ROWS)

    def try_run(self, path: str) -> None:
        """Let the user try the model of a run folder."""
        self.browser.show_run(path)
        self.show_tab(TRY)
        self.attempt.form.show_run(self.browser.run, self.browser.task.kind)

    def show_tab(self, side: int) -> None:
        """Show the rows or the Try box, which starts with the current run."""
        self.sides.button(side).setChecked(True)
        if side == TRY and self.pages.currentIndex() != TRY:
            self.attempt.on_shown()
            if not self.attempt.form.chosen_target():
                self.attempt.form.show_run(self.browser.run, self.browser.task.kind)
        self.pages.setCurrentIndex(side)
        self.export_button.setVisible(side == ROWS and self.browser.rows is not None)
        self.predict_button.setVisible(side == ROWS)
        self._write_subtitle()

    def _on_summary(self, summary: str) -> None:
        self._summary = summary
        self.export_button.setVisible(self.pages.currentIndex() == ROWS and bool(summary))
        self._write_subtitle()

    def _write_subtitle(self) -> None:
        side = self.pages.currentIndex()
        self.header.set_subtitle(self._summary if side == ROWS and self._summary else SUBTITLES[side])

    def _on_try_requested(self, values: dict[str, Any]) -> None:
        form = self.attempt.form
        self.show_tab(TRY)
        form.show_run(self.browser.run, self.browser.task.kind)
        form.fill_row(values, self.browser.task.columns)

    def ask_export(self) -> ExportDialog:
        """Ask which rows to export and how, then where to."""
        dialog = ExportDialog(self.browser.offer(), self._preferences, self)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.chosen.connect(self._choose_output)
        dialog.open()
        return dialog

    def _choose_output(self, choice: ExportChoice) -> None:
        run = self.browser.run
        assert run is not None
        split = self.browser.filters.split
        stem = "predictions" if split == "validation" else f"predictions-{split}"
        folder = Path(self.folder_of_data())
        if folder.is_relative_to(resource("demo")):
            folder = Path.home()
        suggested = str(folder / f"{run.name}-{stem}.{choice.suffix}")
        pattern = tr("CSV (*.csv)") if choice.suffix == "csv" else tr("Parquet (*.parquet)")
        path, _ = QFileDialog.getSaveFileName(self, tr("Export predictions"), suggested, pattern)
        if path:
            self.browser.export(path, choice)

    def folder_of_data(self) -> str:
        """Where the run's training data is, which other files are often next to; else the user's home."""
        run = self.browser.run
        data = Path(read_subject(RunFolder(run)).train_path if run is not None else "")
        return str(data.parent if data.is_absolute() and data.parent.is_dir() else Path.home())

    def _choose_file(self) -> None:
        path, _ = QFileDialog.getOpenFileName(self, tr("Predict a file"), self.folder_of_data(), PATTERNS)
        if path:
            self.browser.predict_file(path)
