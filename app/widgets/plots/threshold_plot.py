"""A plot of scores against the threshold, with a line at the current threshold."""

from collections.abc import Mapping, Sequence

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QMouseEvent, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QSizePolicy, QWidget

from app import theme
from app.core.i18n import figure, tr
from app.widgets.accessibility import Role
from app.widgets.plots.plot_frame import UnitSquareAxes

HEIGHT = 190
TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)
STYLES = {
    tr("Precision"): ("plot_1", Qt.PenStyle.SolidLine),
    tr("Recall"): ("plot_2", Qt.PenStyle.DashLine),
    "F1": ("plot_3", Qt.PenStyle.DotLine),
}
"""Lines differ in more than their colour."""


class ThresholdPlot(QWidget):
    """Pressing or dragging moves the threshold."""

    spoken_role = Role.Chart

    moved = Signal(float)
    """The threshold under the mouse, from 0 to 1."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._curves: Mapping[str, Sequence[tuple[float, float]]] = {}
        self._threshold = 0.5
        self._frame = UnitSquareAxes()
        self.setAccessibleName(tr("Precision, recall and F1 by threshold"))
        self.setCursor(Qt.CursorShape.SplitHCursor)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def show_curves(self, curves: Mapping[str, Sequence[tuple[float, float]]]) -> None:
        """Show `Precision`, `Recall` and `F1` as (threshold, score)."""
        self._curves = curves
        self._update_description()
        self.update()

    def show_threshold(self, threshold: float) -> None:
        """Move the line."""
        self._threshold = threshold
        self._update_description()
        self.update()

    def _update_description(self) -> None:
        """Show the scores at the line."""
        at = [
            f"{name} {figure(min(points, key=lambda one: abs(one[0] - self._threshold))[1], '.3f')}"
            for name, points in self._curves.items()
            if points
        ]
        self.setAccessibleDescription(", ".join([f"{tr('Threshold')} {figure(self._threshold, '.3f')}", *at]))

    def sizeHint(self) -> QSize:
        """Low: the numbers are below."""
        return QSize(300, HEIGHT)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint frame, curves, their names, and the line."""
        self._frame.fit(self.width(), self.height())
        self._frame.area.setTop(self._frame.area.top() + 16)
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            self._frame.paint(painter, (tr("Threshold"), tr("Score")), TICKS, diagonal=False)
            left = self._frame.area.left()
            for name, points in self._curves.items():
                token, style = STYLES[name]
                painter.setPen(QPen(theme.color(token), 2, style))
                painter.drawPolyline(QPolygonF([self._frame.point(*one) for one in points]))
                painter.drawLine(QPointF(left, 9), QPointF(left + 18, 9))
                painter.setPen(theme.color("muted"))
                painter.setFont(theme.font(11))
                painter.drawText(QRectF(left + 23, 0, 70, 18), Qt.AlignmentFlag.AlignVCenter, name)
                left += 88
            painter.setPen(QPen(theme.color("text"), 1.5))
            at = self._frame.point(self._threshold, 0)
            painter.drawLine(QPointF(at.x(), self._frame.area.top()), at)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Move the threshold here."""
        self.moved.emit(self._frame.value_at(event.position().x()))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Follow the mouse."""
        if event.buttons() & Qt.MouseButton.LeftButton:
            self.moved.emit(self._frame.value_at(event.position().x()))
