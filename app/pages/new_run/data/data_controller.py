"""Owns what goes on around the data card: drops, what they are taken for, the look at all rows, lists and single rows."""

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from app.core.draft.draft import Draft
from app.pages.new_run.data.data_card import DataCard
from app.pages.new_run.data.glancing import Glancing
from app.pages.new_run.data.page_drops import PageDrops
from app.pages.new_run.data.recognising import Recognising
from app.pages.new_run.data.row_dialogs import RowDialog
from app.pages.new_run.data.unusable_dialog import UnusableDialog
from app.pages.new_run.draft_checks import DraftChecks
from app.services.backend_client import BackendClient


class DataDesk(QObject):
    """Connects the card with those who answer it."""

    changed = Signal(dict)
    """Values of the spec to set, in order."""
    task_asked = Signal(str)

    def __init__(
        self, client: BackendClient, draft: Draft, findings: DraftChecks, card: DataCard, page: QWidget
    ) -> None:
        super().__init__(page)
        self._client, self._findings, self._card, self._page = client, findings, card, page
        self.recognising = Recognising(client, draft, card, self)
        self.recognising.changed.connect(self.changed)
        self.recognising.task_asked.connect(self.task_asked)
        self.glancing = Glancing(client, draft, findings, card, self)
        self.drops = PageDrops(page, card)
        self.drops.dropped.connect(self.recognising.take)
        self.unusable: UnusableDialog | None = None
        self.row: RowDialog | None = None
        card.view.unusable_asked.connect(self.show_unusable)
        card.view.row_asked.connect(self.show_row)
        card.stop_asked.connect(findings.stop_reading)
        card.read_asked.connect(findings.data_changed)

    def show_unusable(self) -> None:
        """List the rows that cannot be used."""
        if self.glancing.glance is None:
            return
        self.unusable = self.unusable or UnusableDialog(self._client, self._page)
        self.unusable.show_rows(self.glancing.glance, self.glancing.arguments())

    def show_row(self, row: int) -> None:
        """Show a row of the preview whole."""
        if self._findings.preview is not None:
            self.row = self.row or RowDialog(self._client, self._page)
            self.row.show_row(self._findings.preview, row, self.glancing.arguments())
