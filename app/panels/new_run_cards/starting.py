"""Owns the press on Start: the run is started by the command line, which may refuse in one sentence."""

from typing import Any

from PySide6.QtCore import QObject, Signal

from app.core.draft import Draft
from app.panels.new_run_cards.findings import Findings
from app.services.context import AppContext


class Starting(QObject):
    """One run at a time."""

    changed = Signal(bool)
    """Whether a run is being started."""
    started = Signal(str)
    refused = Signal(str)

    def __init__(self, context: AppContext, draft: Draft, findings: Findings, parent: QObject) -> None:
        super().__init__(parent)
        self._context, self._draft, self._findings = context, draft, findings
        self.busy = False
        self._handed_over: dict[str, Any] | None = None
        self._last: dict[str, Any] | None = None

    @property
    def is_all_started(self) -> bool:
        """Whether the draft is what was last started as a run."""
        return self._last is not None and self._draft.values() == self._last

    def start(self) -> None:
        """Hand the spec over, with what this user has agreed to."""
        if self.busy:
            return
        self._set_busy(True)
        consent = self._findings.consent()
        self._handed_over = self._draft.values()
        self._context.jobs.start(self._draft.values(), self._on_started, self._on_refused, consent)

    def _set_busy(self, busy: bool) -> None:
        self.busy = busy
        self.changed.emit(busy)

    def _on_started(self, path: str) -> None:
        self._set_busy(False)
        self._last = self._handed_over
        self._context.library_watcher.look_now()
        self.started.emit(path)
        # Last, as a full disk must not keep the run from being shown.
        self._context.preferences.remember_model(str(self._draft.get("model.name_or_path")))

    def _on_refused(self, sentence: str) -> None:
        self._set_busy(False)
        self.refused.emit(sentence)
