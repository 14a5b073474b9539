"""Owns the card beside the rows while none is chosen: how many are right, and which label was taken for which."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from app import theme
from app.core.wording import count, grouped
from app.widgets.card import Card, label
from app.widgets.confusion_matrix import ConfusionMatrix
from backend.contract.queries import Confusion

HINT = "Choose a row to see it whole. The arrow keys walk through the rows."


class OverviewCard(Card):
    """Counts above the matrix; a click on a cell asks for its rows."""

    pair_chosen = Signal(str, str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Overview", parent)
        self.right, self.wrong = label("", "value"), label("", "value")
        self._tiles = QWidget()
        row = QHBoxLayout(self._tiles)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(28)
        for value, words, role in ((self.right, "right", "success"), (self.wrong, "wrong", "danger")):
            column = QVBoxLayout()
            column.setSpacing(0)
            column.addWidget(value)
            column.addWidget(label(words, role))
            row.addLayout(column)
        row.addStretch(1)
        self.matrix = ConfusionMatrix()
        self.matrix.pair_chosen.connect(self.pair_chosen)
        self._area = QScrollArea(widgetResizable=True)
        self._area.setFrameShape(QFrame.Shape.NoFrame)
        holder = QWidget()
        holder.setObjectName("scrolled")
        column = QVBoxLayout(holder)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(10)
        column.addWidget(self.matrix)
        column.addStretch(1)
        self._area.setWidget(holder)
        self.note = label("", "caption", wrap=True)
        self.hint = label(HINT, "faint", wrap=True)
        self.add(self._tiles)
        self.add(self._area, 1)
        self.body.addStretch(0)
        self.add(self.note)
        self.add(self.hint)
        self.hint.setAlignment(Qt.AlignmentFlag.AlignLeft)
        self.setMinimumWidth(320)
        self.clear()

    def clear(self) -> None:
        """Nothing is known yet, or there is nothing to compare with."""
        self._tiles.hide()
        self.matrix.show_counts([], [])
        self.note.setText("")
        self.note.hide()

    def show_counts(self, right: int, wrong: int) -> None:
        """How many rows are right and wrong."""
        self.right.setText(grouped(right))
        self.wrong.setText(grouped(wrong))
        self._tiles.setVisible(right + wrong > 0)

    def show_confusion(self, confusion: Confusion) -> None:
        """Counts and matrix."""
        right = sum(counts[place] for place, counts in enumerate(confusion.counts))
        self.show_counts(right, sum(map(sum, confusion.counts)) - right)
        self.matrix.show_counts(confusion.labels, confusion.counts)
        words = "Click a cell to see its rows."
        if confusion.left_out:
            words += f" {count(confusion.left_out, 'row')} of rarer labels are left out."
        self.note.setText(words)
        self.note.setVisible(bool(confusion.labels))

    def apply_theme(self) -> None:
        """The matrix reads its colours at every paint."""
        self.matrix.update()
        theme.role(self, "card")
