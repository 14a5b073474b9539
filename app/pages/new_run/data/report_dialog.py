"""Owns the window with the report on the data of a draft: it is asked for with progress, shown, and copied."""

from collections.abc import Mapping
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialog, QHBoxLayout, QStackedWidget, QVBoxLayout, QWidget

from app.core import formatting
from app.core.backend_words import said
from app.core.draft import data_report_text
from app.core.i18n import tr
from app.pages.new_run.data.report_view import ReportView
from app.services.backend_client import BackendClient, Ticket
from app.widgets.card import label
from app.widgets.empty_state import EmptyState
from app.widgets.icon_label import IconButton
from app.widgets.progress_bar import ThinProgressBar
from backend.contract.rpc.queries import DataReport, Mistake, Progress


class ReportDialog(QDialog):
    """Beside the window, which can be used meanwhile. Closing it ends the question."""

    def __init__(self, client: BackendClient, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._client = client
        self._arguments: Mapping[str, Any] = {}
        self._ticket: Ticket | None = None
        self.report: DataReport | None = None
        self.setWindowTitle(tr("Data report"))
        self.resize(940, 720)
        self.title, self.subtitle = label(tr("Data report"), "title"), label("", "muted", wrap=True)
        self.said = label("", "faint")
        self.markdown = IconButton(tr("Copy as Markdown"), "copy")
        self.json = IconButton(tr("Copy as JSON"), "copy")
        self.again = IconButton(tr("Read again"), "refresh")
        self.cancel = IconButton(tr("Cancel"), "close")
        self.words, self.bar = label("", "muted"), ThinProgressBar()
        self.view = ReportView()
        self.failure = EmptyState("error", "", button=tr("Try again"))
        self._place()
        self.markdown.clicked.connect(lambda: self._copy(tr("Markdown"), data_report_text.as_markdown))
        self.json.clicked.connect(lambda: self._copy("JSON", data_report_text.as_json))
        self.again.clicked.connect(self._ask)
        self.failure.asked.connect(self._ask)
        self.cancel.clicked.connect(self.reject)
        self.finished.connect(self._forget)

    def _place(self) -> None:
        top = QHBoxLayout()
        words = QVBoxLayout()
        words.setSpacing(2)
        words.addWidget(self.title)
        words.addWidget(self.subtitle)
        top.addLayout(words, 1)
        top.addWidget(self.said)
        for button in (self.markdown, self.json, self.again):
            button.setAutoDefault(False)
            top.addWidget(button)
        self.pages = QStackedWidget()
        for page in (self._waiting(), self.view, self.failure):
            self.pages.addWidget(page)
        column = QVBoxLayout(self)
        column.setContentsMargins(20, 18, 20, 18)
        column.setSpacing(14)
        column.addLayout(top)
        column.addWidget(self.pages, 1)

    def _waiting(self) -> QWidget:
        page = QWidget()
        column = QVBoxLayout(page)
        column.addStretch(1)
        self.bar.setFixedWidth(360)
        for widget in (self.words, self.bar, self.cancel):
            column.addWidget(widget, 0, Qt.AlignmentFlag.AlignHCenter)
        column.addStretch(2)
        return page

    def ask(self, arguments: Mapping[str, Any], subject: str) -> None:
        """Open on the data that the question's arguments name; `subject` says whose report it is."""
        self._arguments = arguments
        self.subtitle.setText(subject)
        self.show()
        self.raise_()
        self.activateWindow()
        self._ask()

    def _ask(self) -> None:
        self._forget()
        self._show_page(0)
        self.words.setText(tr("Reading the data…"))
        self.bar.set_fraction(None)
        self.cancel.setFocus()
        self._ticket = self._client.ask(
            "data_report", self._arguments, self._on_report, self._on_mistake, self._on_progress
        )

    def _show_page(self, number: int) -> None:
        self.pages.setCurrentIndex(number)
        self.said.setText("")
        for button in (self.markdown, self.json, self.again):
            button.setVisible(number == 1)

    def _on_progress(self, progress: Progress) -> None:
        self.bar.set_fraction(progress.done / progress.total if progress.total else None)
        total = tr(" of {total}", total=formatting.grouped(int(progress.total))) if progress.total else ""
        unit = said(progress.text or progress.unit)
        self.words.setText(
            tr(
                "Reading the data… {done}{total} {unit}",
                done=formatting.grouped(int(progress.done)),
                total=total,
                unit=unit,
            ).rstrip()
        )

    def _on_report(self, report: DataReport) -> None:
        self.report = report
        counted = (
            tr("tokens of {tokenizer}", tokenizer=formatting.short_path(report.tokenizer))
            if report.tokenizer
            else tr("no tokens counted")
        )
        self.title.setToolTip(tr("Measured in {seconds:.1f} s, {counted}", seconds=report.seconds, counted=counted))
        self.view.show_report(report)
        self._show_page(1)
        self.view.setFocus()

    def _on_mistake(self, mistake: Mistake) -> None:
        self.failure.set_words(tr("The data could not be read"), formatting.sentence(mistake.message, mistake.field))
        self._show_page(2)

    def _copy(self, kind: str, text_of: Any) -> None:
        if self.report is not None:
            QGuiApplication.clipboard().setText(text_of(self.report))
            self.said.setText(tr("Copied as {kind}", kind=kind))

    def _forget(self) -> None:
        if self._ticket is not None and self._ticket.open:
            self._ticket.cancel()
        self._ticket = None
