"""Owns adding tokens to a tokenizer in the window: the lists, what they replace, and the saved tokenizer."""

from typing import Any

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QFont, QGuiApplication
from PySide6.QtWidgets import QCheckBox, QPlainTextEdit

from app import theme
from app.core import tokenizer_title, wording
from app.core.proposed_rows import new_tokens, tokens_of
from app.core.tokenizer_command import extend_command
from app.panels.new_run_cards.inquiry import Inquiry
from app.panels.tokenizer_cards.making_foot import MakingFoot
from app.panels.tokenizer_cards.proposal_card import ProposalCard
from app.panels.tokenizer_cards.text_source import TextSource
from app.services.backend_client import Ticket
from app.services.context import AppContext
from app.widgets.card import Card, label
from backend.contract.queries import Mistake, Progress
from backend.contract.tokenizer_making import MadeTokenizer, ProposedToken, ProposedTokens, TokenCounts

CALM_MS, COUNT_MS = 200, 700
NOTHING = "Write a token to add."


class ExtendPart(QObject):
    """`settings` holds the lists, `result` the table; the texts are another's and may be missing."""

    made = Signal(object)
    """MadeTokenizer."""
    use_asked = Signal(str)
    message = Signal(str, str)
    failed = Signal(str)

    def __init__(self, context: AppContext, texts: TextSource, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._client, self._texts = context.client, texts
        self._tokens: list[ProposedToken] = []
        self._ticket: Ticket | None = None
        self.tokenizer = ""
        self._propose = Inquiry(
            context.client,
            "propose_tokens",
            self._question,
            self._on_proposed,
            self._on_mistake,
            delay_ms=CALM_MS,
            parent=self,
        )
        self._count = Inquiry(
            context.client,
            "count_proposed",
            self._counting,
            self._on_counts,
            self._on_no_counts,
            self._on_counting,
            COUNT_MS,
            self,
        )
        self.settings = self._lists()
        self.result = ProposalCard()
        self.result.stopped.connect(self._stop_counting)
        self.foot = MakingFoot("Add tokens", "plus", context.preferences.runs_path().parent / "tokenizers")
        self.foot.asked.connect(self.extend)
        self.foot.stopped.connect(self.stop)
        self.foot.copy_asked.connect(self._copy_command)
        self.foot.line.textChanged.connect(self._show_reason)
        texts.changed.connect(self._ask_counts)
        self._show_reason()

    def _lists(self) -> Card:
        card = Card("Tokens to add", spacing=6)
        self.ordinary, self.special = _list("Tokens, one on each line"), _list("Special tokens, one on each line")
        self.special.setPlaceholderText("<speaker>")
        self.ordinary.setPlaceholderText("photosynthesis\nsodium chloride")
        self.whole_words = QCheckBox("Only as whole words")
        self.whole_words.setToolTip(
            "Finds an added token only where no letter stands beside it: “cat”, but not in “cats”"
        )
        self.whole_words.toggled.connect(self._on_edited)
        for caption, box in (
            ("Tokens", self.ordinary),
            ("Special tokens, never split and left out of texts", self.special),
        ):
            words = label(caption, "muted")
            words.setBuddy(box)
            card.add(words)
            card.add(box)
            box.textChanged.connect(self._on_edited)
        card.add(self.whole_words)
        return card

    def use(self, tokenizer: str) -> None:
        """Add to another tokenizer."""
        self.tokenizer = tokenizer
        self._on_edited()

    def extend(self) -> None:
        """Write the extended tokenizer."""
        if self.reason():
            return
        self.failed.emit("")
        self.foot.show_working("Adding the tokens")
        question = {**self._about(), "output": self.foot.output()}
        self._ticket = self._client.ask("extend_tokenizer", question, self._on_made, self._on_not_made)

    def stop(self) -> None:
        """Forget it; nothing has been written."""
        if self._ticket is not None:
            self._ticket.cancel()
        self._end()

    def reason(self) -> str:
        """Why nothing can be added now; empty where something can."""
        if not self.tokenizer:
            return "Choose a tokenizer."
        if not (self.words(self.ordinary) or self.words(self.special)):
            return NOTHING
        if self._propose.waits:
            return "Looking at the tokens…"
        if not new_tokens(self._tokens):
            return "None of these can be added; write another one."
        wrong = next((one for one in self._tokens if one.problem and one.known is None), None)
        if wrong is not None:
            return f"“{wrong.text}”: {wrong.problem}; leave it out."
        return "" if self.foot.output() else "Name the folder of the new tokenizer."

    @staticmethod
    def words(box: QPlainTextEdit) -> list[str]:
        """The tokens of a list."""
        return tokens_of(box.toPlainText())

    # Questions

    def _about(self) -> dict[str, Any]:
        return {
            "tokenizer": self.tokenizer,
            "add": self.words(self.ordinary),
            "special": self.words(self.special),
            "whole_words": self.whole_words.isChecked(),
        }

    def _question(self) -> dict[str, Any] | None:
        about = self._about()
        return about if self.tokenizer and (about["add"] or about["special"]) else None

    def _counting(self) -> dict[str, Any] | None:
        if not new_tokens(self._tokens) or self._texts.reason() or self._question() is None:
            return None
        return {**self._about(), "data": self._texts.data(), "columns": self._texts.columns()}

    def _on_edited(self) -> None:
        self._count.cancel()
        if self._question() is None:
            self._propose.cancel()
            self._show_tokens([])
        else:
            self._propose.ask_soon()
            self.foot.propose(f"{tokenizer_title.short_title(self.tokenizer)}-extended")
        self._show_reason()

    def _on_proposed(self, answer: ProposedTokens) -> None:
        self.failed.emit("")
        self._show_tokens(answer.tokens)
        self._ask_counts()
        self._show_reason()

    def _on_mistake(self, mistake: Mistake) -> None:
        self._show_tokens([])
        self.failed.emit(wording.sentence(mistake.message, mistake.field))
        self._show_reason()

    def _show_tokens(self, tokens: list[ProposedToken]) -> None:
        self._tokens = tokens
        self.result.show_tokens(tokens)

    def _ask_counts(self) -> None:
        if self._propose.waits:
            return
        self._count.cancel()
        self.result.show_tokens(self._tokens)
        if self._counting() is not None:
            self.result.show_counting(Progress())
            self._count.ask_soon()

    def _on_counting(self, progress: Progress) -> None:
        self.result.show_counting(progress)

    def _on_counts(self, counts: TokenCounts) -> None:
        self.result.show_tokens(self._tokens, counts)

    def _on_no_counts(self, mistake: Mistake) -> None:
        self.result.show_counting(None)
        self._texts.show_mistake(wording.sentence(mistake.message, mistake.field))

    def _stop_counting(self) -> None:
        self._count.cancel()
        self.result.show_counting(None)

    # The extended tokenizer

    def _on_made(self, made: MadeTokenizer) -> None:
        self._end()
        self.foot.forget()
        for box in (self.ordinary, self.special):
            box.clear()
        self.made.emit(made)

    def _on_not_made(self, mistake: Mistake) -> None:
        self._end()
        self.failed.emit(wording.sentence(mistake.message, mistake.field))

    def _end(self) -> None:
        self._ticket = None
        self.foot.show_idle()

    def _show_reason(self) -> None:
        self.foot.show_reason(self.reason())

    def _copy_command(self) -> None:
        about = self._about()
        command = extend_command(
            self.tokenizer, about["add"], about["special"], self.whole_words.isChecked(), self.foot.output()
        )
        QGuiApplication.clipboard().setText(command)
        self.message.emit("info", "Copied: the command that adds the same tokens.")


def _list(name: str) -> QPlainTextEdit:
    box = QPlainTextEdit()
    box.setAccessibleName(name)
    box.setTabChangesFocus(True)
    box.setMinimumHeight(88)
    theme.role(box, "mono")
    font = box.font()
    font.setFeature(QFont.Tag("calt"), 0)  # else <| and -> are drawn as signs that nobody has written
    box.setFont(font)
    return box
