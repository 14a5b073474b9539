"""Owns the list of the rows that cannot be used: file, line and reason, what becomes of them, and their export."""

from collections.abc import Mapping
from typing import Any

from PySide6.QtWidgets import QDialog, QFileDialog, QHBoxLayout, QVBoxLayout, QWidget

from app.core import formatting
from app.core.draft.data_report_text import split_title
from app.core.i18n import tr, trn
from app.services.backend_client import BackendClient
from app.widgets.card import label
from app.widgets.icon_label import IconButton
from app.widgets.tables.text_table import TextTable
from backend.contract.rpc.data_choice import DataGlance
from backend.contract.rpc.queries import Exported, Mistake

HEADER = (tr("Split"), tr("File"), tr("Line"), tr("Reason"))
WORDS = tr(
    "They are left out: the run trains and measures on all other rows, and lists these again "
    "in its journal. Mend them in the file and read it again to use them."
)


class UnusableDialog(QDialog):
    """Beside the window, which can be used meanwhile."""

    def __init__(self, client: BackendClient, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._client = client
        self._arguments: Mapping[str, Any] = {}
        self.setWindowTitle(tr("Rows that cannot be used"))
        self.resize(720, 480)
        self.title, self.reasons = label("", "section"), label("", "muted", wrap=True, selectable=True)
        self.table = TextTable(tr("Rows that cannot be used"))
        self.said = label("", "faint", wrap=True)
        self.export = IconButton(tr("Export as CSV"), "save")
        self.export.clicked.connect(self._on_export)
        self.close_button = IconButton(tr("Close"), "close")
        self.close_button.clicked.connect(self.close)
        column = QVBoxLayout(self)
        column.setContentsMargins(20, 16, 20, 16)
        column.setSpacing(10)
        for widget in (self.title, self.reasons, label(WORDS, "muted", wrap=True)):
            column.addWidget(widget)
        column.addWidget(self.table, 1)
        foot = QHBoxLayout()
        foot.addWidget(self.said, 1)
        foot.addWidget(self.export)
        foot.addWidget(self.close_button)
        column.addLayout(foot)

    def show_rows(self, glance: DataGlance, arguments: Mapping[str, Any]) -> None:
        """Open on a glance; `arguments` name the data for the export."""
        self._arguments = arguments
        listed = [(split_title(split.split), row) for split in glance.splits for row in split.first_unusable]
        count = sum(split.unusable for split in glance.splits)
        self.title.setText(tr("{count} cannot be used", count=trn("{count} row", "{count} rows", count)))
        reasons: dict[str, int] = {}
        for split in glance.splits:
            for reason, number in split.reasons.items():
                reasons[reason] = reasons.get(reason, 0) + number
        self.reasons.setText(
            " · ".join(f"{reason}: {formatting.grouped(number)}" for reason, number in reasons.items())
        )
        self.table.show_rows(
            HEADER, [(split, row.file, formatting.grouped(row.line), row.reason) for split, row in listed]
        )
        more = count - len(listed)
        self.said.setText(
            tr("The first {number} are listed; the file will have all.", number=formatting.grouped(len(listed)))
            if more > 0
            else ""
        )
        self.show()
        self.raise_()
        self.activateWindow()

    def _on_export(self) -> None:
        path, _ = QFileDialog.getSaveFileName(
            self, tr("Export the rows that cannot be used"), "unusable.csv", tr("CSV (*.csv)")
        )
        if path:
            self.write(path)

    def write(self, path: str) -> None:
        """Write all of them to a file."""
        self.said.setText(tr("Writing…"))
        self._client.ask("export_unusable", {**self._arguments, "output": path}, self._on_written, self._on_mistake)

    def _on_written(self, written: Exported) -> None:
        self.said.setText(
            tr(
                "{count} written to {path}",
                count=trn("{count} row", "{count} rows", written.rows),
                path=formatting.short_path(written.path),
            )
        )

    def _on_mistake(self, mistake: Mistake) -> None:
        self.said.setText(formatting.sentence(mistake.message, mistake.field))
