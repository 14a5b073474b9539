"""The reliability diagram: accuracy by confidence."""

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from app import theme
from app.core.i18n import tr, trn
from app.widgets.accessibility import Role
from app.widgets.plots.plot_frame import HoverPlot, UnitSquareAxes
from backend.contract.rpc.predictions import ReliabilityBin

HEIGHT = 250
COUNTS = 0.24
"""Of the height, for the bars of counts above the diagram."""
TICKS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


class ReliabilityDiagram(HoverPlot):
    """One bar per bin, its accuracy against the diagonal, with the number of rows above. A click selects a bin."""

    spoken_role = Role.Chart

    bin_chosen = Signal(float, float)
    """Bounds of the confidence; both 0 when the choice is taken back."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._bins: Sequence[ReliabilityBin] = ()
        self._chosen: int | None = None
        self._frame = UnitSquareAxes()
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(tr("Reliability diagram, accuracy by confidence"))
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def show_bins(self, bins: Sequence[ReliabilityBin]) -> None:
        """Show other bins."""
        self._bins, self._hovered, self._chosen = bins, None, None
        self.setAccessibleDescription("; ".join(self.words_of(place) for place, one in enumerate(bins) if one.count))
        self.update()

    def show_chosen(self, bounds: tuple[float, float] | None) -> None:
        """Mark a bin, or none; emits nothing."""
        found = [place for place, one in enumerate(self._bins) if bounds == (one.low, one.high)]
        self._chosen = found[0] if found else None
        self.update()

    def sizeHint(self) -> QSize:
        """Large enough to read at a glance."""
        return QSize(300, HEIGHT)

    def box_of(self, place: int) -> QRectF:
        """The column of a bin, including its count."""
        self._fit()
        one = self._bins[place]
        left, right = self._frame.point(one.low, 0).x(), self._frame.point(one.high, 0).x()
        return QRectF(left, 0, right - left, self._frame.area.bottom())

    def _fit(self) -> None:
        self._frame.fit(self.width(), self.height())
        self._frame.area.setTop(self._frame.area.top() + COUNTS * self._frame.area.height())

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint counts, frame, bars from zero to the accuracy, and the gap to the diagonal."""
        self._fit()
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            self._frame.paint(painter, (tr("Confidence"), tr("Accuracy")), TICKS)
            most = max((one.count for one in self._bins), default=0)
            for place, one in enumerate(self._bins):
                if one.count:
                    self._paint_bin(painter, place, one, one.count / most)

    def _paint_bin(self, painter: QPainter, place: int, one: ReliabilityBin, share: float) -> None:
        accuracy, confidence = one.accuracy or 0.0, one.confidence or 0.0
        box = self.box_of(place).adjusted(1.5, 0, -1.5, 0)
        floor, top = self._frame.area.bottom(), self._frame.point(0, accuracy).y()
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color("accent" if place in (self._hovered, self._chosen) else "plot_1_raw"))
        painter.drawRect(QRectF(box.left(), top, box.width(), floor - top))
        sure = self._frame.point(0, confidence).y()
        gap = theme.color("warning")
        gap.setAlphaF(0.35)
        painter.setBrush(gap)
        painter.drawRect(QRectF(box.left(), min(sure, top), box.width(), abs(sure - top)))
        painter.setPen(QPen(theme.color("accent_text"), 2))
        painter.drawLine(QPointF(box.left(), top), QPointF(box.right(), top))
        if one.interval is not None:
            self._paint_interval(painter, box.center().x(), one.interval)
        room = COUNTS * self._frame.area.height() / (1 - COUNTS) - 10
        high = max(2.0, room * share)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color("border_strong"))
        painter.drawRect(QRectF(box.left(), self._frame.area.top() - 8 - high, box.width(), high))

    def _paint_interval(self, painter: QPainter, x: float, interval: tuple[float, float]) -> None:
        low, high = (self._frame.point(0, end).y() for end in interval)
        painter.setPen(QPen(theme.color("text"), 1.2))
        painter.drawLine(QPointF(x, low), QPointF(x, high))
        for y in (low, high):
            painter.drawLine(QPointF(x - 3, y), QPointF(x + 3, y))

    # Mouse and keys

    def part_at(self, place: QPointF) -> int | None:
        """The non-empty bin whose column is at a position."""
        self._fit()
        found = [
            number for number, one in enumerate(self._bins)
            if one.count and self.box_of(number).left() <= place.x() < self.box_of(number).right()
        ]  # fmt: skip
        return found[0] if found else None

    def words_of(self, part: int) -> str:
        """`1,204 rows with confidence 0.8 to 0.9: 84.1% right, 86.0% expected`."""
        one = self._bins[part]
        rows = trn("{count} row", "{count} rows", one.count)
        return tr(
            "{rows} with confidence {low:.1f} to {high:.1f}: {accuracy:.1%} correct, {confidence:.1%} expected",
            rows=rows,
            low=one.low,
            high=one.high,
            accuracy=one.accuracy,
            confidence=one.confidence,
        )

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Select a bin; clicking it again clears the selection."""
        place = self.part_at(event.position())
        if place is not None:
            self._choose(place)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Arrows move, Enter selects, Escape clears the selection."""
        filled = [place for place, one in enumerate(self._bins) if one.count]
        moves = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}
        key = Qt.Key(event.key())
        present = self._hovered if self._hovered is not None else self._chosen
        if key in moves and filled:
            at = filled.index(present) + moves[key] if present in filled else 0
            self._hovered = filled[min(len(filled) - 1, max(0, at))]
            self.update()
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space) and self._hovered is not None:
            self._choose(self._hovered)
        elif key == Qt.Key.Key_Escape and self._chosen is not None:
            self._choose(self._chosen)
        else:
            super().keyPressEvent(event)

    def _choose(self, place: int) -> None:
        self._chosen = None if place == self._chosen else place
        self.update()
        one = self._bins[place]
        self.bin_chosen.emit(*((0.0, 0.0) if self._chosen is None else (one.low, one.high)))
