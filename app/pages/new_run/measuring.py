"""Owns the measuring of a draft's time: it is asked for, tells how far it is, can be stopped, and is kept by the backend."""

from PySide6.QtCore import QObject, Signal

from app.core import formatting
from app.core.draft.draft import Draft
from app.pages.new_run.cost_card import CostCard
from app.pages.new_run.draft_checks import DraftChecks
from app.services.backend_client import BackendClient, Ticket
from backend.contract.rpc.queries import Mistake, Progress
from backend.contract.run.measurement import MeasuredTime


class Measuring(QObject):
    """One measurement at a time, whatever becomes of the draft meanwhile."""

    changed = Signal(object)
    """How far it is: a Progress, or None where nothing is measured (any more)."""
    lacking = Signal()
    """The memory was not enough; the card says so, and what would need less."""
    failed = Signal(str)

    def __init__(
        self, client: BackendClient, draft: Draft, findings: DraftChecks, card: CostCard, parent: QObject
    ) -> None:
        super().__init__(parent)
        self._client, self._draft, self._findings, self._card = client, draft, findings, card
        self._ticket: Ticket | None = None
        self.changed.connect(card.measure.show_progress)
        card.measure.stop_asked.connect(self.stop)

    @property
    def busy(self) -> bool:
        """Whether it is measured now."""
        return self._ticket is not None

    def start(self) -> None:
        """Measure the draft as it is."""
        if self.busy:
            return
        self._ticket = self._client.ask(
            "measure_time", {"spec": self._draft.values()}, self._on_found, self._on_mistake, self.changed.emit
        )
        self.changed.emit(Progress(part="starting"))

    def stop(self) -> None:
        """The helper ends the process, which leaves nothing."""
        if self._ticket is not None:
            self._ticket.cancel()
            self._end()

    def _end(self) -> None:
        self._ticket = None
        self.changed.emit(None)

    def _on_found(self, found: MeasuredTime) -> None:
        self._end()
        if found.shortage:
            self._card.show_shortage(found)
            self.lacking.emit()
        else:
            self._findings.something_changed()

    def _on_mistake(self, mistake: Mistake) -> None:
        self._end()
        self.failed.emit(formatting.sentence(mistake.message, mistake.field))
