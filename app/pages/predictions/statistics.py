"""Owns the questions about all rows of a predictions file together, and where their answers are shown."""

from typing import Any

from PySide6.QtCore import QObject, Signal

from app.core.i18n import tr
from app.pages.predictions.overview_card import OverviewCard
from app.services.backend_client import BackendClient, Ticket
from app.services.prediction_rows import PredictionRows
from app.widgets.row_views.entity_view import EntityView
from app.widgets.row_views.number_view import NumberView
from app.widgets.row_views.row_view import RowView
from backend.contract.rpc.predictions import PredictionStatistics
from backend.contract.rpc.queries import Mistake


class Statistics(QObject):
    """Asks once per file, and once per label whose threshold is looked at."""

    message = Signal(str, str)

    def __init__(self, client: BackendClient, card: OverviewCard, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._client, self._card = client, card
        self._rows: PredictionRows | None = None
        self._form: type[RowView] = RowView
        self._tickets: list[Ticket] = []
        card.threshold.counts_wanted.connect(self._on_counts_wanted)

    def open(self, rows: PredictionRows, form: type[RowView]) -> None:
        """Ask what suits the rows."""
        self.close()
        self._rows, self._form = rows, form
        if not rows.has_actual:
            return
        if form is NumberView:
            self._ask("number_statistics", self._card.show_numbers)
        elif form is EntityView:
            self._ask("entity_scores", self._card.show_entities)
        elif form.confuses or (form.compares and rows.probabilities):
            self._ask("prediction_statistics", self._on_statistics)
        elif form.compares and rows.small:
            right, wrong = (len(rows.filter(wanted, "", "", False)) for wanted in (True, False))
            self._card.show_counts(right, wrong)

    def close(self) -> None:
        """What is still open is not wanted any more."""
        for ticket in self._tickets:
            ticket.cancel()
        self._tickets.clear()
        self._rows = None

    def _ask(self, query: str, show: Any, **more: Any) -> None:
        assert self._rows is not None
        question = {"parquet": str(self._rows.path), **more}
        if not more:
            self._card.show_waiting(tr("Looking…"))
        self._tickets.append(self._client.ask(query, question, show, self._on_mistake))

    def _on_statistics(self, found: PredictionStatistics) -> None:
        self._card.show_statistics(found, confuses=self._form.confuses)

    def _on_counts_wanted(self, label: str) -> None:
        if self._rows is not None:
            self._ask("threshold_counts", self._card.threshold.show_counts, label=label)

    def _on_mistake(self, mistake: Mistake) -> None:
        self._card.show_waiting("")
        self.message.emit("error", mistake.message)
