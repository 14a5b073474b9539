"""Owns writing predictions to a file that a person names, by the helper, with progress and a way to stop."""

import time
from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QObject, Signal

from app.core.backend_words import said
from app.core.formatting import name_of_path
from app.core.i18n import tr, trn
from app.core.predictions.row_rate import Pace
from app.pages.predictions.export_dialog import ExportChoice
from app.services.backend_client import BackendClient, Ticket
from app.services.prediction_rows import PredictionRows, write_indices
from app.widgets.activity_line import ActivityLine
from backend.contract.rpc.predictions import AT_THRESHOLD
from backend.contract.rpc.queries import Exported, Mistake, Progress


class Exporting(QObject):
    """One export at a time."""

    message = Signal(str, str)
    wrote = Signal(str, str)
    """What was written, in words, and the file."""
    busy = Signal(bool)

    def __init__(self, client: BackendClient, line: ActivityLine, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._client, self._line, self._pace = client, line, Pace()
        self._ticket: Ticket | None = None
        line.stopped.connect(self._on_stopped)

    def export(
        self,
        rows: PredictionRows,
        output: str,
        choice: ExportChoice,
        indices: Sequence[int] | None,
        columns: Sequence[str],
    ) -> None:
        """Write what is chosen; `indices` and `columns` are those that are shown."""
        wanted = columns if choice.shown_columns else rows.columns if choice.shown_rows else None
        question: dict[str, Any] = {
            "parquet": str(rows.path),
            "indices": write_indices(indices) if choice.shown_rows and indices is not None else None,
            "columns": None if wanted is None else [name for name in wanted if name != AT_THRESHOLD],
            "output": output,
            "format": choice.suffix,
            "defuse": choice.defuse,
            "bom": choice.bom,
        }
        if choice.threshold and rows.threshold is not None:
            label, value = rows.threshold
            question["threshold"] = {"label": label, "value": value}
        self._pace.begin()
        self._line.begin(tr("Writing {output}", output=name_of_path(output)))
        self.busy.emit(True)
        self._ticket = self._client.ask(
            "export_predictions", question, self._on_exported, self._on_mistake, self._on_progress
        )

    def _on_progress(self, progress: Progress) -> None:
        words = self._pace.words(progress.done, progress.total, said(progress.unit), time.monotonic())
        self._line.show_progress(words, progress.done / progress.total if progress.total else None)

    def _on_exported(self, answer: Exported) -> None:
        self._end()
        words = tr("Wrote {count} to {path}.", count=trn("{count} row", "{count} rows", answer.rows), path=answer.path)
        self.wrote.emit(words, answer.path)

    def _on_mistake(self, mistake: Mistake) -> None:
        self._end()
        self.message.emit("error", mistake.message)

    def _on_stopped(self) -> None:
        if self._ticket is not None:
            self._ticket.cancel()
            self._end()
            self.message.emit("info", tr("The export was stopped; no file was written."))

    def _end(self) -> None:
        self._ticket = None
        self._line.end()
        self.busy.emit(False)
