"""A scatter plot of predicted against actual numbers; they are equal on the diagonal."""

from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import QPointF, QSize, Qt, Signal
from PySide6.QtGui import QMouseEvent, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QSizePolicy, QWidget

from app import theme
from app.core.i18n import tr
from app.widgets.accessibility import Role
from app.widgets.plots.plot_frame import HoverPlot, UnitSquareAxes, ticks_between
from backend.contract.rpc.predictions import NumberPoint

NEAR = 10
"""Pixels from a dot within which it is meant."""


class ScatterPlot(HoverPlot):
    """A click on a dot selects its row."""

    spoken_role = Role.Chart

    row_chosen = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._points: Sequence[NumberPoint] = ()
        self._numbers = np.zeros((0, 2))  # (dots, actual and predicted)
        self._frame = UnitSquareAxes()
        self.setMinimumHeight(180)
        self.setAccessibleName(tr("Predicted vs. actual values"))
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)

    def show_points(self, points: Sequence[NumberPoint], low: float, high: float) -> None:
        """Show these points, on axes from the minimum to the maximum."""
        room = (high - low) * 0.04 or 1.0
        self._points, self._hovered = points, None
        self._numbers = np.array([(one.actual, one.predicted) for one in points]).reshape(-1, 2)
        self._frame = UnitSquareAxes(low - room, high + room)
        self.setAccessibleDescription(
            tr("{number} points between {low:.4g} and {high:.4g}", number=len(points), low=low, high=high)
        )
        self.update()

    def sizeHint(self) -> QSize:
        """Roughly square."""
        return QSize(320, 320)

    def place_of(self, number: int) -> QPointF:
        """The position of a dot."""
        self._frame.fit(self.width(), self.height())
        return self._frame.point(*self._numbers[number])

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint frame and dots; the one under the mouse is larger."""
        self._frame.fit(self.width(), self.height())
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            ticks = ticks_between(self._frame.low, self._frame.high)
            self._frame.paint(painter, (tr("Actual"), tr("Predicted")), ticks)
            ink = theme.color("accent")
            ink.setAlphaF(0.55 if len(self._points) < 500 else 0.3)
            painter.setPen(QPen(ink, 5, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
            painter.drawPoints(QPolygonF([self._frame.point(*one) for one in self._numbers]))
            if self._hovered is not None:
                painter.setPen(QPen(theme.color("danger"), 9, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
                painter.drawPoint(self.place_of(self._hovered))

    def part_at(self, place: QPointF) -> int | None:
        """The dot nearest to a position, if it is close."""
        if not len(self._points):
            return None
        origin, unit = self._frame.point(0, 0), self._frame.point(1, 1)
        scale = np.array([unit.x() - origin.x(), unit.y() - origin.y()])
        away = self._numbers * scale + (origin.x() - place.x(), origin.y() - place.y())
        distance = np.square(away).sum(axis=1)
        nearest = int(distance.argmin())
        return nearest if distance[nearest] <= NEAR**2 else None

    def words_of(self, part: int) -> str:
        """`Row 12: predicted 4.2, actual 5`."""
        point = self._points[part]
        return tr(
            "Row {row:,}: predicted {predicted:.4g}, actual {actual:.4g}",
            row=point.row + 1,
            predicted=point.predicted,
            actual=point.actual,
        )

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Select the row of a dot."""
        found = self.part_at(event.position())
        if found is not None:
            self.row_chosen.emit(self._points[found].row)
