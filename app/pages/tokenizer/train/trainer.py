"""Owns the training of a new tokenizer in the window: settings and result."""

from typing import Any

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QCheckBox

from app.core import json_schema
from app.core.i18n import tr
from app.core.text.tokenizer_command import train_command
from app.pages.tokenizer.text_source import CAPTION_WIDTH, TextSource
from app.pages.tokenizer.train.made_card import MadeCard
from app.pages.tokenizer.train.tokenizer_builder import MakingPart
from app.services.context import AppContext
from app.widgets.card import Card
from app.widgets.forms.schema_form import SchemaForm
from backend.contract.tokens.making import MadeTokenizer

PREFIX = "tokenizer"
"""What the keys of the form begin with, as in the backend's mistakes."""


class TrainPart(MakingPart):
    """`settings` and `result` are cards."""

    query, verb, icon = "train_tokenizer", tr("Train"), "play"
    working = tr("Reading the data")
    copied = tr("Copied: the command that trains the same tokenizer.")

    def __init__(self, context: AppContext, texts: TextSource, parent: QObject | None = None) -> None:
        super().__init__(context, texts, parent)
        self.form: SchemaForm | None = None
        self.settings = Card(tr("New tokenizer"))
        self.compares = QCheckBox(tr("Compare"))
        self.compares.setChecked(True)
        self.compares.setToolTip(tr("Measures both the new tokenizer and the one chosen above on held-out texts"))
        self.settings.corner.addWidget(self.compares)
        self.result = MadeCard()
        self.result.use_asked.connect(self.use_asked)
        self.result.copied.connect(lambda words: self.message.emit("success", words))
        texts.changed.connect(self._on_changed)
        self._on_changed()

    def offer(self, settings: dict[str, Any]) -> None:
        """The JSON Schema of the settings."""
        if self.form is None and settings:
            self.form = SchemaForm(json_schema.resolved(settings), prefix=PREFIX, label_width=CAPTION_WIDTH)
            self.form.changed.connect(lambda key, value: self._on_changed())
            self.form.mistakes_changed.connect(self.show_reason)
            self.settings.add(self.form)
        self._on_changed()

    def use(self, tokenizer: str) -> None:
        """Compare with another tokenizer."""
        self.tokenizer = tokenizer

    def lacking(self) -> str:
        """What stands in the way."""
        if self.form is None:
            return tr("The backend has not answered yet.")
        if lacking := self._texts.reason():
            return lacking
        return next(iter(self.form.mistake_sentences()), "")

    def question(self) -> dict[str, Any]:
        """The texts, what differs from the defaults, and what to compare with."""
        assert self.form is not None
        self.form.clear_marks()
        return {
            "data": self._texts.data(),
            "columns": self._texts.columns(),
            "settings": self.form.changed_values(),
            "compare_with": self._compared(),
        }

    def command(self) -> str:
        """`burnish tokenizer train …`."""
        assert self.form is not None
        texts, settings = self._texts, self.form.changed_values()
        return train_command(texts.entry, texts.data(), texts.columns(), settings, self.foot.output(), self._compared())

    def show_made(self, made: MadeTokenizer) -> None:
        """What was measured."""
        self.result.show_made(made)
        self._on_changed()

    def show_refusal(self, said: str, field: str) -> None:
        """At the texts, at the setting, or for all to see."""
        if field.startswith("data"):
            self._texts.show_mistake(said)
            self.show_reason()
        elif self.form is None or field in ("", "output") or not self.form.mark(field, said):
            self.failed.emit(said)

    def _compared(self) -> str:
        return self.tokenizer if self.compares.isChecked() else ""

    def _on_changed(self) -> None:
        if self.form is not None:
            values = self.form.values()
            name = f"{self._texts.name() or 'tokenizer'}-{values.get('kind')}-{values.get('vocabulary')}"
            self.foot.propose(name)
        self.show_reason()
