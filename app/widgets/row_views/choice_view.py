"""The view of a multiple-choice row: each choice in full, with its probability."""

from collections.abc import Collection
from typing import ClassVar

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QWidget

from app.core.i18n import figure, tr
from app.core.predictions.predicted_row import PROBABILITY, PredictedRow
from app.widgets.card import label
from app.widgets.icon_label import IconLabel
from app.widgets.progress import ThinProgressBar
from app.widgets.row_views.row_view import RowOrder, RowView, show_or_hide

MAX_CHOICES = 50
STYLES = {
    "right": ("check", "success"),
    "wrong": ("close", "danger"),
    "actual": ("check", "success"),
    "predicted": ("", "accent"),
    "": ("", "plot_1_raw"),
}
"""How a choice is marked → its icon and colour."""


class ChoiceView(RowView):
    """Choices keep their order; the predicted and the right one are marked."""

    orders: ClassVar[tuple[RowOrder, ...]] = (
        RowOrder(tr("Least confident first"), "confidence", False, PROBABILITY),
        RowOrder(tr("Most confident first"), "confidence", True, PROBABILITY),
        RowOrder(tr("Most confident mistakes first"), "confidence", True, PROBABILITY, mistakes=True),
    )
    folded: ClassVar[tuple[str, ...]] = ("choices", *(f"choice_{n}" for n in range(MAX_CHOICES)))
    roles: ClassVar[tuple[str, ...]] = ("text", "text_pair", "choices", *(f"choice_{n}" for n in range(MAX_CHOICES)))

    @classmethod
    def fits(cls, columns: Collection[str]) -> bool:
        """Whether choices have probabilities by number."""
        return f"{PROBABILITY}0" in columns

    def build(self) -> None:
        """The text above the choices."""
        self.text = self.add_text(tr("Text"))
        self.pair = self.add_text(tr("Text that every choice starts with"))
        self.choices = _Choices()
        self.add(tr("Choices"), self.choices)

    def show_parts(self, row: PredictedRow) -> None:
        """Show every choice with its probability."""
        show_or_hide(self.text, row.text("text"))
        show_or_hide(self.pair, row.text("text_pair"))
        probabilities = list(row.probabilities().values())
        texts = _texts(row, len(probabilities))
        chosen = max(range(len(probabilities)), key=probabilities.__getitem__, default=-1)
        self.choices.show_choices(texts, probabilities, chosen, _right_place(row, texts, chosen))


class _Choices(QWidget):
    def __init__(self) -> None:
        super().__init__()
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 4, 0, 0)
        self._grid.setHorizontalSpacing(10)
        self._grid.setVerticalSpacing(4)
        self._grid.setColumnMinimumWidth(0, 16)
        self._grid.setColumnStretch(1, 1)
        self.marks: list[str] = []

    def show_choices(self, texts: list[str], probabilities: list[float], chosen: int, right: int | None) -> None:
        while item := self._grid.takeAt(0):
            item.widget().hide()  # type: ignore[union-attr]
            item.widget().deleteLater()  # type: ignore[union-attr]
        self.marks = [_mark(place, chosen, right) for place in range(len(texts))]
        for place, (text, probability, mark) in enumerate(zip(texts, probabilities, self.marks, strict=True)):
            icon, token = STYLES[mark]
            words = label(text, "strong" if mark else "", wrap=True, selectable=True)
            value = label(figure(probability, ".1%"), "strong" if mark else "muted")
            bar = ThinProgressBar()
            bar.set_fraction(probability, token)
            top = Qt.AlignmentFlag.AlignTop
            if icon:
                self._grid.addWidget(IconLabel(icon, token, 15), 3 * place, 0, top)
            self._grid.addWidget(words, 3 * place, 1, top)
            self._grid.addWidget(value, 3 * place, 2, top | Qt.AlignmentFlag.AlignRight)
            self._grid.addWidget(bar, 3 * place + 1, 1, 1, 2)
            self._grid.setRowMinimumHeight(3 * place + 2, 8)


def _mark(place: int, chosen: int, right: int | None) -> str:
    if place == chosen:
        return "predicted" if right is None else "right" if place == right else "wrong"
    return "actual" if place == right else ""


def _texts(row: PredictedRow, count: int) -> list[str]:
    """The choices, given as a list or in separate columns."""
    listed = row.as_list(row.columns.get("choices", "choices"))
    texts = [str(text) for text in listed] or [row.text(f"choice_{number}") for number in range(count)]
    return [*texts, *[""] * count][:count]


def _right_place(row: PredictedRow, texts: list[str], chosen: int) -> int | None:
    """The right choice's index; labels refer to it by number (from 0 or 1), letter or text, like the prediction."""
    if row.actual is None:
        return None
    if row.actual == row.prediction:
        return chosen
    if row.actual in texts:
        return texts.index(row.actual)
    called, right = _value(row.prediction), _value(row.actual)
    place = None if called is None or right is None else chosen + right - called
    return place if place is not None and 0 <= place < len(texts) else None


def _value(name: str) -> int | None:
    try:
        return int(float(name))
    except ValueError:
        return ord(name) if len(name) == 1 else None
