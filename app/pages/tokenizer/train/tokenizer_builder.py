"""Owns what both ways to make a tokenizer share: the question, its foot with progress and Stop, the command, mistakes."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QGuiApplication

from app.core import formatting
from app.core.i18n import tr
from app.pages.tokenizer.text_source import TextSource
from app.pages.tokenizer.train.making_foot import MakingFoot
from app.services.backend_client import Ticket
from app.services.context import AppContext
from backend.contract.rpc.queries import Mistake
from backend.contract.tokens.making import MadeTokenizer

NO_FOLDER = tr("Name the folder of the new tokenizer.")


class MakingPart(QObject):
    """A way that is built on this has cards of its own; `foot` stands below them, the texts are another's."""

    made = Signal(object)
    """MadeTokenizer."""
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
        self._ticket: Ticket | None = None
        self.tokenizer = ""
        self.foot = MakingFoot(self.verb, self.icon, context.preferences.runs_path().parent / "tokenizers")
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
    def show_made(self, made: MadeTokenizer) -> None:
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

    def _on_made(self, made: MadeTokenizer) -> None:
        self._end()
        self.foot.forget()
        self.show_made(made)
        self.made.emit(made)

    def _on_mistake(self, mistake: Mistake) -> None:
        self._end()
        self.show_refusal(formatting.sentence(mistake.message, mistake.field), mistake.field or "")

    def _copy_command(self) -> None:
        QGuiApplication.clipboard().setText(self.command())
        self.message.emit("info", self.copied)
