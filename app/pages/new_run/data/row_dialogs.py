"""The dialogs with rows of the data: one row in full, and the unusable rows with their export."""

from collections.abc import Mapping
from typing import Any

from PySide6.QtWidgets import QDialog, QFileDialog, QHBoxLayout, QPlainTextEdit, QScrollArea, QVBoxLayout, QWidget

from app.core import formatting
from app.core.draft.data_report_text import split_title
from app.core.i18n import tr, trn
from app.services.backend_client import BackendClient, PendingQuery
from app.widgets.card import label
from app.widgets.icon_label import IconButton
from app.widgets.tables.text_table import TextTable
from backend.contract.rpc.data import DataPreview, DataRow, DataSummary
from backend.contract.rpc.protocol import ErrorReply, ExportedFile

UNUSABLE_HEADER = (tr("Split"), tr("File"), tr("Line"), tr("Reason"))
UNUSABLE_WORDS = tr(
    "The run skips these rows and lists them under Events. To use them, fix them in the file and reload it."
)

LINES_TALL = 8
"""Of a cell before it scrolls by itself."""


class RowDialog(QDialog):
    """Shows the preview's text at once, and the full text when it arrives."""

    def __init__(self, client: BackendClient, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._client = client
        self._ticket: PendingQuery | None = None
        self.cells: dict[str, QPlainTextEdit] = {}
        self.setWindowTitle(tr("Row"))
        self.resize(680, 560)
        self.title, self.said = label("", "section"), label("", "faint", wrap=True)
        self.area = QScrollArea(widgetResizable=True)
        self.area.setAccessibleName(tr("Columns of the row"))
        column = QVBoxLayout(self)
        column.setContentsMargins(20, 16, 20, 16)
        for widget in (self.title, self.area, self.said):
            column.addWidget(widget)
        self.finished.connect(self._forget)

    def show_row(self, preview: DataPreview, row: int, arguments: Mapping[str, Any]) -> None:
        """Open with a row; `arguments` name the data, from which long cells are requested in full."""
        self._forget()
        self.title.setText(
            tr(
                "Row {row} of {row_count}",
                row=formatting.group_digits(row + 1),
                row_count=formatting.group_digits(preview.row_count),
            )
        )
        values = dict(zip(preview.columns, preview.rows[row], strict=False))
        self._fill(values)
        cut = any(text.endswith("…") for text in values.values())
        self.said.setText(tr("Loading the row…") if cut else "")
        self._ticket = self._client.ask("data_row", {**arguments, "row": row}, self._on_row, self._on_mistake)
        self.show()
        self.raise_()
        self.activateWindow()

    def _fill(self, values: Mapping[str, str]) -> None:
        inside = QWidget()
        inside.setObjectName("scrolled")
        column = QVBoxLayout(inside)
        column.setSpacing(4)
        self.cells = {}
        for name, text in values.items():
            cell = self.cells[name] = QPlainTextEdit(text, readOnly=True)
            cell.setAccessibleName(name)
            cell.setTabChangesFocus(True)
            lines = min(LINES_TALL, 1 + text.count("\n") + len(text) // 80)
            cell.setFixedHeight(30 + lines * cell.fontMetrics().lineSpacing())
            column.addWidget(label(name, "caption"))
            column.addWidget(cell)
        column.addStretch(1)
        self.area.setWidget(inside)

    def _on_row(self, row: DataRow) -> None:
        for name, text in row.cells.items():
            if name in self.cells and self.cells[name].toPlainText() != text:
                self.cells[name].setPlainText(text)
        self.said.setText(row.place)

    def _on_mistake(self, mistake: ErrorReply) -> None:
        self.said.setText(formatting.sentence(mistake.message, mistake.field))

    def _forget(self) -> None:
        if self._ticket is not None and self._ticket.open:
            self._ticket.cancel()
        self._ticket = None


class UnusableDialog(QDialog):
    """A non-modal dialog."""

    def __init__(self, client: BackendClient, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._client = client
        self._arguments: Mapping[str, Any] = {}
        self.setWindowTitle(tr("Unusable rows"))
        self.resize(720, 480)
        self.title, self.reasons = label("", "section"), label("", "muted", wrap=True, selectable=True)
        self.table = TextTable(tr("Unusable rows"))
        self.said = label("", "faint", wrap=True)
        self.export = IconButton(tr("Export as CSV"), "save")
        self.export.clicked.connect(self._on_export)
        self.close_button = IconButton(tr("Close"), "close")
        self.close_button.clicked.connect(self.close)
        column = QVBoxLayout(self)
        column.setContentsMargins(20, 16, 20, 16)
        column.setSpacing(10)
        for widget in (self.title, self.reasons, label(UNUSABLE_WORDS, "muted", wrap=True)):
            column.addWidget(widget)
        column.addWidget(self.table, 1)
        foot = QHBoxLayout()
        foot.addWidget(self.said, 1)
        foot.addWidget(self.export)
        foot.addWidget(self.close_button)
        column.addLayout(foot)

    def show_rows(self, glance: DataSummary, arguments: Mapping[str, Any]) -> None:
        """Open with a data summary; `arguments` name the data for the export."""
        self._arguments = arguments
        listed = [(split_title(split.split), row) for split in glance.splits for row in split.first_unusable]
        count = sum(split.unusable for split in glance.splits)
        self.title.setText(tr("{count} can't be used", count=trn("{count} row", "{count} rows", count)))
        reasons: dict[str, int] = {}
        for split in glance.splits:
            for reason, number in split.reasons.items():
                reasons[reason] = reasons.get(reason, 0) + number
        self.reasons.setText(
            " · ".join(f"{reason}: {formatting.group_digits(number)}" for reason, number in reasons.items())
        )
        self.table.show_rows(
            UNUSABLE_HEADER, [(split, row.file, formatting.group_digits(row.line), row.reason) for split, row in listed]
        )
        more = count - len(listed)
        self.said.setText(
            tr(
                "Showing the first {number}. The exported file contains all of them.",
                number=formatting.group_digits(len(listed)),
            )
            if more > 0
            else ""
        )
        self.show()
        self.raise_()
        self.activateWindow()

    def _on_export(self) -> None:
        path, _ = QFileDialog.getSaveFileName(self, tr("Export unusable rows"), "unusable.csv", tr("CSV (*.csv)"))
        if path:
            self.write(path)

    def write(self, path: str) -> None:
        """Write all unusable rows to a file."""
        self.said.setText(tr("Writing…"))
        self._client.ask("export_unusable", {**self._arguments, "output": path}, self._on_written, self._on_mistake)

    def _on_written(self, written: ExportedFile) -> None:
        self.said.setText(
            tr(
                "Exported {count} to {path}",
                count=trn("{count} row", "{count} rows", written.rows),
                path=formatting.short_path(written.path),
            )
        )

    def _on_mistake(self, mistake: ErrorReply) -> None:
        self.said.setText(formatting.sentence(mistake.message, mistake.field))
