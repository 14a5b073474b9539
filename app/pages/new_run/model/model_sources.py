"""The models to choose from: local ones, those found on the Hub, and why the Hub did not answer."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from PySide6.QtCore import QObject, Signal

from app.core import formatting
from app.services.backend_client import BackendClient
from app.services.latest_question import LatestQuestion
from backend.contract.rpc.models import HubModel, HubSearch, ModelChoice, ModelChoices
from backend.contract.rpc.protocol import ErrorReply

SEARCH_DELAY_MS, DETAILS_DELAY_MS = 450, 250
"""Whoever types or walks down the list is waited for."""

MakeFilter = Callable[[], Mapping[str, Any]]


class ModelSources(QObject):
    """Queries the helper; the newest query wins."""

    changed = Signal()
    searching = Signal(str)
    """A search of the Hub for these words has started."""
    described = Signal(object)
    """A HubModel."""
    undescribed = Signal(str)

    def __init__(self, client: BackendClient, make_filter: MakeFilter, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._filter = make_filter
        self.local: list[ModelChoice] = []
        self.on_hub: list[ModelChoice] = []
        self.local_failure = ""
        self.hub_failure = ""
        """Why the hub has found nothing to show; empty where it was asked and has answered."""
        self.is_cut = False
        self._recent: list[str] = []
        self._words = ""
        self._marked = ""
        self._local = LatestQuestion(
            client, "model_choices", self._on_local_models, self._on_local_failure, opened="",
            arguments=self._local_arguments, parent=self,
        )  # fmt: skip
        self._search = LatestQuestion(
            client, "hub_search", self._on_found, self._on_unfound, opened="",
            arguments=self._search_arguments, delay_ms=SEARCH_DELAY_MS, parent=self,
        )  # fmt: skip
        self._details = LatestQuestion(
            client, "hub_model", self._on_details, self._on_no_details, opened="",
            arguments=self._details_arguments, delay_ms=DETAILS_DELAY_MS, parent=self,
        )  # fmt: skip

    @property
    def is_searching(self) -> bool:
        """Whether the hub has not answered yet."""
        return self._search.waits

    def refresh_local(self, recent: Sequence[str]) -> None:
        """Query the models on this computer; `recent` are recently used names."""
        self._recent = list(recent)
        self._local.stop()  # a download may have finished since that query
        self._local.ask_now()

    def search(self, words: str, *, soon: bool = False) -> None:
        """Search the hub; `soon` waits until typing pauses."""
        self._words = words.strip()
        self.on_hub, self.hub_failure, self.is_cut = [], "", False
        if soon:
            self._search.ask_soon()
        else:
            self._search.ask_now()
        self.searching.emit(self._words)

    def stop_search(self, sentence: str = "") -> None:
        """Stop the search; `sentence` says why there is nothing to show."""
        self._search.stop()
        self.hub_failure = sentence

    def describe(self, model: ModelChoice | None) -> None:
        """Query what a hub model's download would include, and drop the previous query."""
        self._details.stop()
        self._marked = model.name if model is not None and not model.is_here else ""
        if self._marked:
            self._details.ask_soon()

    def close(self) -> None:
        """Drop all queries."""
        for question in (self._local, self._search, self._details):
            question.stop()

    # Questions and answers

    def _local_arguments(self) -> dict[str, Any]:
        return {"needs": self._filter(), "recent": self._recent}

    def _search_arguments(self) -> dict[str, Any]:
        return {"needs": self._filter(), "words": self._words}

    def _details_arguments(self) -> dict[str, Any]:
        return {"name": self._marked, "needs": self._filter()}

    def _on_local_models(self, found: ModelChoices) -> None:
        self.local, self.local_failure = found.models, ""
        self.changed.emit()

    def _on_local_failure(self, mistake: ErrorReply) -> None:
        self.local_failure = formatting.sentence(mistake.message)
        self.changed.emit()

    def _on_found(self, found: HubSearch) -> None:
        self.on_hub, self.is_cut = found.models, found.is_cut
        self.changed.emit()

    def _on_unfound(self, mistake: ErrorReply) -> None:
        self.hub_failure = f"{formatting.sentence(mistake.message)}."
        self.changed.emit()

    def _on_details(self, found: HubModel) -> None:
        self.described.emit(found)

    def _on_no_details(self, mistake: ErrorReply) -> None:
        self.undescribed.emit(formatting.sentence(mistake.message, mistake.field))
