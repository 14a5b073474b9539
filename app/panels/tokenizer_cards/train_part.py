"""Owns the training of a new tokenizer in the window: settings, progress, result."""

from typing import Any

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QCheckBox

from app.core import schema, wording
from app.core.tokenizer_command import train_command
from app.panels.tokenizer_cards.made_card import MadeCard
from app.panels.tokenizer_cards.making_foot import MakingFoot
from app.panels.tokenizer_cards.text_source import CAPTION_WIDTH, TextSource
from app.services.backend_client import Ticket
from app.services.context import AppContext
from app.widgets.card import Card
from app.widgets.schema_form import SchemaForm
from backend.contract.queries import Mistake
from backend.contract.tokenizer_making import MadeTokenizer

PREFIX = "tokenizer"
"""What the keys of the form begin with, as in the backend's mistakes."""


class TrainPart(QObject):
    """`settings` and `result` are cards, `foot` stands below; the texts are another's."""

    made = Signal(object)
    """MadeTokenizer."""
    use_asked = Signal(str)
    message = Signal(str, str)
    failed = Signal(str)

    def __init__(self, context: AppContext, texts: TextSource, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._client, self._texts = context.client, texts
        self._ticket: Ticket | None = None
        self.tokenizer = ""
        self.form: SchemaForm | None = None
        self.settings = Card("New tokenizer")
        self.compares = QCheckBox("Compare")
        self.compares.setChecked(True)
        self.compares.setToolTip("Measures both the new tokenizer and the one chosen above on held-out texts")
        self.settings.corner.addWidget(self.compares)
        self.result = MadeCard()
        self.foot = MakingFoot("Train", "play", context.preferences.runs_path().parent / "tokenizers")
        self.foot.asked.connect(self.train)
        self.foot.stopped.connect(self.stop)
        self.foot.copy_asked.connect(self._copy_command)
        self.foot.line.textChanged.connect(self._show_reason)
        self.result.use_asked.connect(self.use_asked)
        self.result.copied.connect(lambda words: self.message.emit("success", words))
        texts.changed.connect(self._on_changed)
        self._on_changed()

    def offer(self, settings: dict[str, Any]) -> None:
        """The JSON Schema of the settings."""
        if self.form is None and settings:
            self.form = SchemaForm(schema.resolved(settings), prefix=PREFIX, label_width=CAPTION_WIDTH)
            self.form.changed.connect(lambda key, value: self._on_changed())
            self.form.mistakes_changed.connect(self._show_reason)
            self.settings.add(self.form)
        self._on_changed()

    def train(self) -> None:
        """Ask the helper; it tells how far it is."""
        if self.form is None or self.reason():
            return
        self.form.clear_marks()
        self.failed.emit("")
        question = {
            "data": self._texts.data(),
            "columns": self._texts.columns(),
            "settings": self.form.changed_values(),
            "output": self.foot.output(),
            "compare_with": self._compared(),
        }
        self.foot.show_working("Reading the data")
        self._ticket = self._client.ask(
            "train_tokenizer", question, self._on_made, self._on_mistake, self.foot.show_progress
        )

    def stop(self) -> None:
        """End the training; nothing has been written."""
        if self._ticket is not None:
            self._ticket.cancel()
            self.message.emit("info", "Stopped. Nothing was written.")
        self._end()

    def reason(self) -> str:
        """Why nothing can be trained now; empty where it can."""
        if self.form is None:
            return "The backend has not answered yet."
        if lacking := self._texts.reason():
            return lacking
        if mistakes := wording.mistakes(self.form.mistakes()):
            return mistakes[0]
        return "" if self.foot.output() else "Name the folder of the new tokenizer."

    def _compared(self) -> str:
        return self.tokenizer if self.compares.isChecked() else ""

    def _on_changed(self) -> None:
        if self.form is not None:
            self.foot.propose(self._name())
        self._show_reason()

    def _name(self) -> str:
        assert self.form is not None
        values = self.form.values()
        return f"{self._texts.name() or 'tokenizer'}-{values.get('kind')}-{values.get('vocabulary')}"

    def _show_reason(self) -> None:
        self.foot.show_reason(self.reason())

    def _on_made(self, made: MadeTokenizer) -> None:
        self._end()
        self.result.show_made(made)
        self.foot.forget()
        self._on_changed()
        self.made.emit(made)

    def _on_mistake(self, mistake: Mistake) -> None:
        self._end()
        said = wording.sentence(mistake.message, mistake.field)
        field = mistake.field or ""
        if field.startswith("data"):
            self._texts.show_mistake(said)
            self._show_reason()
        elif self.form is None or field in ("", "output") or not self.form.mark(field, said):
            self.failed.emit(said)

    def _end(self) -> None:
        self._ticket = None
        self.foot.show_idle()

    def _copy_command(self) -> None:
        assert self.form is not None
        texts = self._texts
        command = train_command(
            texts.entry, texts.data(), texts.columns(), self.form.changed_values(), self.foot.output(), self._compared()
        )
        QGuiApplication.clipboard().setText(command)
        self.message.emit("info", "Copied: the command that trains the same tokenizer.")
