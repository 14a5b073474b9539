"""Owns what happens to named or dropped data before it is read: it is recognised, put in place, said, and can be undone."""

from collections.abc import Sequence
from copy import deepcopy
from pathlib import PurePath
from typing import Any

from PySide6.QtCore import QObject, Signal

from app.core import formatting
from app.core.draft.draft import Draft
from app.core.draft.dropped_paths import as_changes, reads_otherwise, whole_choice
from app.core.i18n import tr
from app.pages.new_run.data.data_card import DataCard
from app.services.backend_client import BackendClient, Ticket
from backend.contract.rpc.data_choice import RecognisedData
from backend.contract.rpc.queries import Mistake

_OTHERS = {
    "validation": tr("give validation data of the same kind, or drop this on the page to train on it."),
    "test": tr("give test data of the same kind, or drop this on the page to train on it."),
}


class Recognising(QObject):
    """The newest drop wins."""

    changed = Signal(dict)
    """Values of the spec to set, in order."""
    task_asked = Signal(str)

    def __init__(self, client: BackendClient, draft: Draft, card: DataCard, parent: QObject) -> None:
        super().__init__(parent)
        self._client, self._draft, self._card = client, draft, card
        self._ticket: Ticket | None = None
        self._before: dict[str, Any] = {}
        self._task = ""
        card.train_named.connect(self.check)
        card.dropped.connect(self.take)
        card.undo_asked.connect(self._undo)
        card.task_asked.connect(lambda: self.task_asked.emit(self._task))

    def take(self, paths: Sequence[str], split: str = "") -> None:
        """These were dropped: whatever they are, use them, or say why not."""
        own = self._card.own_folder() if len(paths) == 1 and not PurePath(paths[0]).suffix else ""

        def use(found: RecognisedData) -> None:
            # A folder that nothing speaks for is the one for which the chosen source asks.
            is_plain = found.data["source"] == "files" and own and found.data.get("train") != paths[0]
            self.changed.emit({own: paths[0]}) if is_plain else self._use(found, split)

        def refuse(mistake: Mistake) -> None:
            self.changed.emit({own: paths[0]}) if own else self._refuse(mistake)

        self._ask(paths, split, use, refuse)
        self._card.show_recognising()

    def check(self, value: str | list[str]) -> None:
        """These were typed or chosen: they stay, but another source or format may have to read them."""
        self._ask([value] if isinstance(value, str) else value, "", self._mend, lambda mistake: None)

    def _ask(self, paths: Sequence[str], split: str, on_answer: Any, on_error: Any) -> None:
        if self._ticket is not None and self._ticket.open:
            self._ticket.cancel()
        self._ticket = self._client.ask("recognise_data", {"paths": list(paths), "split": split}, on_answer, on_error)

    def _data(self) -> dict[str, Any]:
        return deepcopy(dict(self._draft.get("data") or {}))

    def _mend(self, found: RecognisedData) -> None:
        if reads_otherwise(self._data(), found.data):
            self._use(found, "")

    def _use(self, found: RecognisedData, split: str) -> None:
        if (
            split in _OTHERS
            and self._draft.get("data.train")
            and found.data["source"] != self._draft.get("data.source")
        ):
            self._refuse(
                Mistake(
                    tr(
                        "{words} The training data is stored in another way; {OTHERS}",
                        words=found.words,
                        OTHERS=_OTHERS[split],
                    )
                )
            )
            return
        self._before, self._task = self._data(), found.task
        wanted = whole_choice(self._before, found.data, split or None)
        self.changed.emit(as_changes(wanted))
        other_task = found.task if found.task and found.task != self._draft.get("task.type") else ""
        self._card.show_recognised(found, other_task)

    def _refuse(self, mistake: Mistake) -> None:
        self._card.show_refused(formatting.sentence(mistake.message, mistake.field))

    def _undo(self) -> None:
        self.changed.emit(as_changes(self._before))
        self._card.forget_recognised()
