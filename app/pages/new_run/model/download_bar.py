"""Owns how a download is shown: bytes, speed, time left, the file that comes now, and a button that stops it."""

from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.core.i18n import tr
from app.pages.new_run.model.download import ModelDownload
from app.widgets.card import label
from app.widgets.icon_label import IconButton
from app.widgets.progress_bar import ThinProgressBar
from app.widgets.text.elided_label import ElidedLabel


class DownloadBar(QWidget):
    """Hidden while nothing is downloaded, unless the last one failed: then it says why and offers to go on."""

    def __init__(self, download: ModelDownload, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._download = download
        self.title, self.words = ElidedLabel(""), label("", "muted")
        self.file = ElidedLabel("", "faint")
        self.failure = label("", "danger", wrap=True, selectable=True)
        self.bar = ThinProgressBar()
        self.stop = IconButton(tr("Stop"), "stop")
        self.stop.setToolTip(tr("What has arrived is kept; the next download goes on behind it"))
        self.again = IconButton(tr("Go on"), "refresh")
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
        self.title.setText(f"{tr('Not downloaded') if failed else tr('Downloading')}: {download.name}")
        self.failure.setText(download.failure)
        self.bar.set_fraction(download.pace.fraction)
        self.words.setText(download.pace.words())
        self.file.setText(download.pace.file_words() or " ")
        self.bar.setAccessibleName(tr("Download of {name}", name=download.name))
        self.bar.setAccessibleDescription(download.pace.words())
