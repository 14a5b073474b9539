"""A histogram of lengths with round bins and the limit, with bars beyond it in another colour."""

from collections.abc import Callable

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFont, QFontMetricsF, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from app import theme
from app.core.i18n import group_digits, tr
from app.core.text.length_bins import LengthBins
from app.widgets.accessibility import Role

LEFT, RIGHT, TOP, BOTTOM = 46, 12, 26, 24
MAX_TICKS = 8


class LengthHistogram(QWidget):
    """`say` returns the text for the bar under the mouse or selected by the arrow keys."""

    spoken_role = Role.Chart

    bar_hovered = Signal(int)
    """Place of a bar, or −1."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        theme.follow(self)
        self._bins: LengthBins | None = None
        self._limit, self._better = 0, 0
        self._hovered = -1
        self._say: Callable[[int], str] = lambda place: ""
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setMinimumHeight(150)
        self.setAccessibleName(tr("Lengths"))

    def show_bins(self, bins: LengthBins, limit: int, better: int | None, say: Callable[[int], str]) -> None:
        """Draw these bars, a line at `limit`, and a thin one at a better limit."""
        self._bins, self._limit, self._better, self._say = bins, limit, better or 0, say
        self._hovered = -1
        spoken = (say(place) for place, count in enumerate(bins.counts) if count)
        self.setAccessibleDescription("; ".join([tr("limit {limit:,}", limit=limit), *spoken]))
        self.update()

    def hover_text(self) -> str:
        """The text for the bar under the mouse; empty if there is none."""
        return self._say(self._hovered) if self._bins is not None and self._hovered >= 0 else ""

    def sizeHint(self) -> QSize:
        """Wide and reasonably high."""
        return QSize(480, 260)

    def apply_theme(self) -> None:
        """Nothing to update: colours are read at every paint."""
        self.update()

    # Painting

    def _area(self) -> QRectF:
        return QRectF(LEFT, TOP, max(1, self.width() - LEFT - RIGHT), max(1, self.height() - TOP - BOTTOM))

    def x_of(self, tokens: float) -> float:
        """The x position of a length."""
        assert self._bins is not None
        area = self._area()
        return area.left() + area.width() * min(1.0, tokens / self._bins.end)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint scale, bars, limit and text."""
        if self._bins is None:
            return
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            self._paint_scale(painter)
            self._paint_bars(painter)
            if self._better:
                self._paint_limit(painter, self._better, "success", Qt.PenStyle.DashLine, group_digits(self._better))
            self._paint_limit(
                painter, self._limit, "text", Qt.PenStyle.SolidLine, tr("limit {limit:,}", limit=self._limit)
            )

    def _paint_scale(self, painter: QPainter) -> None:
        assert self._bins is not None
        area, most = self._area(), max(1, max(self._bins.counts))
        painter.setFont(theme.font(11))
        for count in _ticks(most, 4):
            y = area.bottom() - area.height() * count / most
            painter.setPen(QPen(theme.color("plot_grid"), 1))
            painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y))
            painter.setPen(theme.color("muted"))
            painter.drawText(QRectF(0, y - 9, LEFT - 6, 18), _RIGHT, _short(count))
        for tokens in _ticks(self._bins.end, MAX_TICKS):
            painter.drawText(QRectF(self.x_of(tokens) - 40, area.bottom() + 5, 80, 16), _CENTRE, group_digits(tokens))
        painter.setPen(theme.color("faint"))
        painter.drawText(QRectF(0, area.bottom() + 5, LEFT - 6, 16), _RIGHT, "tokens")

    def _paint_bars(self, painter: QPainter) -> None:
        assert self._bins is not None
        area, most = self._area(), max(1, max(self._bins.counts))
        border = self.x_of(self._limit) if self._limit < self._bins.end else area.right() + 1
        parts = (
            (QRectF(0, 0, border, self.height()), "plot_1"),
            (QRectF(border, 0, self.width(), self.height()), "plot_2"),
        )
        for clip, token in parts:
            painter.setClipRect(clip)
            painter.setPen(Qt.PenStyle.NoPen)
            for place, count in enumerate(self._bins.counts):
                if count:
                    painter.setBrush(theme.color(token if place != self._hovered else f"{token}_raw"))
                    painter.drawRoundedRect(self._bar(place, count, most), 2, 2)
        painter.setClipping(False)
        painter.setPen(QPen(theme.color("plot_axis"), 1))
        painter.drawLine(area.bottomLeft(), area.bottomRight())

    def _bar(self, place: int, count: int, most: int) -> QRectF:
        area, bins = self._area(), self._bins
        assert bins is not None
        width = area.width() / len(bins.counts)
        height = max(2.0, area.height() * count / most)
        return QRectF(area.left() + place * width + 0.75, area.bottom() - height, max(1.0, width - 1.5), height)

    def _paint_limit(self, painter: QPainter, limit: int, token: str, style: Qt.PenStyle, words: str) -> None:
        assert self._bins is not None
        area, beyond = self._area(), limit > self._bins.end
        x = self.x_of(limit)
        painter.setPen(QPen(theme.color(token), 1.5, style))
        if not beyond:
            painter.drawLine(QPointF(x, area.top() - 6), QPointF(x, area.bottom()))
        font = theme.font(12, QFont.Weight.DemiBold)
        text = f"{words} →" if beyond else words
        width = QFontMetricsF(font).horizontalAdvance(text) + 6
        left = min(max(area.left(), x - width / 2), self.width() - width)
        painter.setFont(font)
        painter.drawText(QRectF(left, 0, width, area.top() - 6), _CENTRE, text)

    # Mouse and keys

    def _hover(self, place: int) -> None:
        if place != self._hovered:
            self._hovered = place
            self.bar_hovered.emit(place)
            self.update()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Hover over the bar above or below the mouse."""
        area, bins = self._area(), self._bins
        inside = bins is not None and area.left() <= event.position().x() < area.right()
        share = (event.position().x() - area.left()) / area.width()
        self._hover(int(share * len(bins.counts)) if inside and bins is not None else -1)

    def event(self, event: QEvent) -> bool:
        """Leaving ends the hover."""
        if event.type() == QEvent.Type.Leave:
            self._hover(-1)
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Arrows move from bar to bar."""
        if self._bins is None or event.key() not in (Qt.Key.Key_Left, Qt.Key.Key_Right):
            super().keyPressEvent(event)
            return
        step = 1 if event.key() == Qt.Key.Key_Right else -1
        self._hover(min(len(self._bins.counts) - 1, max(0, self._hovered + step)))


_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_CENTRE = Qt.AlignmentFlag.AlignCenter


def _ticks(end: int, most: int) -> list[int]:
    """Round numbers from 0 to `end`."""
    step = 1
    while end / step > most:
        step = step * 2 if str(step)[0] in "15" else step * 5 // 2
    return list(range(0, end + 1, step))


def _short(count: int) -> str:
    return (
        group_digits(count)
        if count < 10_000
        else f"{group_digits(count / 1000)} k"
        if count < 1_000_000
        else f"{group_digits(count / 1e6, 1)} M"
    )
