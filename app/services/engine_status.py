"""Owns the one line that says what the engine does now: how many runs are going on, and with which version."""

from typing import Any

from PySide6.QtCore import QObject, Signal

from app.core.i18n import tr
from app.core.runs.run_library import counted
from app.services.backend_client import BackendClient
from app.services.library_watcher import LibraryWatcher


class EngineStatus(QObject):
    """Follows the list of runs and the helper process."""

    changed = Signal(str)

    def __init__(self, client: BackendClient, watcher: LibraryWatcher, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._client, self._watcher = client, watcher
        self._version = ""
        watcher.changed.connect(self._tell)
        client.state_changed.connect(self._tell)

    def start(self) -> None:
        """Ask once for the versions and tell what is known."""
        self._client.ask("catalog", {}, self._on_catalog, lambda mistake: self._tell())
        self._tell()

    def _on_catalog(self, catalog: Any) -> None:
        versions = catalog.versions
        name = next((name for name in ("torch", "jax") if versions.get(name)), "")
        self._version = f"{name} {versions[name].split('+')[0]}" if name else tr("no engine installed")
        self._tell()

    def text(self) -> str:
        """For example `1 running · torch 2.13.0`, or `1 running · 2 queued`: there is no room for three."""
        words = counted(self._watcher.library.runs) or [tr("idle")]
        if self._client.state == "restarting":
            words.append(tr("helper restarting"))
        return " · ".join([*words, *([self._version] if self._version and len(words) == 1 else [])])

    def _tell(self, *_: object) -> None:
        self.changed.emit(self.text())
