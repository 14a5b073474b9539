"""Owns the window that shows one row of the data whole: every column under its own name, however long its cell."""

from collections.abc import Mapping
from typing import Any

from PySide6.QtWidgets import QDialog, QPlainTextEdit, QScrollArea, QVBoxLayout, QWidget

from app.core import formatting
from app.core.i18n import tr
from app.services.backend_client import BackendClient, Ticket
from app.widgets.card import label
from backend.contract.rpc.data_choice import DataRow
from backend.contract.rpc.queries import DataPreview, Mistake

LINES_TALL = 8
"""Of a cell before it scrolls by itself."""


class RowDialog(QDialog):
    """Shows what the preview has at once, and what it had to cut when it comes."""

    def __init__(self, client: BackendClient, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._client = client
        self._ticket: Ticket | None = None
        self.cells: dict[str, QPlainTextEdit] = {}
        self.setWindowTitle(tr("A row of the data"))
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
        """Open on a row; `arguments` name the data, of which a long cell is asked for whole."""
        self._forget()
        self.title.setText(
            tr(
                "Row {row} of {row_count}",
                row=formatting.grouped(row + 1),
                row_count=formatting.grouped(preview.row_count),
            )
        )
        values = dict(zip(preview.columns, preview.rows[row], strict=False))
        self._fill(values)
        cut = any(text.endswith("…") for text in values.values())
        self.said.setText(tr("Reading the row whole…") if cut else "")
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

    def _on_mistake(self, mistake: Mistake) -> None:
        self.said.setText(formatting.sentence(mistake.message, mistake.field))

    def _forget(self) -> None:
        if self._ticket is not None and self._ticket.open:
            self._ticket.cancel()
        self._ticket = None
