"""What is shown instead of tokens: several texts as a model's padded batch, or decoded ids as text."""

import re
from collections.abc import Iterator

import numpy as np
from PySide6.QtCore import Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget

from app.core.formatting import group_digits
from app.core.i18n import thin, tr, trn
from app.core.text.invisible_characters import visible
from app.widgets.boxes import hbox
from app.widgets.card import Card, label
from app.widgets.forms.chips import chips
from app.widgets.icon_label import IconToolButton
from app.widgets.tables.id_grid import VIEWS, IdGrid
from app.widgets.text.marked_text import MarkedText, TextRun
from backend.contract.tokens.batches import Decoded, DecodedRow, PiecesAsText, TokenGrid

_MISSING = re.compile(r"(⟨no (?:token|piece) [^⟩]*⟩)")
_VARIANTS = (
    (tr("With special tokens"), "with_special"),
    (tr("Without special tokens"), "without_special"),
    (tr("Spaces cleaned up"), "cleaned"),
)
MAX_ROWS = 200


class BatchCard(Card):
    """A grid of ids, pieces or the attention mask, and the share of padding."""

    message = Signal(str, str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("", parent, spacing=8)
        self.grid = IdGrid()
        self.views, row = chips(VIEWS, self.grid.set_view)
        copy = IconToolButton("copy", tr("Copy the selected cells, or all"), clicked=self._copy)
        self.counts = label("", "muted", wrap=True)
        self.add_all(hbox(row, 1, copy), (self.grid, 1), self.counts)

    def show_grid(self, answer: TokenGrid) -> None:
        """Show a batch."""
        shape = (answer.rows, answer.width)
        ids, mask = (np.array(values, np.int64).reshape(shape) for values in (answer.ids, answer.mask))
        pieces = dict(zip(answer.piece_ids, answer.pieces, strict=True))
        self.grid.set_batch(ids, mask, pieces, frozenset(answer.special_ids))
        self.counts.setText(" · ".join(batch_summary(answer)))

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.grid.selected_text())
        self.message.emit("success", tr("Copied the batch."))


def batch_summary(answer: TokenGrid) -> list[str]:
    """`3 rows × 17 · 12 of 51 are padding (24%)`."""
    cells, real = answer.rows * answer.width, sum(answer.lengths)
    words = [f"{trn('{count} row', '{count} rows', answer.rows)} × {group_digits(answer.width)}"]
    if cells > real:
        words.append(
            tr(
                "{cells} of {cells_2} are padding ({cells_3:.0%})",
                cells=group_digits(cells - real),
                cells_2=group_digits(cells),
                cells_3=(cells - real) / cells,
            )
        )
    elif cells:
        words.append(tr("no padding"))
    cut = sum(one > 0 for one in answer.left_out)
    if cut:
        words.append(
            tr(
                "{count} truncated, {count_2} lost",
                count=trn("{count} row", "{count} rows", cut),
                count_2=trn("{count} token", "{count} tokens", sum(answer.left_out)),
            )
        )
    if answer.pad_id is not None and cells > real:
        words.append(tr("filled with ID {pad_id}", pad_id=answer.pad_id))
    return [*words, *map(thin, answer.notes)]


class DecodedView(MarkedText):
    """Selectable text; unknown ids and pieces are outlined."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(tr("Decoded text"), fills=True, parent=parent)

    def show_decoded(self, answer: Decoded) -> None:
        """One list of ids or several."""
        several = len(answer.rows) > 1
        pieces = [piece for number, row in enumerate(answer.rows[:MAX_ROWS]) for piece in _row(row, number, several)]
        left = len(answer.rows) - MAX_ROWS
        self.show_pieces(
            [*pieces, TextRun(tr("and {left:,} more lists", left=left), ink="muted")] if left > 0 else pieces
        )

    def show_pieces_as_text(self, answer: PiecesAsText) -> None:
        """A list of pieces."""
        known = trn("{count} piece", "{count} pieces", len(answer.ids))
        wrong = tr(" · {number} not in the vocabulary", number=len(answer.unknown)) if answer.unknown else ""
        ids = ", ".join("–" if one < 0 else str(one) for one in answer.ids)
        self.show_pieces([*_head(f"{known}{wrong}"), *_mark_runs(answer.text), *_head(tr("\n\nIDs")), TextRun(ids)])

    def say(self, sentence: str) -> None:
        """Show a sentence instead of text."""
        self.show_text(sentence, "muted")


def _row(row: DecodedRow, number: int, several: bool) -> Iterator[TextRun]:
    title = f"{number + 1}. " if several else ""
    wrong = tr(" · {number:,} not in the vocabulary", number=len(row.missing)) if row.missing else ""
    yield from _head(f"{title}{trn('{count} ID', '{count} IDs', len(row.pieces))}{wrong}")
    if several:
        yield from _mark_runs(row.text)
    else:
        for words, name in _VARIANTS:
            yield from _head(f"\n{words}")
            yield from _mark_runs(getattr(row, name))
            yield TextRun("\n")
        yield from _head(tr("\nPieces"))
        for place, piece in enumerate(row.pieces):
            is_missing = place in row.missing
            yield TextRun(visible(piece) if piece else "?", f"token_{place % 6}", outline="danger" if is_missing else "", ink="token_text")  # fmt: skip
            yield TextRun(" ")
    yield TextRun("\n\n" if several else "")


def _head(words: str) -> list[TextRun]:
    return [TextRun(f"{words}\n", ink="muted")]


def _mark_runs(text: str) -> Iterator[TextRun]:
    for part in _MISSING.split(text):
        if part:
            yield TextRun(part, outline="danger", ink="danger") if _MISSING.fullmatch(part) else TextRun(part)
