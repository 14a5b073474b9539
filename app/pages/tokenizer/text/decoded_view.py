"""Owns what ids or pieces mean as text: with and without special tokens, spaces cleaned up, and what does not exist."""

import re
from collections.abc import Iterator

from PySide6.QtWidgets import QWidget

from app.core.i18n import tr, trn
from app.core.text.invisible_characters import visible
from app.widgets.text.marked_text import MarkedText, Piece
from backend.contract.tokens.batches import Decoded, DecodedRow, PiecesAsText

_MISSING = re.compile(r"(⟨no (?:token|piece) [^⟩]*⟩)")
_VARIANTS = (
    (tr("With special tokens"), "with_special"),
    (tr("Without them"), "without_special"),
    (tr("Spaces cleaned up"), "cleaned"),
)
MAX_ROWS = 200


class DecodedView(MarkedText):
    """Selectable text; ids and pieces that do not exist are outlined."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(tr("Decoded text"), fills=True, parent=parent)

    def show_decoded(self, answer: Decoded) -> None:
        """One list of ids or several."""
        several = len(answer.rows) > 1
        pieces = [piece for number, row in enumerate(answer.rows[:MAX_ROWS]) for piece in _row(row, number, several)]
        left = len(answer.rows) - MAX_ROWS
        self.show_pieces(
            [*pieces, Piece(tr("and {left:,} more lists", left=left), ink="muted")] if left > 0 else pieces
        )

    def show_pieces_as_text(self, answer: PiecesAsText) -> None:
        """A list of pieces."""
        known = trn("{count} piece", "{count} pieces", len(answer.ids))
        wrong = tr(" · {number} not in the vocabulary", number=len(answer.unknown)) if answer.unknown else ""
        ids = ", ".join("–" if one < 0 else str(one) for one in answer.ids)
        self.show_pieces([*_head(f"{known}{wrong}"), *_marked(answer.text), *_head(tr("\n\nTheir ids")), Piece(ids)])

    def say(self, sentence: str) -> None:
        """A sentence in place of text."""
        self.show_text(sentence, "muted")


def _row(row: DecodedRow, number: int, several: bool) -> Iterator[Piece]:
    title = f"{number + 1}. " if several else ""
    wrong = tr(" · {number:,} not in the vocabulary", number=len(row.missing)) if row.missing else ""
    yield from _head(f"{title}{trn('{count} id', '{count} ids', len(row.pieces))}{wrong}")
    if several:
        yield from _marked(row.text)
    else:
        for words, name in _VARIANTS:
            yield from _head(f"\n{words}")
            yield from _marked(getattr(row, name))
            yield Piece("\n")
        yield from _head(tr("\nPieces"))
        for place, piece in enumerate(row.pieces):
            is_missing = place in row.missing
            yield Piece(visible(piece) if piece else "?", f"token_{place % 6}", outline="danger" if is_missing else "", ink="token_text")  # fmt: skip
            yield Piece(" ")
    yield Piece("\n\n" if several else "")


def _head(words: str) -> list[Piece]:
    return [Piece(f"{words}\n", ink="muted")]


def _marked(text: str) -> Iterator[Piece]:
    for part in _MISSING.split(text):
        if part:
            yield Piece(part, outline="danger", ink="danger") if _MISSING.fullmatch(part) else Piece(part)
