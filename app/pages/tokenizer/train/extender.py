"""Adds tokens to a tokenizer: the lists, the table of what they would replace, and the saved tokenizer."""

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QCheckBox, QPlainTextEdit, QWidget

from app import theme
from app.core import formatting
from app.core.backend_words import COLUMNS as COLUMN_TITLES
from app.core.formatting import group_digits
from app.core.i18n import tr
from app.core.text import tokenizer_list
from app.core.text.tokenizer_training import extend_command, line_of, new_tokens, proposed_rows, saved_words, tokens_of
from app.pages.tokenizer.text_source import TextSource
from app.pages.tokenizer.train.tokenizer_builder import TokenizerBuilder
from app.services.context import AppContext
from app.services.latest_question import LatestQuestion
from app.widgets.boxes import stack
from app.widgets.card import Card, label
from app.widgets.empty_state import EmptyState
from app.widgets.icon_label import IconToolButton
from app.widgets.tables.row_table import RowTable
from app.widgets.text.elided_label import ElidedLabel
from app.widgets.text.glyphs import show_plain_signs
from backend.contract.rpc.protocol import ErrorReply, Progress
from backend.contract.tokens.training import ProposedToken, ProposedTokens, TokenCounts, TrainedTokenizer

PROPOSAL_WIDTHS = {"token": 132, "pieces_now": 170, "occurs": 70, "note": 128}

CALM_MS, COUNT_MS = 200, 700
NO_TOKENS = tr("Enter a token to add.")


class TokenizerExtender(TokenizerBuilder):
    """`settings` holds the lists, `result` the table; there may be no texts."""

    query, verb, icon = "extend_tokenizer", tr("Add tokens"), "plus"
    working = tr("Adding the tokens")
    copied = tr("Copied the command that adds the same tokens.")

    def __init__(self, context: AppContext, texts: TextSource, parent: QObject | None = None) -> None:
        super().__init__(context, texts, parent)
        self._tokens: list[ProposedToken] = []
        self._propose = LatestQuestion(
            context.client,
            "propose_tokens",
            self._on_proposed,
            self._on_no_proposal,
            arguments=self._proposal,
            delay_ms=CALM_MS,
            parent=self,
        )
        self._count = LatestQuestion(
            context.client,
            "count_proposed",
            lambda counts: self.result.show_tokens(self._tokens, counts),
            self._on_no_counts,
            lambda progress: self.result.show_counting(progress),
            opened="",
            arguments=self._counting,
            delay_ms=COUNT_MS,
            parent=self,
        )
        self.settings = self._lists()
        self.result = ProposalCard()
        self.result.stopped.connect(self._stop_counting)
        texts.changed.connect(self._ask_counts)
        self.show_reason()

    def _lists(self) -> Card:
        card = Card(tr("Tokens to add"), spacing=6)
        self.ordinary = _list(tr("Tokens, one per line"), tr("photosynthesis\nsodium chloride"))
        self.special = _list(tr("Special tokens, one per line"), "<speaker>")
        self.whole_words = QCheckBox(tr("Whole words only"))
        self.whole_words.setToolTip(tr("Match an added token only as a whole word: “cat”, but not in “cats”"))
        self.whole_words.toggled.connect(self._on_edited)
        for caption, box in (
            (tr("Tokens"), self.ordinary),
            (tr("Special tokens (never split, left out of decoded text)"), self.special),
        ):
            words = label(caption, "muted")
            words.setBuddy(box)
            card.add_all(words, box)
            box.textChanged.connect(self._on_edited)
        card.add(self.whole_words)
        return card

    def use(self, tokenizer: str) -> None:
        """Add tokens to another tokenizer."""
        self.tokenizer = tokenizer
        self._on_edited()

    def lacking(self) -> str:
        """What is missing."""
        if not self.tokenizer:
            return tr("Choose a tokenizer.")
        if not (self.words(self.ordinary) or self.words(self.special)):
            return NO_TOKENS
        if self._propose.waits:
            return tr("Checking the tokens…")
        if not new_tokens(self._tokens):
            return tr("None of these can be added; enter a different token.")
        wrong = next((one for one in self._tokens if one.problem and one.known is None), None)
        return (
            tr("“{text}”: {problem}; remove it.", text=wrong.text, problem=wrong.problem) if wrong is not None else ""
        )

    def question(self) -> dict[str, Any]:
        """The tokenizer and the tokens to add."""
        return {
            "tokenizer": self.tokenizer,
            "add": self.words(self.ordinary),
            "special": self.words(self.special),
            "whole_words": self.whole_words.isChecked(),
        }

    def command(self) -> str:
        """`burnish tokenizer extend …`."""
        about = self.question()
        return extend_command(self.tokenizer, about["add"], about["special"], about["whole_words"], self.foot.output())

    def show_made(self, made: TrainedTokenizer) -> None:
        """Prepare for other tokens."""
        for box in (self.ordinary, self.special):
            box.clear()

    @staticmethod
    def words(box: QPlainTextEdit) -> list[str]:
        """The tokens in a list."""
        return tokens_of(box.toPlainText())

    # Questions

    def _proposal(self) -> dict[str, Any] | None:
        about = self.question()
        return about if self.tokenizer and (about["add"] or about["special"]) else None

    def _counting(self) -> dict[str, Any] | None:
        about = self._proposal()
        if about is None or not new_tokens(self._tokens) or self._texts.reason():
            return None
        return {**about, "data": self._texts.data(), "columns": self._texts.columns()}

    def _on_edited(self) -> None:
        self._count.forget()
        if self._proposal() is None:
            self._propose.forget()
            self._show_tokens([])
        else:
            self._propose.ask_soon()
            self.foot.propose(f"{tokenizer_list.short_title(self.tokenizer)}-extended")
        self.show_reason()

    def _on_proposed(self, answer: ProposedTokens) -> None:
        self.failed.emit("")
        self._show_tokens(answer.tokens)
        self._ask_counts()
        self.show_reason()

    def _on_no_proposal(self, mistake: ErrorReply) -> None:
        self._show_tokens([])
        self.failed.emit(formatting.sentence(mistake.message, mistake.field))
        self.show_reason()

    def _show_tokens(self, tokens: list[ProposedToken]) -> None:
        self._tokens = tokens
        self.result.show_tokens(tokens)

    def _ask_counts(self) -> None:
        if self._propose.waits:
            return
        self._count.forget()
        self.result.show_tokens(self._tokens)
        if self._counting() is not None:
            self.result.show_counting(Progress())
            self._count.ask_soon()

    def _on_no_counts(self, mistake: ErrorReply) -> None:
        self.result.show_counting(None)
        self._texts.show_mistake(formatting.sentence(mistake.message, mistake.field))

    def _stop_counting(self) -> None:
        self._count.forget()
        self.result.show_counting(None)


