"""Two small charts: one bar divided into shares, and a strip of counts with a limit."""

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QHelpEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from app import theme
from app.core.i18n import figure, tr
from app.widgets.accessibility import Role

COLORS = ("plot_1", "plot_2", "plot_3", "plot_4", "plot_5")
MAX_SHARES = 40
GAP = 2.0


class ShareBar(QWidget):
    """Labels with their counts as parts of one bar; hovering shows which is which."""

    spoken_role = Role.Chart

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._shares: list[tuple[str, float]] = []
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(name)

    def show_counts(self, counts: Sequence[tuple[str, int]]) -> None:
        """Show the first in this order; the rest is one part."""
        total = sum(count for _, count in counts) or 1
        first = [(label, count / total) for label, count in counts[:MAX_SHARES]]
        rest = sum(count for _, count in counts[MAX_SHARES:]) / total
        self._shares = [*first, (tr("{number} more", number=len(counts) - MAX_SHARES), rest)] if rest else first
        self.setAccessibleDescription(", ".join(f"{label} {share:.0%}" for label, share in self._shares[:10]))
        self.update()

    def sizeHint(self) -> QSize:
        """A thin line."""
        return QSize(160, 10)

    def _parts(self) -> list[tuple[str, float, QRectF]]:
        left, parts = 0.0, []
        for label, share in self._shares:
            width = share * self.width()
            parts.append((label, share, QRectF(left, 0, max(1.0, width - GAP), self.height())))
            left += width
        return parts

    def paintEvent(self, event: QPaintEvent) -> None:
        """Rounded parts; neighbours never have the same colour."""
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(Qt.PenStyle.NoPen)
            for place, (_, _, area) in enumerate(self._parts()):
                color = QColor(theme.color(COLORS[place % len(COLORS)]))
                color.setAlphaF(0.9 if place < len(COLORS) else 0.5)
                painter.setBrush(color)
                painter.drawRoundedRect(area, 3, 3)

    def event(self, event: QEvent) -> bool:
        """Show the label under the mouse."""
        if isinstance(event, QHelpEvent):
            found = next((part for part in self._parts() if part[2].right() + GAP >= event.pos().x()), None)
            QToolTip.showText(event.globalPos(), f"{found[0]}: {figure(found[1], '.1%')}" if found else "", self)
            return True
        return super().event(event)


class CountStrip(QWidget):
    """A low histogram; bars beyond the limit have another colour."""

    spoken_role = Role.Chart

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._counts: list[int] = []
        self._words: list[str] = []
        self._limit: float | None = None
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(name)

    def show_counts(self, counts: list[int], words: list[str], limit: float | None) -> None:
        """Show bars, their descriptions, and the limit as a position between bars."""
        self._counts, self._words, self._limit = counts, words, limit
        self.setAccessibleDescription(", ".join(words))
        self.update()

    def sizeHint(self) -> QSize:
        """Low."""
        return QSize(160, 38)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint bars, a baseline, and the limit."""
        if not self._counts:
            return
        width, height, most = self.width() / len(self._counts), self.height() - 2, max(1, *self._counts)
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(Qt.PenStyle.NoPen)
            for place, count in enumerate(self._counts):
                beyond = self._limit is not None and place >= self._limit
                painter.setBrush(theme.color("plot_2" if beyond else "plot_1"))
                tall = max(2.0, height * count / most) if count else 0.0
                painter.drawRoundedRect(QRectF(place * width + 0.75, height - tall, width - 1.5, tall), 1.5, 1.5)
            painter.setPen(QPen(theme.color("plot_axis"), 1))
            painter.drawLine(0, height + 1, self.width(), height + 1)
            if self._limit is not None and self._limit <= len(self._counts):
                x = round(min(self._limit * width, self.width() - 1))
                painter.setPen(QPen(theme.color("text"), 1.5, Qt.PenStyle.DashLine))
                painter.drawLine(x, 0, x, height)

    def event(self, event: QEvent) -> bool:
        """Describe the bar under the mouse."""
        if isinstance(event, QHelpEvent) and self._words:
            place = min(len(self._words) - 1, int(event.pos().x() * len(self._words) / max(1, self.width())))
            QToolTip.showText(event.globalPos(), self._words[max(0, place)], self)
            return True
        return super().event(event)
