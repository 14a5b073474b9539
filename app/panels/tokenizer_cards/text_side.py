"""Owns the side that shows one text: coloured tokens and ids, and ids back to text."""

import re
from typing import Any

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QLineEdit, QPlainTextEdit, QVBoxLayout, QWidget

from app import theme
from app.core.wording import count
from app.services.backend_client import OnAnswer, OnError, Ticket
from app.services.context import AppContext
from app.services.token_answer import TokenTable, token_table
from app.widgets.banner import Banner
from app.widgets.card import Card, label
from app.widgets.icon_label import IconToolButton
from app.widgets.token_view import TokenView
from backend.contract.queries import Mistake
from backend.contract.tokens import Tokens

CALM_MS = 150
EXAMPLE = (
    "Fine-tuning transformers shouldn't require a terminal.\nUnbelievably long words get split into sub-word pieces."
)
SHOWN_IDS = 2_000
"""Ids shown as text; all of them are copied."""


class Side(QWidget):
    """Asks the helper for tokens a moment after the last key press."""

    message = Signal(str, str)

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self._tokens = token_table(Tokens())
        self._open: dict[str, Ticket] = {}
        self._calm = QTimer(self, interval=CALM_MS, singleShot=True)
        self._calm.timeout.connect(self._ask)
        self._calm_decode = QTimer(self, interval=CALM_MS, singleShot=True)
        self._calm_decode.timeout.connect(self._ask_text)
        self.tokenizer = ""
        self.banner = Banner()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(14)
        column.addWidget(self.banner)
        column.addWidget(self._text_card())
        row = QHBoxLayout()
        row.setSpacing(14)
        row.addWidget(self._tokens_card(), 1)
        row.addLayout(self._side(), 0)
        column.addLayout(row, 1)

    # Building

    def _text_card(self) -> Card:
        card = Card("Text")
        self.special, self.whitespace = QCheckBox("Special tokens"), QCheckBox("Show spaces")
        for box in (self.special, self.whitespace):
            box.setChecked(True)
            card.corner.addWidget(box)
        self.special.toggled.connect(self._ask_all)
        self.whitespace.toggled.connect(lambda on: self.view.set_whitespace_visible(on))
        self.text = QPlainTextEdit(EXAMPLE, placeholderText="Type or paste text")
        self.text.setAccessibleName("Text")
        self.text.setTabChangesFocus(True)
        self.text.setFixedHeight(84)
        self.text.textChanged.connect(self._calm.start)
        card.add(self.text)
        return card

    def _tokens_card(self) -> Card:
        card = Card("Tokens")
        self.view = TokenView()
        self.view.token_hovered.connect(self._show_token)
        self.view.token_selected.connect(self._show_token)
        self.counts = label("", "muted")
        card.add(self.view, 1)
        card.add(self.counts)
        return card

    def _side(self) -> QVBoxLayout:
        column = QVBoxLayout()
        column.setSpacing(14)
        for card in (self._details_card(), self._ids_card(), self._decode_card()):
            card.setFixedWidth(300)
            column.addWidget(card, 1 if card.heading.text() == "IDS" else 0)
        return column

    def _details_card(self) -> Card:
        card = Card("Token", spacing=4)
        self.details = label("", "mono", wrap=True, selectable=True)
        self.details.setMinimumHeight(66)
        self.details.setAlignment(Qt.AlignmentFlag.AlignTop)
        card.add(self.details)
        return card

    def _ids_card(self) -> Card:
        card = Card("Ids")
        copy = IconToolButton("copy", "Copy all ids")
        copy.clicked.connect(self.copy_ids)
        card.corner.addWidget(copy)
        self.ids = QPlainTextEdit(readOnly=True)
        self.ids.setAccessibleName("Ids")
        theme.role(self.ids, "mono")
        card.add(self.ids, 1)
        return card

    def _decode_card(self) -> Card:
        card = Card("Ids to text", spacing=8)
        self.decode_ids = QLineEdit(placeholderText="101, 7592, 102")
        self.decode_ids.setAccessibleName("Ids to decode")
        theme.role(self.decode_ids, "mono")
        self.decode_ids.textChanged.connect(self._calm_decode.start)
        self.decoded = label("", wrap=True, selectable=True)
        self.decoded.setMinimumHeight(34)
        self.decoded.setAlignment(Qt.AlignmentFlag.AlignTop)
        card.add(self.decode_ids)
        card.add(self.decoded)
        return card

    def use(self, tokenizer: str) -> None:
        """Show the text as this tokenizer cuts it."""
        if tokenizer != self.tokenizer:
            self.tokenizer = tokenizer
            self._ask_all()

    def shown(self) -> None:
        """The text stands until it is changed."""

    # Questions and answers

    def _ask_all(self) -> None:
        self._ask()
        self._ask_text()

    def _ask(self) -> None:
        question = {
            "tokenizer": self.tokenizer,
            "text": self.text.toPlainText(),
            "special_tokens": self.special.isChecked(),
        }
        if not len(self._tokens):
            self.counts.setText("Opening the tokenizer…")
        self._put("tokenize", question, self._on_tokens, self._on_mistake)

    def _ask_text(self) -> None:
        if "decode" in self._open:
            self._open["decode"].cancel()
        written = self.decode_ids.text()
        ids = [int(word) for word in re.findall(r"\d+", written)]
        if re.sub(r"[\d\s,;\[\]()]", "", written):
            self.decoded.setText("Ids are whole numbers, for example 101, 7592, 102.")
        elif not ids:
            self.decoded.setText("")
        else:
            question = {"tokenizer": self.tokenizer, "ids": ids, "skip_special": not self.special.isChecked()}
            self._put(
                "decode",
                question,
                lambda answer: self.decoded.setText(answer.rows[0].text),
                lambda mistake: self.decoded.setText(mistake.message),
            )

    def _put(self, query: str, question: dict[str, Any], on_answer: OnAnswer, on_error: OnError) -> None:
        if query in self._open:
            self._open[query].cancel()
        self._open[query] = self._context.client.ask(query, question, on_answer, on_error)

    def _on_mistake(self, mistake: Mistake) -> None:
        """Tokens of another tokenizer would only mislead."""
        self._show_tokens(token_table(Tokens()))
        self.counts.setText("")
        self.banner.show_message("error", mistake.message)

    def _on_tokens(self, answer: Any) -> None:
        self._show_tokens(token_table(answer))

    def _show_tokens(self, tokens: TokenTable) -> None:
        self.banner.show_message("info", tokens.answer.stored_truncation)
        self._tokens = tokens
        texts = tokens.texts()
        self.view.set_tokens(
            [text or tokens.piece(number).piece for number, text in enumerate(texts)],
            tokens.special.tolist(),
            gaps_between(tokens, self.text.toPlainText()),
        )
        self.counts.setText(counts_of(tokens.answer))
        self._write_ids()
        self._show_token(-1)

    def _write_ids(self) -> None:
        shown = ", ".join(str(token) for token in self._tokens.ids[:SHOWN_IDS].tolist())
        left = len(self._tokens) - SHOWN_IDS
        self.ids.setPlainText(f"{shown}, … and {left:,} more" if left > 0 else shown)

    def copy_ids(self) -> None:
        """Put all ids on the clipboard."""
        QGuiApplication.clipboard().setText(", ".join(str(token) for token in self._tokens.ids.tolist()))
        self.message.emit("success", f"Copied {count(len(self._tokens), 'id')}.")

    def _show_token(self, index: int) -> None:
        if not 0 <= index < len(self._tokens):
            self.details.setText("Hover or click a token.")
            return
        piece, text = self._tokens.piece(index), self._tokens.text(index)
        start, end = (int(self._tokens.column(name)[index]) for name in ("start", "end"))
        where = "special" if piece.special else f"{start}–{end}"
        self.details.setText(f"id      {piece.id}\npiece   {piece.piece}\ntext    {text!r}\nchars   {where}")


def gaps_between(tokens: TokenTable, text: str) -> list[str]:
    """The text before each token that belongs to no token, for example a space that BERT drops."""
    gaps, last = [], 0
    columns = (tokens.column(name).tolist() for name in ("sequence", "start", "end"))
    for sequence, start, end in zip(*columns, strict=True):
        inside = sequence == 0 and start >= last
        gaps.append(text[last:start] if inside else "")
        if sequence == 0:
            last = max(last, end)
    return gaps


def counts_of(tokens: Tokens) -> str:
    """`408 tokens · 1 862 characters · 4.56 characters per token · 0 unknown`."""
    amount = tokens.tokens
    words = [count(amount, "token"), count(tokens.characters, "character"), count(tokens.words, "word")]
    if amount and tokens.characters:
        words.append(f"{tokens.characters / amount:.2f} characters per token")
    words.append(f"{tokens.unknown} unknown")
    if tokens.limit is not None and amount > tokens.limit:
        words.append(f"the model reads {count(tokens.limit, 'token')} at most")
    return " · ".join(words)
