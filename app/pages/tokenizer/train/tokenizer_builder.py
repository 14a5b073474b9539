"""What training and extending a tokenizer share: the question, the command, mistakes, and the progress."""

import time
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFileDialog, QHBoxLayout, QStackedWidget, QWidget

from app.core import formatting
from app.core.i18n import tr
from app.core.progress import WorkStage
from app.core.text.tokenizer_training import free_folder
from app.pages.tokenizer.text_source import TextSource
from app.services.backend_client import PendingQuery
from app.services.context import AppContext
from app.widgets.card import Card, label
from app.widgets.forms.path_field import PathLine
from app.widgets.icon_label import IconButton, IconToolButton
from app.widgets.progress import ThinProgressBar
from app.widgets.text.elided_label import ElidedLabel
from backend.contract.rpc.protocol import ErrorReply, Progress
from backend.contract.tokens.training import TrainedTokenizer

BUTTON_WIDTH = 150

NO_FOLDER = tr("Name the folder of the new tokenizer.")


class TokenizerBuilder(QObject):
    """A way that is built on this has cards of its own; `foot` stands below them, the texts are another's."""

    made = Signal(object)
    """A TrainedTokenizer."""
    use_asked = Signal(str)
    message = Signal(str, str)
    failed = Signal(str)
    """A sentence, or empty where the last one holds no more."""

    query: str
    verb: str
    icon: str
    working: str
    """What the foot says before the first progress."""
    copied: str
    """What is said when the command was copied."""

    def __init__(self, context: AppContext, texts: TextSource, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._client, self._texts = context.client, texts
        self._ticket: PendingQuery | None = None
        self.tokenizer = ""
        self.foot = BuilderFoot(self.verb, self.icon, context.preferences.runs_path().parent / "tokenizers")
        self.foot.asked.connect(self.make)
        self.foot.stopped.connect(self.stop)
        self.foot.copy_asked.connect(self._copy_command)
        self.foot.line.textChanged.connect(self.show_reason)

    @abstractmethod
    def lacking(self) -> str:
        """What stands in the way, the folder apart; empty where nothing does."""

    @abstractmethod
    def question(self) -> Mapping[str, Any]:
        """The arguments of `query`, the folder apart."""

    @abstractmethod
    def command(self) -> str:
        """What makes the same tokenizer in a terminal."""

    @abstractmethod
    def show_made(self, made: TrainedTokenizer) -> None:
        """It has been written."""

    def show_refusal(self, said: str, field: str) -> None:
        """Nothing was made, for the reason that `said` gives of a field of the question, or of none."""
        self.failed.emit(said)

    def reason(self) -> str:
        """Why nothing can be made now; empty where something can."""
        return self.lacking() or ("" if self.foot.output() else NO_FOLDER)

    def show_reason(self) -> None:
        """Say it at the foot."""
        self.foot.show_reason(self.reason())

    def make(self) -> None:
        """Ask the helper; it tells how far it is."""
        if self.reason():
            return
        self.failed.emit("")
        self.foot.show_working(self.working)
        question = {**self.question(), "output": self.foot.output()}
        self._ticket = self._client.ask(self.query, question, self._on_made, self._on_mistake, self.foot.show_progress)

    def stop(self) -> None:
        """End the work; nothing has been written."""
        if self._ticket is not None:
            self._ticket.cancel()
            self.message.emit("info", tr("Stopped. Nothing was written."))
        self._end()

    def _end(self) -> None:
        self._ticket = None
        self.foot.show_idle()

    def _on_made(self, made: TrainedTokenizer) -> None:
        self._end()
        self.foot.forget()
        self.show_made(made)
        self.made.emit(made)

    def _on_mistake(self, mistake: ErrorReply) -> None:
        self._end()
        self.show_refusal(formatting.sentence(mistake.message, mistake.field), mistake.field or "")

    def _copy_command(self) -> None:
        QGuiApplication.clipboard().setText(self.command())
        self.message.emit("info", self.copied)


class BuilderFoot(Card):
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
