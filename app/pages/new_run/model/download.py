"""Owns the download of one model: it goes on while the window is used, can be stopped, and later goes on."""

import time

from PySide6.QtCore import QObject, QTimer, Signal

from app.core import formatting
from app.core.draft.download_progress import DownloadPace
from app.core.i18n import tr
from app.services.backend_client import BackendClient, Ticket
from backend.contract.rpc.model_choices import DownloadedModel
from backend.contract.rpc.queries import Mistake, Progress


class ModelDownload(QObject):
    """One at a time; whoever shows it listens to `changed`."""

    changed = Signal()
    finished = Signal(object)
    """A DownloadedModel."""

    def __init__(self, client: BackendClient, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._client = client
        self._ticket: Ticket | None = None
        self.name = ""
        """Of the model that is, or was last, downloaded."""
        self.pace = DownloadPace()
        self._clock = QTimer(self, interval=1000)
        self._clock.timeout.connect(self._on_second)
        self.failure = ""
        """Why it ended, as a sentence; empty while it goes on and when it was stopped."""

    @property
    def goes_on(self) -> bool:
        """Whether something is being downloaded."""
        return self._ticket is not None

    def start(self, name: str, revision: str = "main") -> None:
        """Begin, or go on where an earlier download of it ended."""
        self.stop()
        self.name, self.failure, self.pace = name, "", DownloadPace()
        self._clock.start()
        self._ticket = self._client.ask(
            "download_model", {"name": name, "revision": revision}, self._on_here, self._on_mistake, self._on_progress
        )
        self.changed.emit()

    def stop(self) -> None:
        """End it; what has arrived is kept."""
        if self._ticket is not None:
            self._ticket.cancel()
            self._end()

    def unfinished(self) -> str:
        """What closing the window would end, as a sentence; empty where nothing goes on."""
        if not self.goes_on:
            return ""
        return tr(
            "{name} is still being downloaded ({words}). What is here is kept, and the download goes "
            "on behind it when you choose the model again.",
            name=self.name,
            words=self.pace.words(),
        )

    def _on_progress(self, progress: Progress) -> None:
        self.pace.add(progress, time.monotonic())
        self.changed.emit()

    def _on_here(self, found: DownloadedModel) -> None:
        self._end()
        self.finished.emit(found)

    def _on_mistake(self, mistake: Mistake) -> None:
        self.failure = formatting.sentence(mistake.message, mistake.field)
        self._end()

    def _on_second(self) -> None:
        self.pace.wait(time.monotonic())
        self.changed.emit()

    def _end(self) -> None:
        self._ticket = None
        self._clock.stop()
        self.changed.emit()