def _list(name: str, example: str) -> QPlainTextEdit:
    box = QPlainTextEdit(tabChangesFocus=True, placeholderText=example)
    box.setAccessibleName(name)
    box.setMinimumHeight(88)
    theme.role(box, "mono")
    show_plain_signs(box)
    return box


class ProposalCard(Card):
    """The pieces are shown at once, while counting continues."""

    stopped = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(tr("Proposed tokens"), parent)
        self._tokens: Sequence[ProposedToken] = ()
        self.counted = label("", "faint")
        self.stop = IconToolButton("stop", tr("Stop counting"), clicked=self.stopped)
        self.corner.addWidget(self.counted)
        self.corner.addWidget(self.stop)
        self.table = RowTable(name=tr("Proposed tokens"), titles=COLUMN_TITLES)
        self.table.row_selected.connect(self._show_line)
        self._summary = ""
        self.words = ElidedLabel("", "muted")
        hint = tr(
            "Enter words on the left, one per line. Here you see which pieces each one replaces and, if you "
            "choose texts, how often it occurs."
        )
        self.pages = stack(EmptyState("plus", tr("No tokens yet"), hint), self.table)
        self.add_all((self.pages, 1), self.words)
        self.show_tokens([])

    def show_tokens(self, tokens: Sequence[ProposedToken], counts: TokenCounts | None = None) -> None:
        """Show other tokens, or how often they occur."""
        self._tokens = tokens
        rows = proposed_rows(tokens, counts.counts if counts is not None else None)
        self.table.show_rows(rows, PROPOSAL_WIDTHS, ["pieces_now"], numbered=True)
        self.pages.setCurrentIndex(1 if tokens else 0)
        self._summary = saved_words(counts) if counts is not None and tokens else ""
        self._show_line(-1)
        self.show_counting(None)

    def _show_line(self, row: int) -> None:
        """Show a selected line in full, because its cells may be cut; else the summary."""
        token = self._tokens[row] if 0 <= row < len(self._tokens) else None
        self.words.setText(self._summary if token is None else line_of(token))

    def show_counting(self, progress: Progress | None) -> None:
        """Show the count's progress; None if no count is running."""
        self.stop.setVisible(progress is not None)
        if progress is None:
            self.counted.setText("")
        else:
            of = (
                tr(" {done} of {total}", done=group_digits(int(progress.done)), total=group_digits(int(progress.total)))
                if progress.total
                else ""
            )
            self.counted.setText(f"Counting…{of}")
