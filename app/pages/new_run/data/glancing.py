"""Owns the second look at the data: when its first rows are known, all rows are asked about, and shown when they come."""

from typing import Any

from PySide6.QtCore import QObject

from app.core import formatting
from app.core.draft.draft import Draft
from app.pages.new_run.data.data_card import DataCard
from app.pages.new_run.debounced_query import DebouncedQuery
from app.pages.new_run.draft_checks import DraftChecks
from app.services.backend_client import BackendClient
from backend.contract.rpc.data_choice import DataGlance
from backend.contract.rpc.queries import Mistake, Progress


class Glancing(QObject):
    """The newest look wins; a look at the same rows is not asked twice."""

    def __init__(
        self, client: BackendClient, draft: Draft, findings: DraftChecks, card: DataCard, parent: QObject
    ) -> None:
        super().__init__(parent)
        self._draft, self._findings, self._card = draft, findings, card
        self.glance: DataGlance | None = None
        self._asked: dict[str, Any] = {}
        self._inquiry = DebouncedQuery(
            client, "data_glance", self._arguments, self._on_glance, self._on_mistake, self._on_progress, 150, self
        )
        findings.previewed.connect(lambda preview: self._look(anew=True))
        findings.described.connect(lambda model: self._look())
        card.view.stop_asked.connect(self.stop)
        findings.emptied.connect(self._on_gone)
        findings.refused.connect(lambda topic, mistake: self._on_gone(topic))

    def stop(self) -> None:
        """The person does not want to wait for all rows."""
        self._inquiry.cancel()
        self._card.view.show_stopped()

    def arguments(self) -> dict[str, Any]:
        """What is looked at: the task, the data, and the model whose tokens are counted where it lies here."""
        model = self._findings.model
        named = self._draft.get("model.tokenizer") or (model.folder if model is not None else "")
        return {"task": self._draft.get("task"), "data": self._draft.get("data"), "model": named or None}

    def _look(self, anew: bool = False) -> None:
        if anew:
            self.glance, self._asked = None, {}
        if self._findings.preview is not None and self.arguments() != self._asked:
            self._inquiry.ask_soon()

    def _arguments(self) -> dict[str, Any] | None:
        if self._findings.preview is None:
            return None
        self._asked = self.arguments()
        self._card.view.show_counting(None)
        return self._asked

    def _on_glance(self, glance: DataGlance) -> None:
        self.glance = glance
        self._card.view.show_glance(glance)

    def _on_mistake(self, mistake: Mistake) -> None:
        self.glance = None
        self._card.view.show_glance(None)
        # What else stands in the way of a run is said by its plan, or by what is still to be chosen.
        if mistake.field in ("data.validation", "data.test"):
            self._card.mark(mistake.field, formatting.sentence(mistake.message, mistake.field))

    def _on_progress(self, progress: Progress) -> None:
        self._card.view.show_counting(progress.done / progress.total if progress.total else None)

    def _on_gone(self, topic: str) -> None:
        if topic == "data":
            self.glance, self._asked = None, {}
            self._inquiry.cancel()
