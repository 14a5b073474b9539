"""Views of rows with a predicted text: language models with loss and fills, generated text beside its reference."""

from collections.abc import Sequence
from typing import ClassVar

from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.core.formatting import number
from app.core.i18n import tr, trn
from app.core.predictions.predicted_row import PredictedRow
from app.core.predictions.word_diff import difference, is_comparable
from app.widgets.card import label
from app.widgets.plots.label_bars import Bar, LabelBars
from app.widgets.row_views.row_view import RowOrder, RowView, section_of, show_or_hide
from app.widgets.text.marked_text import TextRun

Fill = Sequence[tuple[str, float]]
"""Candidates for one mask, the likeliest first."""


class LanguageView(RowView):
    """Text is not right or wrong, but more or less expected."""

    own: ClassVar[frozenset[str]] = frozenset({"loss", "tokens", "perplexity", "fills"})
    compares: ClassVar[bool] = False
    orders: ClassVar[tuple[RowOrder, ...]] = (
        RowOrder(tr("Highest loss first"), "loss", True),
        RowOrder(tr("Lowest loss first"), "loss", False),
    )
    roles: ClassVar[tuple[str, ...]] = ("text", "prompt", "response")

    def build(self) -> None:
        """Text, its numbers, the filled-in text, guesses."""
        self.text = self.add_text(tr("Text"))
        self.numbers = label("", "caption", wrap=True)
        self.column.addWidget(self.numbers)
        self.candidates = FillList()
        self.add(tr("Candidates for each mask"), self.candidates)
        self.guesses = self.add_text(tr("Most likely token at each position"))

    def show_parts(self, row: PredictedRow) -> None:
        """A scored text with its loss; a typed one together with the generated text."""
        text, fills = row.text("text") or row.text("prompt"), _fills(row)
        measured = row.number("tokens") is not None
        if measured or fills:
            self.text.show_text(text)
        else:
            self.text.show_pieces([TextRun(text, ink="muted"), TextRun(row.prediction, ink="accent_text")])
        self._show_numbers(row, measured)
        section_of(self.candidates).setVisible(bool(fills))
        self.candidates.show_fills(fills)
        section_of(self.guesses).set_title(tr("Filled in") if fills else tr("Most likely token at each position"))
        show_or_hide(self.guesses, row.prediction if measured or fills else None)

    def _show_numbers(self, row: PredictedRow, measured: bool) -> None:
        tokens = int(row.number("tokens") or 0)
        self.numbers.setVisible(measured and tokens > 0)
        words = [f"{name} {number(row.number(name))}" for name in ("loss", "perplexity")]
        self.numbers.setText(" · ".join([*words, trn("{count} token", "{count} tokens", tokens)]))


def _fills(row: PredictedRow) -> list[Fill]:
    return [
        [(str(one.get("token", "")), float(one.get("probability") or 0.0)) for one in mask]
        for mask in row.as_list("fills")
        if isinstance(mask, list)
    ]


class WritingView(RowView):
    """Text that only the prediction has is red, text that only the reference has is green."""

    own: ClassVar[frozenset[str]] = frozenset({"source_text", "predicted_source_text", "tokens"})
    orders: ClassVar[tuple[RowOrder, ...]] = (RowOrder(tr("Highest loss first"), "loss", True),)
    roles: ClassVar[tuple[str, ...]] = ("source", "prefix", "source_language", "target_language", "prompt", "response")

    def build(self) -> None:
        """Source above, both texts below it."""
        self.source = self.add_text(tr("Source"))
        self.prediction = self.add_text(tr("Prediction"))
        self.reference = self.add_text(tr("Reference"))
        self.note = label("", "caption", wrap=True)
        self.column.addWidget(self.note)

    def show_parts(self, row: PredictedRow) -> None:
        """Show the texts and their differences."""
        source = str(row.own("source_text") or "") or row.text("source") or row.text("prompt")
        section_of(self.source).setVisible(bool(source))
        self.source.show_text(source)
        section_of(self.reference).setVisible(row.actual is not None)
        if row.actual is None:
            self.prediction.show_text(row.prediction)
            self.note.hide()
            return
        ours, theirs = difference(row.prediction, row.actual)
        empty = [TextRun(tr("no text generated"), ink="faint")]
        self.prediction.show_pieces([_piece(text, same, "danger_soft") for text, same in ours] or empty)
        self.reference.show_pieces([_piece(text, same, "success_soft") for text, same in theirs])
        self.note.setText(_note(row.prediction, row.actual, ours, theirs))
        self.note.show()


def _piece(text: str, same: bool, ground: str) -> TextRun:
    return TextRun(text, "" if same else ground)


def _note(prediction: str, actual: str, ours: list[tuple[str, bool]], theirs: list[tuple[str, bool]]) -> str:
    if prediction == actual:
        return tr("Identical.")
    if not is_comparable(prediction, actual):
        return tr("These texts are too long to compare word by word.")
    added, missing = (sum(not same for _, same in parts) for parts in (ours, theirs))
    return tr(
        "Red: not in the reference ({added}). Green: missing from the prediction ({missing}).",
        added=added,
        missing=missing,
    )


MAX_MASKS = 50


class FillList(QWidget):
    """One group of bars per mask, in text order."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(4)
        self._groups: list[LabelBars] = []

    def show_fills(self, fills: Sequence[Fill]) -> None:
        """Show the candidates of these masks."""
        while item := self._column.takeAt(0):
            widget = item.widget()
            if widget is not None:
                widget.hide()
                widget.deleteLater()
        self._groups = []
        for place, fill in enumerate(fills[:MAX_MASKS], start=1):
            if len(fills) > 1:
                self._column.addWidget(label(tr("Mask {number}", number=place), "faint"))
            bars = LabelBars(tr("Candidates for mask {number}", number=place))
            bars.show_bars([Bar(text or "␣", p, "" if place else "predicted") for place, (text, p) in enumerate(fill)])
            self._groups.append(bars)
            self._column.addWidget(bars)
        if len(fills) > MAX_MASKS:
            self._column.addWidget(label(tr("{number} more masks", number=len(fills) - MAX_MASKS), "faint"))

    def candidates(self) -> list[list[str]]:
        """The words shown for each mask."""
        return [[bar.label for bar in group.visible_bars()] for group in self._groups]
