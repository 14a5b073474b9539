"""Views of rows whose prediction is a label with probabilities, or a number."""

from collections.abc import Collection
from typing import ClassVar

from app.core.formatting import number
from app.core.i18n import tr
from app.core.predictions.predicted_row import PROBABILITY, PredictedRow
from app.widgets.card import label
from app.widgets.plots.label_bars import LabelBars, bars_of
from app.widgets.plots.number_scale import NumberScale
from app.widgets.row_views.row_view import RowOrder, RowView, show_or_hide


class LabelView(RowView):
    """Bars of the labels, with the predicted and actual one marked."""

    confuses: ClassVar[bool] = True
    orders: ClassVar[tuple[RowOrder, ...]] = (
        RowOrder(tr("Least confident first"), "confidence", False, PROBABILITY),
        RowOrder(tr("Most confident first"), "confidence", True, PROBABILITY),
        RowOrder(tr("Most confident mistakes first"), "confidence", True, PROBABILITY, mistakes=True),
    )
    roles: ClassVar[tuple[str, ...]] = ("text", "text_pair")

    @classmethod
    def fits(cls, columns: Collection[str]) -> bool:
        """Whether labels have probabilities."""
        return any(name.startswith(PROBABILITY) for name in columns)

    def build(self) -> None:
        """The texts above the bars."""
        self.text = self.add_text(tr("Text"))
        self.pair = self.add_text(tr("Second text"))
        self.bars = LabelBars()
        self.add(tr("Labels"), self.bars)

    def show_parts(self, row: PredictedRow) -> None:
        """Show texts and bars."""
        show_or_hide(self.text, row.text("text"))
        show_or_hide(self.pair, row.text("text_pair"))
        self.bars.show_bars(bars_of(row.probabilities(), row.prediction, row.actual))


class NumberView(RowView):
    """A number is not right or wrong, but off by some amount."""

    compares: ClassVar[bool] = False
    orders: ClassVar[tuple[RowOrder, ...]] = (RowOrder(tr("Largest error first"), "error", True, "actual"),)
    roles: ClassVar[tuple[str, ...]] = ("text", "text_pair")

    def build(self) -> None:
        """The texts above the line."""
        self.text = self.add_text(tr("Text"))
        self.pair = self.add_text(tr("Second text"))
        self.scale = NumberScale()
        self.add(tr("Number"), self.scale)
        self.error = label("", "caption")
        self.column.addWidget(self.error)

    def show_parts(self, row: PredictedRow) -> None:
        """Show texts, numbers and the distance between them."""
        show_or_hide(self.text, row.text("text"))
        show_or_hide(self.pair, row.text("text_pair"))
        self.scale.show_numbers(row.number("prediction"), row.number("actual"), row.bounds)
        error = self.scale.error()
        words = "" if error is None else _error_words(error)
        self.error.setText(words)
        self.error.setVisible(bool(words))


def _error_words(error: float) -> str:
    """`0.25 too high`: how far a predicted number is off."""
    if error == 0:
        return tr("exact")
    size = number(abs(error))
    return tr("{size} too high", size=size) if error > 0 else tr("{size} too low", size=size)
