"""Bars of 95 % intervals around zero: which of several differences are more than chance, at a glance."""

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetrics, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from app import theme
from app.core.i18n import tr
from app.widgets.accessibility import Role

ROW, BAR, DOT = 26, 6, 4
"""Pixels: a line's height, a bar's, and the radius of the dot at its value."""
MOST = 6
"""Bars that are drawn; a table has them all."""
GAP = 14
NAMED = 0.34
"""The share of the width that names get at most."""


@dataclass(frozen=True)
class IntervalBar:
    """One difference; `is_sure` if it is more than chance."""

    name: str
    words: str
    value: float
    low: float
    high: float
    is_sure: bool = False
    scale: float = 0.0
    """What the bar's end stands for, if it shares its scale with others."""


class IntervalBars(QWidget):
    """`show_bars` fills it. Bars of different metrics have scales of their own; zero is in the middle of all.

    With `name`, they are shares from 0 to 1, and zero is at their left.
    """

    spoken_role = Role.Chart

    def __init__(self, parent: QWidget | None = None, *, name: str = "") -> None:
        super().__init__(parent)
        theme.follow(self)
        self._are_shares = bool(name)
        self._bars: tuple[IntervalBar, ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(name or tr("Differences with their 95 % intervals"))

    @property
    def bars(self) -> tuple[IntervalBar, ...]:
        """What is drawn."""
        return self._bars

    def show_bars(self, bars: Sequence[IntervalBar]) -> None:
        """Draw these, as many as fit."""
        self._bars = tuple(bars[:MOST])
        self.setAccessibleDescription("; ".join(f"{bar.name}: {bar.words}" for bar in self._bars))
        self.setVisible(bool(self._bars))
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        """A line for each bar."""
        return QSize(400, theme.pixels(ROW) * len(self._bars))

    def apply_theme(self) -> None:
        """Colours are read at every paint."""
        self.updateGeometry()
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Names on the left, numbers on the right, bars between."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(theme.font(12))
        metrics, height = QFontMetrics(painter.font()), theme.pixels(ROW)
        named = min(
            max((metrics.horizontalAdvance(bar.name) + 4 for bar in self._bars), default=0), int(self.width() * NAMED)
        )
        said = max((metrics.horizontalAdvance(bar.words) for bar in self._bars), default=0)
        room = QRectF(named + GAP, 0, max(40.0, self.width() - named - said - 2 * GAP), height * len(self._bars))
        painter.setPen(QPen(theme.color("plot_axis"), 1, Qt.PenStyle.DashLine))
        zero = room.left() + DOT if self._are_shares else room.center().x()
        painter.drawLine(QPointF(zero, 0), QPointF(zero, room.bottom()))
        for place, bar in enumerate(self._bars):
            line = QRectF(0, place * height, self.width(), height)
            painter.setPen(theme.color("text"))
            name = metrics.elidedText(bar.name, Qt.TextElideMode.ElideMiddle, named)
            painter.drawText(line, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, name)
            painter.setPen(theme.color("muted"))
            painter.drawText(line, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, bar.words)
            self._paint_bar(painter, bar, QRectF(room.left(), line.top(), room.width(), height))
        painter.end()

    def _paint_bar(self, painter: QPainter, bar: IntervalBar, area: QRectF) -> None:
        most = bar.scale or max(abs(bar.low), abs(bar.high), abs(bar.value)) or 1.0
        middle, half = area.center(), area.width() / 2 - DOT
        low, value, high = (middle.x() + one / most * half for one in (bar.low, bar.value, bar.high))
        if self._are_shares:
            low, value, high = (area.left() + DOT + one * 2 * half for one in (bar.low, bar.value, bar.high))
        color = theme.color("accent" if bar.is_sure else "muted")
        painter.setPen(Qt.PenStyle.NoPen)
        pale = theme.color("accent" if bar.is_sure else "muted")
        pale.setAlphaF(0.35)
        painter.setBrush(pale)
        painter.drawRoundedRect(QRectF(low, middle.y() - BAR / 2, max(1.0, high - low), BAR), BAR / 2, BAR / 2)
        painter.setBrush(color)
        painter.drawEllipse(QPointF(value, middle.y()), DOT, DOT)
