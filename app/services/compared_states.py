"""Owns the reading of several runs that are compared: one after the other, so that the window stays smooth."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal

from app.core.backend_sentences import told
from app.core.runs.run_state import RunState
from app.services.run_watcher import RunWatcher
from backend.contract.errors import InputError
from backend.contract.run.folder import RunFolder

SPEC_MS = 15
"""Between two settings files, each of which takes some milliseconds to parse."""


class ComparedStates(QObject):
    """Reads what `read` names. A run that is alive is watched on, the others are let go when they are read."""

    advanced = Signal()
    """There are new points in some state."""
    specs_read = Signal()
    """The settings of all runs are in `specs`."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.states: dict[Path, RunState] = {}
        self.specs: dict[Path, dict[str, Any]] = {}
        self.problems: list[str] = []
        """Settings that could not be read, a sentence each."""
        self._waiting: list[Path] = []
        self._unread: list[Path] = []
        self._watchers: list[RunWatcher] = []
        self._specs_timer = QTimer(self, interval=SPEC_MS)
        self._specs_timer.timeout.connect(self._read_spec)

    @property
    def unread(self) -> int:
        """How many runs were not read to their end yet."""
        return len(self._waiting) + sum(not watcher.is_caught_up for watcher in self._watchers)

    @property
    def reading(self) -> bool:
        """Whether some run was not read to its end yet."""
        return bool(self._waiting) or any(not watcher.is_caught_up for watcher in self._watchers)

    def read(self, paths: Sequence[Path]) -> None:
        """Forget what was read and read these."""
        self.stop()
        self.states = {path: RunState() for path in paths}
        self.specs, self.problems = {}, []
        self._waiting, self._unread = list(paths), list(paths)
        self._begin_next()
        self._specs_timer.start()

    def stop(self) -> None:
        """Watch nothing more."""
        for watcher in self._watchers:
            watcher.stop()
            watcher.deleteLater()
        self._watchers, self._waiting, self._unread = [], [], []
        self._specs_timer.stop()

    def _begin_next(self) -> None:
        if not self._waiting:
            return
        watcher = RunWatcher(self._waiting.pop(0), self)
        self._watchers.append(watcher)
        self.states[watcher.folder.path] = watcher.state
        watcher.advanced.connect(lambda: self._on_advanced(watcher))
        watcher.restarted.connect(lambda: self._on_restarted(watcher))
        watcher.caught_up.connect(lambda: self._on_caught_up(watcher))
        watcher.vanished.connect(lambda _: self._on_caught_up(watcher))

    def _on_advanced(self, watcher: RunWatcher) -> None:
        # While a run is read, each look would draw all curves anew; they are drawn when it is whole.
        if watcher.is_caught_up:
            self.advanced.emit()

    def _on_restarted(self, watcher: RunWatcher) -> None:
        self.states[watcher.folder.path] = watcher.state
        self.advanced.emit()

    def _on_caught_up(self, watcher: RunWatcher) -> None:
        if watcher not in self._watchers:
            return
        if watcher.is_gone or not watcher.outcome.alive:
            self._watchers.remove(watcher)
            watcher.stop()
            watcher.deleteLater()
        self.advanced.emit()
        self._begin_next()

    def _read_spec(self) -> None:
        from backend.contract import spec_file  # the YAML reader is not wanted before a page is shown

        if not self._unread:
            self._specs_timer.stop()
            self.specs_read.emit()
            return
        path = self._unread.pop(0)
        try:
            self.specs[path] = spec_file.read_run(RunFolder(path).spec)
        except InputError as error:
            self.specs[path] = {}
            self.problems.append(told(str(error)))
