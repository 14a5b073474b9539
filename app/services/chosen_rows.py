"""Owns which rows of a predictions file are shown: small files are filtered here, large ones by the helper."""

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QObject, Signal

from app.core.backend_sentences import told
from app.core.predictions.row_filter import RowFilter
from app.services.backend_client import ArrowAnswer, BackendClient, Ticket
from app.services.latest_question import LatestQuestion
from app.services.prediction_rows import CONFIDENCE, PredictionRows
from backend.contract.rpc.predictions import PredictionPages
from backend.contract.rpc.predictions import PredictionRows as RowsAnswer
from backend.contract.rpc.protocol import Mistake, Progress


class ChosenRows(QObject):
    """Answers the latest wish; an older answer that comes late is left out."""

    changed = Signal(object)
    """Row numbers in order; None for all rows as they are in the file."""
    refused = Signal(str)
    opening = Signal(float)
    """Which part of a large file has been laid out for quick reading."""
    opened = Signal()
    waiting = Signal(bool)
    """Whether an answer is being waited for."""

    def __init__(self, client: BackendClient, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._client = client
        self._rows: PredictionRows | None = None
        self._wanted: tuple[RowFilter, tuple[str, bool]] = (RowFilter(), ("", False))
        self._opening: Ticket | None = None
        self._question = LatestQuestion(client, "filter_predictions", self._answered, self._on_mistake, None, "parquet")

    def open(self, rows: PredictionRows) -> None:
        """These rows are shown from now on, all of them at first."""
        self.close()
        self._rows = rows
        if rows.needs_pages:
            question = {"parquet": str(rows.path)}
            self._opening = self._client.ask(
                "open_predictions", question, self._on_opened, self._on_not_opened, self._on_progress
            )

    def close(self) -> None:
        """Nothing is shown any more."""
        if self._opening is not None:
            self._opening.cancel()
        self._question.ignore()
        self._rows, self._opening = None, None
        self._wanted = (RowFilter(), ("", False))

    @property
    def is_busy(self) -> bool:
        """Whether other rows are still to come."""
        return self._question.open

    def want(self, wanted: RowFilter, sort: tuple[str, bool]) -> None:
        """Show the rows that fit, sorted by a column (empty: as in the file), descending or not."""
        self._wanted = (wanted, sort)
        if self._rows is None:
            return
        if wanted.is_empty and not sort[0]:
            self._question.ignore()
            self._tell(None)
        elif self._rows.small and wanted.is_plain and sort[0] in ("", CONFIDENCE, *self._rows.pages.columns):
            self._question.ignore()
            self._tell(self._rows.filter(wanted.right, wanted.text, *sort).tolist())
        elif self._opening is None:
            question: dict[str, Any] = {"parquet": str(self._rows.path), **wanted.question()}
            question |= {"sort_by": sort[0] or None, "descending": sort[1]}
            self._question.ask(question)
            self.waiting.emit(True)
        else:
            self.waiting.emit(True)

    def _tell(self, indices: Sequence[int] | None) -> None:
        self.waiting.emit(False)
        self.changed.emit(indices)

    def _answered(self, answer: RowsAnswer) -> None:
        rows = self._rows
        if rows is None or self._question.open or self._question.answered.get("parquet") != str(rows.path):
            ArrowAnswer(answer.arrow).discard()
            return
        self._tell(rows.pages.read_indices(answer.arrow))  # type: ignore[arg-type]

    def _on_mistake(self, mistake: Mistake) -> None:
        self.waiting.emit(False)
        self.refused.emit(mistake.message)

    # A large file

    def _on_opened(self, pages: PredictionPages) -> None:
        assert self._rows is not None
        self._opening = None
        try:
            self._rows.pages.map(pages.arrow)
        except (OSError, ValueError) as error:
            self.refused.emit(told(str(error)))
        self.opened.emit()
        self.want(*self._wanted)

    def _on_not_opened(self, mistake: Mistake) -> None:
        self._opening = None
        self.opened.emit()
        self._on_mistake(mistake)

    def _on_progress(self, progress: Progress) -> None:
        self.opening.emit(progress.done / progress.total if progress.total else 0.0)
