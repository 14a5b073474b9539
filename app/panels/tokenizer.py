"""Owns the Tokenizer page: text in, coloured tokens and ids out, and ids back to text."""

import re
from pathlib import Path
from typing import Any

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QCheckBox, QFileDialog, QHBoxLayout, QLineEdit, QPlainTextEdit, QVBoxLayout, QWidget

from app import theme
from app.core.wording import count
from app.services.backend_client import OnAnswer, OnError, Ticket
from app.services.context import AppContext
from app.services.token_answer import tokens_of
from app.widgets.banner import Banner
from app.widgets.card import Card, label
from app.widgets.icon_label import IconButton, IconToolButton
from app.widgets.page_header import PageHeader, page_layout
from app.widgets.quiet_combo_box import QuietComboBox
from app.widgets.token_view import TokenView
from backend.contract.demo_models import DEMO_MODELS
from backend.contract.queries import Mistake, Token, Tokens

CALM_MS = 150
EXAMPLE = (
    "Fine-tuning transformers shouldn't require a terminal.\nUnbelievably long words get split into sub-word pieces."
)
SHOWN_IDS = 2_000
"""Ids shown as text; all of them are copied."""


class Panel(QWidget):
    """Asks the helper for tokens a moment after the last key press."""

    message = Signal(str, str)

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("page")
        self._context = context
        self._tokens: list[Token] = []
        self._open: dict[str, Ticket] = {}
        self._calm = QTimer(self, interval=CALM_MS, singleShot=True)
        self._calm.timeout.connect(self._ask)
        self._calm_decode = QTimer(self, interval=CALM_MS, singleShot=True)
        self._calm_decode.timeout.connect(self._ask_text)
        self.header = PageHeader("Tokenizer", "Hover a token to see its id; colours only mark where tokens begin")
        self.banner = Banner()
        column = page_layout(self)
        column.addWidget(self.header)
        column.addWidget(self._choice_card())
        column.addWidget(self.banner)
        column.addWidget(self._text_card())
        row = QHBoxLayout()
        row.setSpacing(14)
        row.addWidget(self._tokens_card(), 1)
        row.addLayout(self._side(), 0)
        column.addLayout(row, 1)
        self._list_tokenizers()

    # Building

    def _choice_card(self) -> Card:
        card = Card()
        self.choice = QuietComboBox()
        self.choice.setEditable(True)
        self.choice.setAccessibleName("Tokenizer")
        self.choice.setToolTip("Choose one, or type a folder or the id of a model on the hub and press Enter")
        self.choice.activated.connect(lambda _: self._ask_all())
        line = self.choice.lineEdit()
        assert line is not None
        line.returnPressed.connect(self._ask_all)
        browse = IconButton("Browse", "folder")
        browse.clicked.connect(self._browse)
        self.special, self.whitespace = QCheckBox("Special tokens"), QCheckBox("Show spaces")
        for box in (self.special, self.whitespace):
            box.setChecked(True)
        self.special.toggled.connect(self._ask_all)
        self.whitespace.toggled.connect(lambda on: self.view.set_whitespace_visible(on))
        row = QHBoxLayout()
        row.setSpacing(12)
        for widget, stretch in ((self.choice, 1), (browse, 0), (self.special, 0), (self.whitespace, 0)):
            row.addWidget(widget, stretch)
        card.layout().setContentsMargins(16, 8, 16, 12)  # type: ignore[union-attr]
        card.body.addLayout(row)
        return card

    def _text_card(self) -> Card:
        card = Card("Text")
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

    # Which tokenizer

    def shown(self) -> None:
        """New runs may have brought tokenizers; the first time the example is tokenised."""
        self._list_tokenizers()
        if not self._tokens:
            self._ask()

    def show_tokenizer(self, name_or_path: str) -> None:
        """Use a folder or hub id."""
        self._add(name_or_path, name_or_path)
        self.choice.setCurrentIndex(self.choice.findData(name_or_path))
        self._ask_all()

    def _list_tokenizers(self) -> None:
        for model in DEMO_MODELS:
            self._add(f"Demo model ({model.name})", str(model.folder))
        for run in self._context.library.runs:
            if run.state == "finished":
                self._add(f"{run.title} · {run.name}", str(run.path / "model"))
        for name in self._context.preferences.recent_models:
            self._add(name, name)

    def _add(self, title: str, value: str) -> None:
        if self.choice.findData(value) < 0:
            self.choice.addItem(title, value)

    def tokenizer(self) -> str:
        """The folder or hub id that is chosen or typed."""
        text = self.choice.currentText().strip()
        place = self.choice.findText(text)
        return self.choice.itemData(place) if place >= 0 and self.choice.itemData(place) else text

    def _browse(self) -> None:
        folder = QFileDialog.getExistingDirectory(self, "Choose the folder of a model or tokenizer", str(Path.home()))
        if folder:
            self.show_tokenizer(folder)

    # Questions and answers

    def _ask_all(self) -> None:
        self._ask()
        self._ask_text()

    def _ask(self) -> None:
        question = {
            "tokenizer": self.tokenizer(),
            "text": self.text.toPlainText(),
            "special_tokens": self.special.isChecked(),
        }
        if not self._tokens:
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
            question = {"tokenizer": self.tokenizer(), "ids": ids, "skip_special": not self.special.isChecked()}
            self._put(
                "decode",
                question,
                lambda answer: self.decoded.setText(answer["text"]),
                lambda mistake: self.decoded.setText(mistake.message),
            )

    def _put(self, query: str, question: dict[str, Any], on_answer: OnAnswer, on_error: OnError) -> None:
        if query in self._open:
            self._open[query].cancel()
        self._open[query] = self._context.client.ask(query, question, on_answer, on_error)

    def _on_mistake(self, mistake: Mistake) -> None:
        """Tokens of another tokenizer would only mislead."""
        self._show_tokens(Tokens(tokens=[], characters=0, words=0, unknown=0))
        self.counts.setText("")
        self.banner.show_message("error", mistake.message)

    def _on_tokens(self, answer: Any) -> None:
        self._show_tokens(tokens_of(answer))

    def _show_tokens(self, tokens: Tokens) -> None:
        self.banner.show_message("info", tokens.stored_truncation)
        self._tokens = tokens.tokens
        self.view.set_tokens(
            [token.text or token.piece for token in self._tokens],
            [token.special for token in self._tokens],
            gaps_between(self._tokens, self.text.toPlainText()),
        )
        self.counts.setText(counts_of(tokens))
        self._write_ids()
        self._show_token(-1)

    def _write_ids(self) -> None:
        shown = ", ".join(str(token.id) for token in self._tokens[:SHOWN_IDS])
        left = len(self._tokens) - SHOWN_IDS
        self.ids.setPlainText(f"{shown}, … and {left:,} more" if left > 0 else shown)

    def copy_ids(self) -> None:
        """Put all ids on the clipboard."""
        QGuiApplication.clipboard().setText(", ".join(str(token.id) for token in self._tokens))
        self.message.emit("success", f"Copied {count(len(self._tokens), 'id')}.")

    def _show_token(self, index: int) -> None:
        if not 0 <= index < len(self._tokens):
            self.details.setText("Hover or click a token.")
            return
        token = self._tokens[index]
        where = "special" if token.special else f"{token.start}–{token.end}"
        self.details.setText(f"id      {token.id}\npiece   {token.piece}\ntext    {token.text!r}\nchars   {where}")


def gaps_between(tokens: list[Token], text: str) -> list[str]:
    """The text before each token that belongs to no token, for example a space that BERT drops."""
    gaps, end = [], 0
    for token in tokens:
        inside = not token.special and token.start >= end
        gaps.append(text[end : token.start] if inside else "")
        if not token.special:
            end = max(end, token.end)
    return gaps


def counts_of(tokens: Tokens) -> str:
    """`408 tokens · 1 862 characters · 4.56 characters per token · 0 unknown`."""
    amount = len(tokens.tokens)
    words = [count(amount, "token"), count(tokens.characters, "character"), count(tokens.words, "word")]
    if amount and tokens.characters:
        words.append(f"{tokens.characters / amount:.2f} characters per token")
    words.append(f"{tokens.unknown} unknown")
    if tokens.truncated_at is not None:
        words.append(f"the model reads {count(tokens.truncated_at, 'token')} at most")
    return " · ".join(words)
