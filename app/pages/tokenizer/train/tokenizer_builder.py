"""What training and extending a tokenizer share: query, command, errors, and progress."""

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFileDialog, QWidget

from app.core import formatting
from app.core.i18n import tr
from app.core.text.tokenizer_training import free_folder
from app.pages.tokenizer.text_source import TextSource
from app.services.context import AppContext
from app.services.latest_question import LatestQuestion
from app.widgets.boxes import hbox
from app.widgets.card import Card, label
from app.widgets.forms.path_field import PathLine
from app.widgets.icon_label import IconButton, IconToolButton
from app.widgets.progress import WorkStack
from backend.contract.rpc.protocol import ErrorReply
from backend.contract.tokens.training import TrainedTokenizer

BUTTON_WIDTH = 150

NO_FOLDER = tr("Choose a folder for the new tokenizer.")


class TokenizerBuilder(QObject):
    """A subclass has its own cards; `foot` is below them, and the texts come from another card."""

    made = Signal(object)
    """A TrainedTokenizer."""
    use_requested = Signal(str)
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
        self._texts = texts
        self.tokenizer = ""
        self.foot = BuilderFoot(self.verb, self.icon, context.preferences.runs_path().parent / "tokenizers")
        show_progress = self.foot.work.show_progress
        self._question = LatestQuestion(
            context.client, self.query, self._on_made, self._on_mistake, show_progress, "", parent=self
        )
        self.foot.begin.clicked.connect(self.make)
        self.foot.pages.stopped.connect(self.stop)
        self.foot.copy.clicked.connect(self._copy_command)
        self.foot.line.textChanged.connect(self.show_reason)

    @abstractmethod
    def lacking(self) -> str:
        """What is missing, apart from the folder; empty if nothing is."""

    @abstractmethod
    def question(self) -> Mapping[str, Any]:
        """The arguments of `query`, without the folder."""

    @abstractmethod
    def command(self) -> str:
        """The command that makes the same tokenizer in a terminal."""

    @abstractmethod
    def show_made(self, made: TrainedTokenizer) -> None:
        """It has been saved."""

    def show_refusal(self, said: str, field: str) -> None:
        """Show why nothing was made; `said` gives the reason and the query field that it is about, if any."""
        self.failed.emit(said)

    def reason(self) -> str:
        """Why nothing can be made now; empty if it can."""
        return self.lacking() or ("" if self.foot.output() else NO_FOLDER)

    def show_reason(self) -> None:
        """Show it in the foot."""
        self.foot.show_reason(self.reason())

    def make(self) -> None:
        """Query the helper, which reports progress."""
        if self.reason():
            return
        self.failed.emit("")
        self.foot.show_working(self.working)
        self._question.ask({**self.question(), "output": self.foot.output()})

    def stop(self) -> None:
        """Stop; nothing has been written."""
        if self._question.open:
            self._question.stop()
            self.message.emit("info", tr("Stopped. Nothing was written."))
        self.foot.show_idle()

    def _on_made(self, made: TrainedTokenizer) -> None:
        self.foot.show_idle()
        self.foot.forget()
        self.show_made(made)
        self.made.emit(made)

    def _on_mistake(self, mistake: ErrorReply) -> None:
        self.foot.show_idle()
        self.show_refusal(formatting.sentence(mistake.message, mistake.field), mistake.field or "")

    def _copy_command(self) -> None:
        QGuiApplication.clipboard().setText(self.command())
        self.message.emit("info", self.copied)


class BuilderFoot(Card):
    """Where the new tokenizer is saved, and the buttons `begin`, which says `verb`, and `copy`."""

    def __init__(self, verb: str, icon: str, above: Path, parent: QWidget | None = None) -> None:
        """Propose new folders below `above`."""
        super().__init__("", parent, spacing=6)
        self._above, self._proposed = above, ""
        self.line = PathLine(placeholderText=tr("A new folder"))
        self.line.setAccessibleName(tr("Folder of the new tokenizer"))
        self.line.setToolTip(tr("The new tokenizer is saved in this folder; nothing there is overwritten"))
        self.browse = IconToolButton("folder", tr("Choose where to create the new folder"), clicked=self._on_browse)
        self.begin = IconButton(verb, icon, "primary")
        self.copy = IconButton(tr("Copy command"), "copy", "quiet")
        self.pages = WorkStack()
        self.work = self.pages.work
        for button in (self.begin, self.work.stop):
            button.setMinimumWidth(BUTTON_WIDTH)
        self.reason = label("", "muted", wrap=True)
        caption = label(tr("Save as"), "muted")
        caption.setBuddy(self.line)
        self.pages.hold(hbox(caption, (self.line, 1), self.browse, self.copy, self.begin, spacing=10))
        self.add_all(self.pages, self.reason)
        self.show_reason("")

    def propose(self, name: str) -> None:
        """Propose an unused folder with that name, unless the user has typed another one."""
        if self.line.text() in ("", self._proposed):
            self._proposed = str(free_folder(self._above, name))
            self.line.setText(self._proposed)

    def forget(self) -> None:
        """The proposed folder has been written; the next proposal replaces it."""
        self._proposed = self.line.text()

    def output(self) -> str:
        """The folder."""
        return self.line.text().strip()

    def show_reason(self, reason: str) -> None:
        """Show why nothing can be made yet; empty if it can."""
        self.begin.setEnabled(not reason)
        self.begin.setToolTip(reason)
        self.copy.setEnabled(not reason)
        self.reason.setText(reason)
        self.reason.setVisible(bool(reason) and not self.pages.works)

    def show_working(self, words: str) -> None:
        """Show that work is in progress."""
        self.reason.hide()
        self.pages.begin(words)

    def show_idle(self) -> None:
        """Show that no work is in progress."""
        self.pages.end()
        self.reason.setVisible(bool(self.reason.text()))

    def _on_browse(self) -> None:
        start = Path(self.output()).parent if self.output() else self._above
        above = QFileDialog.getExistingDirectory(self, tr("Choose where to create the new folder"), str(start))
        if above:
            self.line.setText(str(Path(above) / (Path(self.output()).name or "tokenizer")))
