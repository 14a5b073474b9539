"""Parallel coordinates: one line per trial over an axis for each setting and one for the metric."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Protocol

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QMouseEvent, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QSizePolicy, QWidget

from app import theme
from app.core.i18n import tr, trn
from app.widgets.accessibility import Role
from app.widgets.plots.plot_frame import HoverPlot

MARGIN, TOP, BOTTOM = 64, 30, 12
NEAR = 8
"""Pixels from a line within which it is meant."""


class AxisLike(Protocol):
    """See `app.core.runs.search_trials.Axis`."""

    @property
    def title(self) -> str: ...
    @property
    def places(self) -> tuple[float | None, ...]: ...
    @property
    def ticks(self) -> tuple[tuple[float, str], ...]: ...


class ParallelCoordinates(HoverPlot):
    """The first line is the best trial, and stands out; a click on a line chooses it."""

    spoken_role = Role.Chart

    line_chosen = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        theme.follow(self)
        self._axes: Sequence[AxisLike] = ()
        self._words: Sequence[str] = ()
        self._best: int | None = None
        self.setMinimumHeight(170)
        self.setAccessibleName(tr("Settings and results of all trials"))
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)

    def show_lines(self, axes: Sequence[AxisLike], words: Sequence[str], best: int | None) -> None:
        """Show other trials; `words` describe each, and `best` is the number of the best line."""
        self._axes, self._words, self._best = axes, words, best
        self._hovered = None
        self.setAccessibleDescription("; ".join([trn("{count} trial", "{count} trials", len(words)), *words[:10]]))
        self.update()

    def sizeHint(self) -> QSize:
        """Wider than high."""
        return QSize(640, 240)

    def apply_theme(self) -> None:
        """Nothing to update: colours are read at every paint."""
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the axes, then the lines, the best and the one under the mouse last."""
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            for number in range(len(self._axes)):
                self._paint_axis(painter, number)
            faint = theme.color("plot_1")
            faint.setAlphaF(0.45 if len(self._words) < 50 else 0.2)
            for line in range(len(self._words)):
                if line not in (self._best, self._hovered):
                    self._paint_line(painter, line, QPen(faint, 1.5))
            if self._best is not None:
                self._paint_line(painter, self._best, QPen(theme.color("accent"), 3))
            if self._hovered is not None:
                self._paint_line(painter, self._hovered, QPen(theme.color("plot_2"), 3))
            for number in range(len(self._axes)):
                self._paint_ticks(painter, number)

    def _paint_axis(self, painter: QPainter, number: int) -> None:
        axis, x = self._axes[number], self._x(number)
        painter.setPen(QPen(theme.color("control"), 1))
        painter.drawLine(QPointF(x, self._y(0)), QPointF(x, self._y(1)))
        painter.setFont(theme.font(11))
        metrics, room = painter.fontMetrics(), self._room()
        painter.setPen(theme.color("text"))
        title = metrics.elidedText(axis.title, Qt.TextElideMode.ElideRight, int(room - 8))
        painter.drawText(QRectF(x - room / 2, 2, room, 18), Qt.AlignmentFlag.AlignHCenter, title)

    def _paint_ticks(self, painter: QPainter, number: int) -> None:
        """Above the lines, which would cross the labels out."""
        axis, x, room = self._axes[number], self._x(number), self._room()
        metrics = painter.fontMetrics()
        ground = theme.color("card")
        ground.setAlphaF(0.75)
        is_last = number == len(self._axes) - 1
        for place, text in axis.ticks:
            y = self._y(place)
            painter.setPen(theme.color("muted"))
            painter.drawLine(QPointF(x - 3, y), QPointF(x + 3, y))
            words = metrics.elidedText(text, Qt.TextElideMode.ElideRight, int(room / 2))
            width = metrics.horizontalAdvance(words)
            beside = QRectF(x - width - 10 if is_last else x + 6, y - 9, width + 4, 18)
            painter.fillRect(beside, ground)
            painter.drawText(beside, Qt.AlignmentFlag.AlignCenter, words)

    def _paint_line(self, painter: QPainter, line: int, pen: QPen) -> None:
        painter.setPen(pen)
        painter.drawPolyline(QPolygonF(self.points_of(line)))

    def points_of(self, line: int) -> list[QPointF]:
        """Where a trial crosses the axes; without those on which it has no value."""
        crossed = [(number, axis.places[line]) for number, axis in enumerate(self._axes)]
        return [QPointF(self._x(number), self._y(place)) for number, place in crossed if place is not None]

    def _room(self) -> float:
        return (self.width() - 2 * MARGIN) / max(1, len(self._axes) - 1)

    def _x(self, number: int) -> float:
        return MARGIN + number * self._room() if len(self._axes) > 1 else self.width() / 2

    def _y(self, place: float) -> float:
        return self.height() - BOTTOM - place * (self.height() - TOP - BOTTOM)

    def part_at(self, place: QPointF) -> int | None:
        """The nearest line at a position, if it is close."""
        near = [(away, line) for line in range(len(self._words)) if (away := self._distance(line, place)) <= NEAR]
        return min(near)[1] if near else None

    def _distance(self, line: int, place: QPointF) -> float:
        points = self.points_of(line)
        for before, after in pairwise(points):
            if before.x() <= place.x() <= after.x():
                share = (place.x() - before.x()) / ((after.x() - before.x()) or 1.0)
                return abs(before.y() + share * (after.y() - before.y()) - place.y())
        return float("inf")

    def words_of(self, part: int) -> str:
        """What the trial is and reached."""
        return self._words[part]

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Choose the trial of a line."""
        found = self.part_at(event.position())
        if found is not None:
            self.line_chosen.emit(found)
