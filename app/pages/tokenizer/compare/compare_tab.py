"""The Compare tab: two to four tokenizers on one text, line by line, and on a whole column of data."""

from collections.abc import Mapping
from typing import Any

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QCheckBox, QPlainTextEdit, QWidget

from app.core.formatting import sentence
from app.core.i18n import tr, trn
from app.pages.tokenizer.compare.aligned_tokens import AlignedTokens
from app.pages.tokenizer.compare.compared_data import ComparedData
from app.pages.tokenizer.compare.compared_tokenizers import ComparedTokenizers
from app.pages.tokenizer.data_choice import DataChoice
from app.pages.tokenizer.tokenizer_tab import READING, TokenizerTab, waiting_question
from app.services.context import AppContext
from app.services.latest_question import LatestQuestion
from app.widgets.banner import Banner
from app.widgets.boxes import hbox, holder, stack, vbox
from app.widgets.empty_state import EmptyState
from app.widgets.forms.chips import chips
from app.widgets.icon_label import IconButton
from app.widgets.progress import WaitingStack
from app.widgets.text.directed_text import follow_direction
from app.widgets.text.elided_label import ElidedLabel
from app.widgets.text.text_editor import text_of
from backend.contract.rpc.protocol import ErrorReply
from backend.contract.tokens.comparison import MOST, DataComparison, TextComparison

CALM_MS = 200
LONGEST = 10_000
"""Characters of a text that are compared; whole files are compared as data."""
EXAMPLE = tr(
    "Tokenizers disagree about unbelievably long words, naïve cafés and 3.14159.\ndef add(a, "
    "b):\n    return a + b\nEin Donaudampfschiff, el niño y l'été"
)
MODES = (tr("Text"), tr("Data"))
NO_RESULT = tr("No comparison result")
STOPPED = (NO_RESULT, tr("The comparison was stopped."), tr("Try again"))


