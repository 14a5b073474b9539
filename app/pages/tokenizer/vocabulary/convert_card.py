"""Owns the card that turns a list of ids into pieces and a list of pieces into ids."""

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QTimer
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QPlainTextEdit

from app import theme
from app.core.i18n import filled, inside, tr, trn
from app.core.text.piece_lists import read_ids, read_pieces, write_ids, write_pieces
from app.widgets.card import Card, label
from app.widgets.icon_label import IconToolButton
from app.widgets.text.plain_signs import show_plain_signs
from backend.contract.tokens.vocabulary import Conversion

CALM_MS = 150
SHOWN = 60
"""Characters of pieces that are named as missing."""
Ask = Callable[[dict[str, Any], Callable[[Conversion], None]], None]
"""Puts `ids` or `pieces` to the helper."""


class ConvertCard(Card):
    """Two fields: whichever is written in is turned into the other."""

    def __init__(self, ask: Ask) -> None:
        super().__init__(tr("Ids and pieces"), spacing=4)
        self._ask = ask
        self._from_ids = True
        self._calm = QTimer(self, interval=CALM_MS, singleShot=True)
        self._calm.timeout.connect(self.convert)
        self.ids = self._field(tr("Ids"), "101, 7592, 102")
        self.pieces = self._field(tr("Pieces"), tr("[CLS] hello [SEP], one a line, or a JSON list"))
        self.ids.textChanged.connect(lambda: self._on_written(from_ids=True))
        self.pieces.textChanged.connect(lambda: self._on_written(from_ids=False))
        self.note = label("", "faint", wrap=True)
        self.add(self.note)
        self.note.hide()

    def _field(self, name: str, hint: str) -> QPlainTextEdit:
        row = QHBoxLayout()
        copy = IconToolButton("copy", tr("Copy the {name}", name=inside(name)))
        row.addWidget(label(name, "caption"))
        row.addStretch(1)
        row.addWidget(copy)
        self.body.addLayout(row)
        field = QPlainTextEdit(placeholderText=hint, tabChangesFocus=True)
        field.setAccessibleName(name)
        field.setMinimumHeight(52)
        theme.role(field, "mono")
        show_plain_signs(field)
        copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(field.toPlainText()))
        self.add(field, 1)
        return field

    def _on_written(self, from_ids: bool) -> None:
        self._from_ids = from_ids
        self._calm.start()

    def convert(self) -> None:
        """Ask again, for example because another vocabulary is shown."""
        source = self.ids if self._from_ids else self.pieces
        try:
            given = read_ids(source.toPlainText()) if self._from_ids else read_pieces(source.toPlainText())
        except ValueError as error:
            self._note(str(error))
            return
        if not given:
            self._write(self.pieces if self._from_ids else self.ids, "")
            self._note("")
            return
        self._ask({"ids" if self._from_ids else "pieces": given}, self._on_answer)

    def _on_answer(self, answer: Conversion) -> None:
        if self._from_ids:
            self._write(self.pieces, write_pieces(answer.pieces, answer.ids))
            missing = [str(number) for number, piece in zip(answer.ids, answer.pieces, strict=True) if piece is None]
            said, count = tr("{count} without a piece: {listed}"), trn("{count} id", "{count} ids", len(missing))
        else:
            self._write(self.ids, write_ids(answer.ids))
            missing = [str(piece) for number, piece in zip(answer.ids, answer.pieces, strict=True) if number is None]
            said = tr("{count} not in the vocabulary: {listed}")
            count = trn("{count} piece", "{count} pieces", len(missing))
        self._note(filled(said, count=count, listed=_listed(missing)) if missing else "")

    def _write(self, field: QPlainTextEdit, text: str) -> None:
        field.blockSignals(True)
        field.setPlainText(text)
        field.blockSignals(False)

    def _note(self, text: str) -> None:
        self.note.setText(text)
        self.note.setVisible(bool(text))


def _listed(words: list[str]) -> str:
    text = ", ".join(words)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
