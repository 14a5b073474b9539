"""Owns writing the rows of a vocabulary to a file that a person names, by the helper."""

from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QFileDialog, QWidget

from app.core.i18n import tr, trn
from app.core.preferences import Preferences
from app.services.backend_client import BackendClient, Ticket
from backend.contract.rpc.queries import Exported, Mistake


class VocabularyExport(QObject):
    """One export at a time."""

    message = Signal(str, str)
    busy = Signal(bool)

    def __init__(self, client: BackendClient, preferences: Preferences, side: QWidget) -> None:
        super().__init__(side)
        self._client, self._preferences, self._side = client, preferences, side
        self._ticket: Ticket | None = None

    def asked_path(self, name: str) -> str:
        """The file that a person names, beginning with this name; empty where they go back."""
        suggested = str(Path.home() / f"{name}.csv")
        path, _ = QFileDialog.getSaveFileName(self._side, tr("Export as CSV"), suggested, tr("CSV (*.csv)"))
        return path

    def export(self, about: dict[str, Any], path: str) -> None:
        """Write the rows of a table that a question is `about` to a CSV file."""
        chosen = {"output": path, "defuse": self._preferences.csv_defuse, "bom": self._preferences.csv_bom}
        self.busy.emit(True)
        self._ticket = self._client.ask("export_vocabulary", {**about, **chosen}, self._on_exported, self._on_mistake)

    def stop(self) -> None:
        """What is being written is not wanted any more."""
        if self._ticket is not None:
            self._ticket.cancel()
            self._ticket = None

    def _on_exported(self, answer: Exported) -> None:
        self.busy.emit(False)
        rows = trn("{count} row", "{count} rows", answer.rows)
        self.message.emit("success", tr("Wrote {count} to {path}.", count=rows, path=answer.path))

    def _on_mistake(self, mistake: Mistake) -> None:
        self.busy.emit(False)
        self.message.emit("error", mistake.message)