class CompareTab(TokenizerTab):
    """The page's tokenizer is the first; the others are chosen here."""

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(context, parent)
        self._shown_text = self._failed_query = ""
        self._compare = LatestQuestion(
            context.client, "compare_text", self._on_text, self._on_text_mistake, opened="tokenizers"
        )
        self._calm = QTimer(self, interval=CALM_MS, singleShot=True)
        self._calm.timeout.connect(self.compare_text)
        self.banner = Banner()
        self.others = ComparedTokenizers(context)
        self.others.changed.connect(self._on_changed)
        self.mode, modes = chips(MODES, self.show_mode)
        self.special, self.only = QCheckBox(tr("Special tokens")), QCheckBox(tr("Highlight differences only"))
        self.special.setChecked(True)
        self.only.setChecked(True)
        self.special.toggled.connect(lambda _: self.compare_text())
        self.only.toggled.connect(lambda on: self.columns.set_only_differences(on))
        self.add = IconButton(tr("Add tokenizer"), "plus", clicked=self._on_add)
        top = hbox(modes, 1, self.special, self.only, self.add, spacing=14)
        self.inputs = stack(self._text_input(), self._data_input())
        self.results = stack(self._text_result(), self._data_result())
        vbox(top, self.banner, self.inputs, self.others, (self.results, 1), spacing=10, parent=self)
        self.show_mode(0)

    # Building

    def _text_input(self) -> QWidget:
        self.text = QPlainTextEdit(EXAMPLE, placeholderText=tr("Type or paste text"))
        follow_direction(self.text)
        self.text.setAccessibleName(tr("Text"))
        self.text.setTabChangesFocus(True)
        self.text.setFixedHeight(88)
        self.text.textChanged.connect(self._calm.start)
        return self.text

    def _data_input(self) -> QWidget:
        self.data = DataChoice(self._context, with_language=True)
        self.data.changed.connect(self._show_state)
        self.data.failed.connect(lambda text: self._show_failure(text, "data"))
        self._connect_data(self.data, self.banner)
        self.start = IconButton(tr("Compare"), "play", "primary", clicked=self.compare_data)
        return holder(hbox((self.data, 1), self.start, spacing=10))

    def _text_result(self) -> QWidget:
        self.columns = AlignedTokens()
        self.columns.token_shown.connect(lambda words: self.summary.setText(words or self._shown_text))
        self.summary = ElidedLabel("", "muted")
        return holder(vbox((self.columns, 1), self.summary, spacing=8))

    def _data_result(self) -> QWidget:
        self.compared = ComparedData()
        self.waiting = WaitingStack(self.compared)
        self._measure = waiting_question(
            self.waiting,
            self._context.client,
            "compare_data",
            self._on_data,
            opened="",
            failed=NO_RESULT,
            stopped=STOPPED,
            ask_again=self.compare_data,
        )
        self.waiting.currentChanged.connect(self._show_state)
        self.nothing = EmptyState(
            "chart",
            tr("Compare on your data"),
            tr(
                "Choose a data file and its text column to see tokens per word, character and row for each "
                "tokenizer, by language if there is a language column."
            ),
            tr("Use the demo data"),
        )
        self.nothing.action_clicked.connect(self.data.choose_demo)
        self.waiting.addWidget(self.nothing)
        self.waiting.setCurrentWidget(self.nothing)
        return self.waiting

    # The page

    def _on_tokenizer(self) -> None:
        """Compare this one with the others."""
        self.others.set_first(self.tokenizer)
        self._on_changed()

    def on_shown(self) -> None:
        """Offer the tokenizers of new runs."""
        self.others.refresh()

    def show_draft(self, spec: Mapping[str, Any], lacks: str) -> None:
        """Offer the tokenizer of the run being set up."""
        super().show_draft(spec, lacks)
        self.others.offer_draft(spec.get("model") or {})

    def show_mode(self, place: int) -> None:
        """A text, or a column of data."""
        self.mode.button(place).setChecked(True)
        self.inputs.setCurrentIndex(place)
        self.inputs.setFixedHeight(88 if place == 0 else 34)
        self.results.setCurrentIndex(place)
        self.others.row.setContentsMargins(0, 0, self.columns.bar_width if place == 0 else 0, 0)
        for box in (self.special, self.only):
            box.setVisible(place == 0)
        self.banner.clear()
        self._show_state()

    def _on_add(self) -> None:
        self.others.add()
        self._on_changed()

    def _on_changed(self) -> None:
        if self._measure.open:
            self._measure.stop()
            self.waiting.show_sentence(*STOPPED)
        if self.waiting.currentWidget() is self.compared:
            self.waiting.setCurrentWidget(self.nothing)  # it was about other tokenizers
            self.nothing.set_words(
                tr("You chose different tokenizers"), tr("Compare again to see their results on your data."), ""
            )
        self._show_state()
        self.compare_text()

    def _show_state(self) -> None:
        self.add.setEnabled(len(self.others.tokenizers) < MOST)
        self.add.setToolTip("" if self.add.isEnabled() else tr("You can compare up to {MOST} tokenizers", MOST=MOST))
        self.start.setEnabled(self.data.ready and self.others.ready and not self._measure.open)

    # One text

    def compare_text(self) -> None:
        """Query the tokens of the current text."""
        if not self.others.ready:
            self._compare.stop()
            return
        text = text_of(self.text)[:LONGEST]
        if not self.columns.views[0].count():
            self.summary.setText(tr("Opening the tokenizers…"))
            self.columns.show_number(len(self.others.tokenizers))
        question = {"tokenizers": self.others.tokenizers, "text": text, "special_tokens": self.special.isChecked()}
        self._compare.ask(question)

    def _on_text(self, found: TextComparison) -> None:
        self._show_failure("", "compare_text")
        self.columns.show_comparison(found, self._compare.answered["text"])
        places = (
            tr("{count} split differently", count=trn("{count} place", "{count} places", found.places))
            if found.places
            else tr("Split the same way everywhere")
        )
        cut = len(text_of(self.text)) > LONGEST
        words = [
            places,
            trn("{count} line", "{count} lines", found.lines),
            trn("{count} character", "{count} characters", found.characters),
            trn("{count} word", "{count} words", found.words),
        ]
        words += [tr("only the first {LONGEST:,} characters; compare files under Data", LONGEST=LONGEST)] if cut else []
        self._shown_text = " · ".join(words)
        self.summary.setText(self._shown_text)

    def _on_text_mistake(self, mistake: ErrorReply) -> None:
        """Clear the tokens: those of other tokenizers would be misleading."""
        self.columns.show_number(len(self.others.tokenizers))
        self._shown_text = ""
        self.summary.setText("")
        self._show_failure(mistake.message, "compare_text")

    # A column of data

    def compare_data(self) -> None:
        """Count the tokens of the chosen column; the helper reports progress."""
        if not (self.data.ready and self.others.ready):
            return
        question = {
            "tokenizers": self.others.tokenizers,
            "data": self.data.data,
            "column": self.data.column.currentText(),
            "language_column": self.data.language_column(),
        }
        self.waiting.show_waiting(READING)
        self._measure.ask(question)
        self._show_state()
        self.waiting.stop.setFocus()

    def _on_data(self, found: DataComparison) -> None:
        self._show_failure("", "compare_data")
        self.compared.show_comparison(found, self.others.names)

    # Mistakes

    def _show_failure(self, text: str, about: str) -> None:
        """Say it, or take back what was last said about the same thing."""
        if text:
            self._failed_query = about
            self.banner.show_message("error", sentence(text))
        elif self._failed_query == about:
            self.banner.clear()
