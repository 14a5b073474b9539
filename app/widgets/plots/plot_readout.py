"""Owns the small panel beside a plot's cross-hair that says what every curve is there."""

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QRect, QRectF, Qt
from PySide6.QtGui import QFontMetrics, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from app import theme

PADDING = 9
GAP = 14
SWATCH = 12
AWAY = 12
"""Pixels between the cross-hair and the panel."""


@dataclass(frozen=True)
class Line:
    """One curve: its colour, its name and its value; `dashed` as the curve is."""

    token: str
    name: str
    value: str
    dashed: bool = False


class PlotReadout(QWidget):
    """Lies over the plot and lets the mouse through."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        theme.give_font(self, 12)
        self.title = ""
        self.lines: list[Line] = []
        self.hide()

    def text(self) -> str:
        """All of it as one line."""
        return " · ".join([self.title, *(f"{line.name} {line.value}" for line in self.lines)])

    def show_at(self, area: QRect, x: int, title: str, lines: Sequence[Line]) -> None:
        """Show these beside x, within the area of the parent where curves are drawn."""
        self.title, self.lines = title, list(lines)
        self.resize(self._width(), self._row() * (1 + len(self.lines)) + 2 * PADDING)
        right = x + AWAY
        left = right if right + self.width() <= area.right() else x - AWAY - self.width()
        self.move(max(area.left(), min(left, area.right() - self.width())), area.top() + 4)
        self.show()
        self.raise_()
        self.update()

    def _row(self) -> int:
        return self.fontMetrics().height() + 3

    def _width(self) -> int:
        metrics: QFontMetrics = self.fontMetrics()
        rows = [
            SWATCH + 6 + metrics.horizontalAdvance(line.name) + GAP + metrics.horizontalAdvance(line.value)
            for line in self.lines
        ]
        return max([metrics.horizontalAdvance(self.title), *rows]) + 2 * PADDING

    def paintEvent(self, event: QPaintEvent) -> None:
        """A card with one line a curve."""
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            card = theme.color("card")
            card.setAlpha(238)
            painter.setBrush(card)
            painter.setPen(theme.color("border_strong"))
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 6, 6)
            row = QRect(PADDING, PADDING, self.width() - 2 * PADDING, self._row())
            painter.setPen(theme.color("muted"))
            painter.drawText(row, Qt.AlignmentFlag.AlignVCenter, self.title)
            for line in self.lines:
                row.translate(0, self._row())
                self._paint(painter, row, line)

    def _paint(self, painter: QPainter, row: QRect, line: Line) -> None:
        style = Qt.PenStyle.DotLine if line.dashed else Qt.PenStyle.SolidLine
        painter.setPen(QPen(theme.color(line.token), 3, style))
        middle = row.center().y() + 1
        painter.drawLine(row.left(), middle, row.left() + SWATCH, middle)
        painter.setPen(theme.color("muted"))
        painter.drawText(row.adjusted(SWATCH + 6, 0, 0, 0), Qt.AlignmentFlag.AlignVCenter, line.name)
        painter.setPen(theme.color("text"))
        painter.drawText(row, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, line.value)
