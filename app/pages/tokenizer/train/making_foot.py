"""Owns the foot under what makes a tokenizer: where it is saved, the button that begins, progress and Stop."""

import time
from pathlib import Path

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import QFileDialog, QHBoxLayout, QStackedWidget, QWidget

from app.core.i18n import tr
from app.core.text.free_folder import free_folder
from app.core.text.work_stage import WorkStage
from app.widgets.card import Card, label
from app.widgets.forms.path_line import PathLine
from app.widgets.icon_label import IconButton, IconToolButton
from app.widgets.progress_bar import ThinProgressBar
from app.widgets.text.elided_label import ElidedLabel
from backend.contract.rpc.queries import Progress

BUTTON_WIDTH = 150


class MakingFoot(Card):
    """`verb` is what its button says."""

    asked = Signal()
    stopped = Signal()
    copy_asked = Signal()

    def __init__(self, verb: str, icon: str, above: Path, parent: QWidget | None = None) -> None:
        """New folders are proposed below `above`."""
        super().__init__("", parent, spacing=6)
        self._above, self._proposed = above, ""
        self._stage = WorkStage("", 0)
        self._clock = QTimer(self, interval=1000)
        self._clock.timeout.connect(self._show_words)
        self.line = PathLine(placeholderText=tr("A new folder"))
        self.line.setAccessibleName(tr("Folder of the new tokenizer"))
        self.line.setToolTip(tr("The new tokenizer is written into this folder; nothing there is written over"))
        self.browse = IconToolButton("folder", tr("Choose where the new folder is made"))
        self.browse.clicked.connect(self._on_browse)
        self.begin = IconButton(verb, icon, "primary")
        self.begin.clicked.connect(self.asked)
        self.copy = IconButton(tr("Copy command"), "copy", "quiet")
        self.copy.clicked.connect(self.copy_asked)
        self.words, self.bar = ElidedLabel("", "muted"), ThinProgressBar()
        self.stop = IconButton(tr("Stop"), "stop")
        self.stop.clicked.connect(self.stopped)
        for button in (self.begin, self.stop):
            button.setMinimumWidth(BUTTON_WIDTH)
        self.reason = label("", "muted", wrap=True)
        self.pages = QStackedWidget()
        caption = label(tr("Save as"), "muted")
        caption.setBuddy(self.line)
        self.pages.addWidget(_row((caption, 0), (self.line, 1), (self.browse, 0), (self.copy, 0), (self.begin, 0)))
        self.pages.addWidget(_row((self.words, 3), (self.bar, 1), (self.stop, 0)))
        self.add(self.pages)
        self.add(self.reason)
        self.show_reason("")

    def propose(self, name: str) -> None:
        """A folder of that name that is not there yet, unless a person has written another one."""
        if self.line.text() in ("", self._proposed):
            self._proposed = str(free_folder(self._above, name))
            self.line.setText(self._proposed)

    def forget(self) -> None:
        """The folder that is shown has been written; the next proposal takes its place."""
        self._proposed = self.line.text()

    def output(self) -> str:
        """The folder."""
        return self.line.text().strip()

    @property
    def works(self) -> bool:
        """Whether something is being made."""
        return self.pages.currentIndex() == 1

    def show_reason(self, reason: str) -> None:
        """Why nothing can be made yet; empty where it can."""
        self.begin.setEnabled(not reason)
        self.begin.setToolTip(reason)
        self.copy.setEnabled(not reason)
        self.reason.setText(reason)
        self.reason.setVisible(bool(reason) and not self.works)

    def show_working(self, words: str) -> None:
        """Work has begun."""
        self._stage = WorkStage(words, time.monotonic())
        self._show_words()
        self._clock.start()
        self.bar.set_fraction(None)
        self.pages.setCurrentIndex(1)
        self.reason.hide()
        self.stop.setFocus()

    def show_progress(self, progress: Progress) -> None:
        """How far it is; words and time go on where nothing more is told."""
        self.bar.set_fraction(progress.done / progress.total if progress.total else None)
        self._stage.tell(progress, time.monotonic())
        self._show_words()

    def _show_words(self) -> None:
        self.words.setText(self._stage.words(time.monotonic()))

    def show_idle(self) -> None:
        """Nothing is being made any more."""
        self._clock.stop()
        self.pages.setCurrentIndex(0)
        self.reason.setVisible(bool(self.reason.text()))

    def _on_browse(self) -> None:
        start = Path(self.output()).parent if self.output() else self._above
        above = QFileDialog.getExistingDirectory(self, tr("Choose where the new folder is made"), str(start))
        if above:
            self.line.setText(str(Path(above) / (Path(self.output()).name or "tokenizer")))


def _row(*parts: tuple[QWidget, int]) -> QWidget:
    made = QWidget()
    row = QHBoxLayout(made)
    row.setContentsMargins(0, 0, 0, 0)
    row.setSpacing(10)
    for widget, stretch in parts:
        row.addWidget(widget, stretch)
    return made
