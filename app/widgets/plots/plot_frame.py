"""The base of painted plots: a frame whose two axes share one range, and hover texts."""

from collections.abc import Sequence
from math import floor, log10
from typing import Any

from PySide6.QtCore import QEvent, QPointF, QRectF, Qt
from PySide6.QtGui import QMouseEvent, QPainter, QPen
from PySide6.QtWidgets import QToolTip, QWidget

from app import theme
from app.core.i18n import figure

LEFT, BOTTOM, TOP, RIGHT = 46, 38, 8, 10


class UnitSquareAxes:
    """Values from `low` to `high` on both axes, drawn into `area` of a widget."""

    def __init__(self, low: float = 0.0, high: float = 1.0) -> None:
        self.low, self.high = low, high
        self.area = QRectF()

    def fit(self, width: float, height: float) -> None:
        """Fit the drawing area into this width and height."""
        self.area = QRectF(LEFT, TOP, max(20.0, width - LEFT - RIGHT), max(20.0, height - TOP - BOTTOM))

    def point(self, x: float, y: float) -> QPointF:
        """The position of a pair of values."""
        span = (self.high - self.low) or 1.0
        across, up = (x - self.low) / span, (y - self.low) / span
        return QPointF(self.area.left() + across * self.area.width(), self.area.bottom() - up * self.area.height())

    def value_at(self, x: float) -> float:
        """The value at a position on the x axis."""
        share = (x - self.area.left()) / (self.area.width() or 1.0)
        return self.low + min(1.0, max(0.0, share)) * (self.high - self.low)

    def paint(self, painter: QPainter, names: tuple[str, str], ticks: Sequence[float], diagonal: bool = True) -> None:
        """Grid, ticks and the names of both axes."""
        painter.setFont(theme.font(11))
        for tick in ticks:
            words = figure(tick, ".4g")
            across, up = self.point(tick, self.low), self.point(self.low, tick)
            painter.setPen(QPen(theme.color("plot_grid"), 1))
            painter.drawLine(QPointF(across.x(), self.area.top()), across)
            painter.drawLine(up, QPointF(self.area.right(), up.y()))
            painter.setPen(theme.color("muted"))
            under = QRectF(across.x() - 30, self.area.bottom() + 3, 60, 16)
            painter.drawText(under, Qt.AlignmentFlag.AlignHCenter, words)
            beside = QRectF(14, up.y() - 8, LEFT - 19, 16)
            painter.drawText(beside, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, words)
        painter.setPen(theme.color("faint"))
        line = QRectF(self.area.left(), self.area.bottom() + 19, self.area.width(), 18)
        painter.drawText(line, Qt.AlignmentFlag.AlignHCenter, names[0])
        painter.save()
        painter.translate(0, self.area.bottom())
        painter.rotate(-90)
        painter.drawText(QRectF(0, 0, self.area.height(), 15), Qt.AlignmentFlag.AlignHCenter, names[1])
        painter.restore()
        if diagonal:
            painter.setPen(QPen(theme.color("control"), 1, Qt.PenStyle.DashLine))
            painter.drawLine(self.point(self.low, self.low), self.point(self.high, self.high))


def ticks_between(low: float, high: float, most: int = 6) -> list[float]:
    """Round numbers from `low` to `high`, at most this many."""
    span = high - low
    if span <= 0:
        return [low]
    step = 10.0 ** floor(log10(span / most))
    step = next(step * factor for factor in (1, 2, 5, 10, 20) if span / (step * factor) <= most)
    first = -(-low // step)
    found: list[float] = []
    while (first + len(found)) * step <= high + step * 1e-9:
        found.append(round((first + len(found)) * step, 10))
    return found


class HoverPlot(QWidget):
    """Describes the part under the mouse: any key that the plot uses, such as the index of a bar."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._hovered: Any = None
        self.setMouseTracking(True)

    def part_at(self, place: QPointF) -> Any:
        """The part at a position, None if there is none."""
        raise NotImplementedError

    def words_of(self, part: Any) -> str:
        """The description of a part."""
        raise NotImplementedError

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Describe the part under the mouse."""
        part = self.part_at(event.position())
        if part == self._hovered:
            return
        self._hovered = part
        self.setCursor(Qt.CursorShape.ArrowCursor if part is None else Qt.CursorShape.PointingHandCursor)
        QToolTip.showText(event.globalPosition().toPoint(), "" if part is None else self.words_of(part), self)
        self.update()

    def leaveEvent(self, event: QEvent) -> None:
        """End the hover."""
        self._hovered = None
        self.update()
