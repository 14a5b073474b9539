"""Keeps the list of runs up to date, a few milliseconds at a time, and summarizes what is running."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal

from app.core.backend_messages import translate_message
from app.core.i18n import tr
from app.core.runs.run_library import RunLibrary, count_words
from app.services.backend_client import BackendClient
from backend.contract.errors import InputError
from backend.contract.run.notes import RunNotes

SLICE_SECONDS = 0.005
INTERVAL_MS, ENDED_MS = 1500, 2500
"""Between two looks, and if no run is alive: until one is started elsewhere."""
SLICE_MS = 10


class LibraryWatcher(QObject):
    """Checks all runs repeatedly and signals when their list has changed."""

    changed = Signal()
    first_read = Signal()
    """All runs have been read once."""

    def __init__(self, library: RunLibrary, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.library = library
        self._reading: Iterator[None] | None = None
        self._has_read = False
        self._timer = QTimer(self, interval=0)
        self._timer.timeout.connect(self._on_tick)
        self._timer.start()

    def refresh_now(self) -> None:
        """Refresh at once and from the start: what was already read may have changed."""
        self._reading = None
        self._timer.start(0)

    def annotate(self, path: Path, notes: RunNotes) -> str:
        """Save a run's note and tags, shown at once; returns why that failed, or empty."""
        try:
            self.library.annotate(path, notes)
        except InputError as error:
            return translate_message(str(error))
        self.changed.emit()
        return ""

    def stop(self) -> None:
        """Stop watching."""
        self._timer.stop()

    def _on_tick(self) -> None:
        before = (self.library.runs, self.library.groups)
        self._reading = self._reading or self.library.read_changes()
        end = time.perf_counter() + SLICE_SECONDS
        for _ in self._reading:
            if time.perf_counter() >= end:
                self._timer.start(SLICE_MS)
                return
        self._reading = None
        self._timer.start(INTERVAL_MS if any(run.alive for run in self.library.runs) else ENDED_MS)
        if (self.library.runs, self.library.groups) != before:
            self.changed.emit()
        if not self._has_read:
            self._has_read = True
            self.first_read.emit()


class EngineStatus(QObject):
    """The status line in the sidebar: how many runs are active, and the engine's version."""

    changed = Signal(str)

    def __init__(self, client: BackendClient, watcher: LibraryWatcher, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._client, self._watcher = client, watcher
        self._version = ""
        watcher.changed.connect(self._emit_changed)
        client.state_changed.connect(self._emit_changed)

    def start(self) -> None:
        """Query the versions once and emit what is known."""
        self._client.ask("catalog", {}, self._on_catalog, lambda mistake: self._emit_changed())
        self._emit_changed()

    def _on_catalog(self, catalog: Any) -> None:
        versions = catalog.versions
        name = next((name for name in ("torch", "jax") if versions.get(name)), "")
        self._version = f"{name} {versions[name].split('+')[0]}" if name else tr("no engine installed")
        self._emit_changed()
        self._watcher.changed.emit()  # lists show the titles of tasks, which the catalog has brought

    def text(self) -> str:
        """For example `1 running · torch 2.13.0`, or `1 running · 2 queued`: three would not fit."""
        words = count_words(self._watcher.library.runs) or [tr("idle")]
        if self._client.state == "restarting":
            words.append(tr("helper restarting"))
        return " · ".join([*words, *([self._version] if self._version and len(words) == 1 else [])])

    def _emit_changed(self, *_: object) -> None:
        self.changed.emit(self.text())
