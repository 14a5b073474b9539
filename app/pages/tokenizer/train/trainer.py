"""Trains a new tokenizer: its settings, and its size and compression beside the old one."""

from typing import Any

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QCheckBox, QWidget

from app.core import formatting, json_schema
from app.core.i18n import figure, tr, trn
from app.core.text.tokenizer_training import train_command
from app.pages.tokenizer.text_source import CAPTION_WIDTH, TextSource
from app.pages.tokenizer.train.tokenizer_builder import TokenizerBuilder
from app.services.context import AppContext
from app.widgets.boxes import hbox, holder, scroll_area, stack, vbox
from app.widgets.card import Card, label
from app.widgets.empty_state import EmptyState
from app.widgets.forms.schema_form import SchemaForm
from app.widgets.icon_label import IconButton
from app.widgets.plots.paired_bars import Group, PairedBars
from app.widgets.tables.text_table import ROW_HEIGHT, TextTable
from app.widgets.text.elided_label import ElidedLabel
from backend.contract.tokens.training import Compression, TrainedTokenizer

NEW = tr("New")
STRANGE = tr(
    "A model that was trained with another tokenizer does not know these pieces: train a "
    "model from scratch with the new tokenizer (Start from: from_config)."
)
LESS = 0.001
"""A difference that is worth mentioning."""

PREFIX = "tokenizer"
"""What the keys of the form begin with, as in the backend's mistakes."""


class TokenizerTrainer(TokenizerBuilder):
    """`settings` and `result` are cards."""

    query, verb, icon = "train_tokenizer", tr("Train"), "play"
    working = tr("Reading the data")
    copied = tr("Copied the command that trains the same tokenizer.")

    def __init__(self, context: AppContext, texts: TextSource, parent: QObject | None = None) -> None:
        super().__init__(context, texts, parent)
        self.form: SchemaForm | None = None
        self.settings = Card(tr("New tokenizer"))
        self.compares = QCheckBox(tr("Compare"))
        self.compares.setChecked(True)
        self.compares.setToolTip(tr("Measures both the new tokenizer and the one chosen above on held-out texts"))
        self.settings.corner.addWidget(self.compares)
        self.result = TrainResultCard()
        self.result.use_requested.connect(self.use_requested)
        self.result.message.connect(self.message)
        texts.changed.connect(self._on_changed)
        self._on_changed()

    def offer(self, settings: dict[str, Any]) -> None:
        """Set the JSON Schema of the settings."""
        if self.form is None and settings:
            self.form = SchemaForm(json_schema.resolve(settings), prefix=PREFIX, label_width=CAPTION_WIDTH)
            self.form.changed.connect(lambda key, value: self._on_changed())
            self.form.mistakes_changed.connect(self.show_reason)
            self.settings.add(self.form)
        self._on_changed()

    def use(self, tokenizer: str) -> None:
        """Compare with another tokenizer."""
        self.tokenizer = tokenizer

    def lacking(self) -> str:
        """What is missing."""
        if self.form is None:
            return tr("The backend has not answered yet.")
        if lacking := self._texts.reason():
            return lacking
        return next(iter(self.form.mistake_sentences().values()), "")

    def question(self) -> dict[str, Any]:
        """The texts, the non-default settings, and what to compare with."""
        assert self.form is not None
        self.form.clear_marks()
        return {
            "data": self._texts.data(),
            "columns": self._texts.columns(),
            "settings": self.form.changed_values(),
            "compare_with": self._comparison_words(),
        }

    def command(self) -> str:
        """`burnish tokenizer train …`."""
        assert self.form is not None
        texts, settings = self._texts, self.form.changed_values()
        return train_command(
            texts.entry, texts.data(), texts.columns(), settings, self.foot.output(), self._comparison_words()
        )

    def show_made(self, made: TrainedTokenizer) -> None:
        """Show the measurements."""
        self.result.show_made(made)
        self._on_changed()

    def show_refusal(self, said: str, field: str) -> None:
        """Show the error at the texts, at the setting, or in the banner."""
        if field.startswith("data"):
            self._texts.show_mistake(said)
            self.show_reason()
        elif self.form is None or field in ("", "output") or not self.form.mark(field, said):
            self.failed.emit(said)

    def _comparison_words(self) -> str:
        return self.tokenizer if self.compares.isChecked() else ""

    def _on_changed(self) -> None:
        if self.form is not None:
            values = self.form.values()
            name = f"{self._texts.name() or 'tokenizer'}-{values.get('kind')}-{values.get('vocabulary')}"
            self.foot.propose(name)
        self.show_reason()


