"""Downloads one model in the background, and shows the download in a bar with a stop button."""

import time

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.core import formatting
from app.core.i18n import tr
from app.core.progress import DownloadPace
from app.services.backend_client import BackendClient, PendingQuery
from app.widgets.card import label
from app.widgets.icon_label import IconButton
from app.widgets.progress import ThinProgressBar
from app.widgets.text.elided_label import ElidedLabel
from backend.contract.rpc.models import DownloadedModel
from backend.contract.rpc.protocol import ErrorReply, Progress


class ModelDownload(QObject):
    """One download at a time; views listen to `changed`."""

    changed = Signal()
    finished = Signal(object)
    """A DownloadedModel."""

    def __init__(self, client: BackendClient, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._client = client
        self._ticket: PendingQuery | None = None
        self.name = ""
        """Of the model that is, or was last, downloaded."""
        self.pace = DownloadPace()
        self._clock = QTimer(self, interval=1000)
        self._clock.timeout.connect(self._on_second)
        self.failure = ""
        """Why it ended, as a sentence; empty while it goes on and when it was stopped."""

    @property
    def goes_on(self) -> bool:
        """Whether a download is running."""
        return self._ticket is not None

    def start(self, name: str, revision: str = "main") -> None:
        """Start or resume a download."""
        self.stop()
        self.name, self.failure, self.pace = name, "", DownloadPace()
        self._clock.start()
        self._ticket = self._client.ask(
            "download_model", {"name": name, "revision": revision}, self._on_here, self._on_mistake, self._on_progress
        )
        self.changed.emit()

    def stop(self) -> None:
        """Stop it; what has arrived is kept."""
        if self._ticket is not None:
            self._ticket.cancel()
            self._end()

    def unfinished(self) -> str:
        """What closing the window would stop, as a sentence; empty if nothing is running."""
        if not self.goes_on:
            return ""
        return tr(
            "{name} is still downloading ({words}). What has been downloaded is kept, and the "
            "download resumes when you choose the model again.",
            name=self.name,
            words=self.pace.words(),
        )

    def _on_progress(self, progress: Progress) -> None:
        self.pace.add(progress, time.monotonic())
        self.changed.emit()

    def _on_here(self, found: DownloadedModel) -> None:
        self._end()
        self.finished.emit(found)

    def _on_mistake(self, mistake: ErrorReply) -> None:
        self.failure = formatting.sentence(mistake.message, mistake.field)
        self._end()

    def _on_second(self) -> None:
        self.pace.wait(time.monotonic())
        self.changed.emit()

    def _end(self) -> None:
        self._ticket = None
        self._clock.stop()
        self.changed.emit()


class DownloadBar(QWidget):
    """Hidden while nothing is downloading, unless the last download failed: then it shows why and offers to resume."""

    def __init__(self, download: ModelDownload, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._download = download
        self.title, self.words = ElidedLabel(""), label("", "muted")
        self.file = ElidedLabel("", "faint")
        self.failure = label("", "danger", wrap=True, selectable=True)
        self.bar = ThinProgressBar()
        self.stop = IconButton(tr("Stop"), "stop")
        self.stop.setToolTip(tr("Stop the download. You can resume it later"))
        self.again = IconButton(tr("Resume"), "refresh")
        for button in (self.stop, self.again):
            button.setAutoDefault(False)
        self.stop.clicked.connect(download.stop)
        self.again.clicked.connect(lambda: download.start(download.name))
        self._place()
        download.changed.connect(self._show)
        self._show()

    def _place(self) -> None:
        texts = QVBoxLayout()
        texts.setSpacing(4)
        for widget in (self.title, self.bar, self.words, self.file, self.failure):
            texts.addWidget(widget)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(12)
        row.addLayout(texts, 1)
        row.addWidget(self.stop)
        row.addWidget(self.again)

    def _show(self) -> None:
        download = self._download
        failed = bool(download.failure)
        self.setVisible(download.goes_on or failed)
        for widget in (self.bar, self.words, self.file, self.stop):
            widget.setVisible(download.goes_on)
        for widget in (self.failure, self.again):
            widget.setVisible(failed)
        state = tr("Not downloaded") if failed else tr("Downloading")
        self.title.setText(f"{state}: {download.name}")
        self.failure.setText(download.failure)
        self.bar.set_fraction(download.pace.fraction)
        self.words.setText(download.pace.words())
        self.file.setText(download.pace.file_words() or " ")
        self.bar.setAccessibleName(tr("Download of {name}", name=download.name))
        self.bar.setAccessibleDescription(download.pace.words())
