"""Owns the view of a row of a language model: its text, its loss, and what was written or filled in."""

from typing import ClassVar

from app.core.formatting import number
from app.core.i18n import tr, trn
from app.core.predictions.predicted_row import PredictedRow
from app.widgets.card import label
from app.widgets.row_views.row_view import Order, RowView, section_of, show_or_hide
from app.widgets.tables.fill_list import Fill, FillList
from app.widgets.text.marked_text import Piece


class LanguageView(RowView):
    """Text is neither right nor wrong, but more or less expected."""

    own: ClassVar[frozenset[str]] = frozenset({"loss", "tokens", "perplexity", "fills"})
    compares: ClassVar[bool] = False
    orders: ClassVar[tuple[Order, ...]] = (
        Order(tr("Highest loss first"), "loss", True),
        Order(tr("Lowest loss first"), "loss", False),
    )
    roles: ClassVar[tuple[str, ...]] = ("text", "prompt", "response")

    def build(self) -> None:
        """Text, its numbers, what was filled in, guesses."""
        self.text = self.add_text(tr("Text"))
        self.numbers = label("", "caption", wrap=True)
        self.column.addWidget(self.numbers)
        self.candidates = FillList()
        self.add(tr("Candidates for each mask"), self.candidates)
        self.guesses = self.add_text(tr("Likeliest token at each place"))

    def show_parts(self, row: PredictedRow) -> None:
        """A measured text with its loss; a typed one together with what was written."""
        text, fills = row.text("text") or row.text("prompt"), _fills(row)
        measured = row.number("tokens") is not None
        if measured or fills:
            self.text.show_text(text)
        else:
            self.text.show_pieces([Piece(text, ink="muted"), Piece(row.prediction, ink="accent_text")])
        self._show_numbers(row, measured)
        section_of(self.candidates).setVisible(bool(fills))
        self.candidates.show_fills(fills)
        section_of(self.guesses).set_title(tr("Filled in") if fills else tr("Likeliest token at each place"))
        show_or_hide(self.guesses, row.prediction if measured or fills else None)

    def _show_numbers(self, row: PredictedRow, measured: bool) -> None:
        tokens = int(row.number("tokens") or 0)
        self.numbers.setVisible(measured and tokens > 0)
        words = [f"{name} {number(row.number(name))}" for name in ("loss", "perplexity")]
        self.numbers.setText(" · ".join([*words, trn("{count} token", "{count} tokens", tokens)]))


def _fills(row: PredictedRow) -> list[Fill]:
    return [
        [(str(one.get("token", "")), float(one.get("probability") or 0.0)) for one in mask]
        for mask in row.listed("fills")
        if isinstance(mask, list)
    ]