class TrainResultCard(Card):
    """Empty until `show_made`."""

    use_requested = Signal(str)
    message = Signal(str, str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(tr("Result"), parent)
        self.made: TrainedTokenizer | None = None
        hint = tr(
            "Choose texts and settings and press Train. The compression is compared with that of the "
            "tokenizer chosen above."
        )
        self.pages = stack(EmptyState("text", tr("No runs yet"), hint), self._result())
        self.add(self.pages, 1)

    def _result(self) -> QWidget:
        self.title, self.sub = label("", "section"), label("", "muted", wrap=True)
        self.bars = PairedBars()
        self.bars.setAccessibleName(tr("Compression"))
        self.counts = TextTable(tr("Compression"))
        self.path = ElidedLabel("", "faint")
        self.note = label(STRANGE, "faint", wrap=True)
        parts = vbox(self.title, self.sub, self.path, self.bars, self.counts, self.note, 1, spacing=10)
        self.use = IconButton(tr("Use it in my run"), "bolt", "primary", clicked=self._on_use)
        self.copy = IconButton(tr("Copy path"), "copy", "quiet", clicked=self._on_copy)
        return holder(vbox((scroll_area(holder(parts)), 1), hbox(self.use, self.copy, 1), spacing=12))

    def show_made(self, made: TrainedTokenizer) -> None:
        """Show the tokenizer and its measurements."""
        self.made = made
        self.title.setText(tr("{vocabulary} pieces", vocabulary=formatting.group_digits(made.vocabulary)))
        learnt = tr(
            "Trained on {count} in {seconds}",
            count=trn("{count} text", "{count} texts", made.rows),
            seconds=_seconds(made.seconds),
        )
        self.sub.setText(f"{learnt}; {_measurement_words(made)}")
        self.path.setText(made.path)
        self.path.setToolTip(made.path)
        names = [NEW, *(formatting.name_of_path(one.tokenizer) for one in made.compression[1:])]
        self.bars.show_groups(names[: len(made.compression)], groups_of(made.compression))
        self.counts.show_rows(*_counts_table(made.compression, names))
        self.counts.setFixedHeight(ROW_HEIGHT * (len(_COUNTS) + 1) + 4)
        self.counts.setVisible(bool(made.compression))
        self.pages.setCurrentIndex(1)

    def _on_use(self) -> None:
        if self.made is not None:
            self.use_requested.emit(self.made.path)

    def _on_copy(self) -> None:
        if self.made is not None:
            QGuiApplication.clipboard().setText(self.made.path)
            self.message.emit("success", tr("Copied the folder of the new tokenizer."))


_COUNTS = {
    tr("Pieces"): lambda one: formatting.group_digits(one.vocabulary),
    tr("Tokens"): lambda one: formatting.group_digits(one.tokens),
    tr("Unknown"): lambda one: formatting.group_digits(one.unknown),
    tr("Bytes per token"): lambda one: figure(one.bytes_per_token, ".2f"),
}


def _counts_table(measured: list[Compression], names: list[str]) -> tuple[list[str], list[list[str]]]:
    """Header and rows: a column for each tokenizer, and one for the difference."""
    rows = [[title, *map(words, measured), ""] for title, words in _COUNTS.items()]
    if len(measured) > 1:
        rows[1][-1] = _difference(measured[0].tokens, measured[1].tokens)
    return ["", *names[: len(measured)], ""], rows


def _difference(new: int, old: int) -> str:
    share = new / old - 1 if old else 0.0
    if abs(share) < LESS:
        return tr("the same number")
    return tr("{value:.1%} fewer", value=-share) if share < 0 else tr("{share:.1%} more", share=share)


def groups_of(measured: list[Compression]) -> list[Group]:
    """The bars for tokens per word and per character."""
    if not measured:
        return []
    words, characters = ([getattr(one, name) for one in measured] for name in ("per_word", "per_character"))
    return [
        Group(tr("Tokens per word"), words, [figure(value, ".3f") for value in words]),
        Group(tr("Tokens per character"), characters, [figure(value, ".4f") for value in characters]),
    ]


def _seconds(seconds: float) -> str:
    """Seconds with decimals if needed: training on a small file takes less than a second."""
    return formatting.duration(seconds) if seconds >= 10 else f"{figure(max(seconds, 0.1), '.1f')} s"


def _measurement_words(made: TrainedTokenizer) -> str:
    if not made.compression:
        return tr("nothing was measured.")
    rows = made.compression[0].rows
    if made.held_out:
        return tr(
            "measured on {count}. Fewer tokens are better.",
            count=trn("{count} held-out text", "{count} held-out texts", rows),
        )
    return tr(
        "measured on {count} of its training data. Fewer tokens are better.",
        count=trn("{count} text", "{count} texts", rows),
    )
