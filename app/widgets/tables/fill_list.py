"""Owns the list of what may stand at each mask of a text, with probabilities."""

from collections.abc import Sequence

from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.core.i18n import tr
from app.widgets.card import label
from app.widgets.plots.label_bars import Bar, LabelBars

Fill = Sequence[tuple[str, float]]
"""Candidates for one mask, the likeliest first."""
MAX_MASKS = 50


class FillList(QWidget):
    """One group of bars for each mask, in the text's order."""

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
        for number, fill in enumerate(fills[:MAX_MASKS], start=1):
            if len(fills) > 1:
                self._column.addWidget(label(tr("Mask {number}", number=number), "faint"))
            bars = LabelBars(tr("Candidates for mask {number}", number=number))
            bars.show_bars([Bar(text or "␣", p, "" if place else "predicted") for place, (text, p) in enumerate(fill)])
            self._groups.append(bars)
            self._column.addWidget(bars)
        if len(fills) > MAX_MASKS:
            self._column.addWidget(label(tr("{number} more masks", number=len(fills) - MAX_MASKS), "faint"))

    def candidates(self) -> list[list[str]]:
        """The words of each mask, as shown."""
        return [[bar.label for bar in group.shown()] for group in self._groups]
