"""Owns the view of a classified row: its texts, and every label with its probability."""

from collections.abc import Collection
from typing import ClassVar

from app.core.i18n import tr
from app.core.predictions.predicted_row import PROBABILITY, PredictedRow
from app.widgets.plots.label_bars import LabelBars, bars_of
from app.widgets.row_views.row_view import Order, RowView, show_or_hide


class LabelView(RowView):
    """Bars of the labels, the predicted and the actual one marked."""

    confuses: ClassVar[bool] = True
    orders: ClassVar[tuple[Order, ...]] = (
        Order(tr("Least sure first"), "confidence", False, PROBABILITY),
        Order(tr("Surest first"), "confidence", True, PROBABILITY),
        Order(tr("Surest mistakes first"), "confidence", True, PROBABILITY, mistakes=True),
    )
    roles: ClassVar[tuple[str, ...]] = ("text", "text_pair")

    @classmethod
    def fits(cls, columns: Collection[str]) -> bool:
        """Labels have probabilities."""
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
