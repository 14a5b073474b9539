"""The view box of a live plot, which zooms and pans, and the point that a click selects."""

import math

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt

from app import theme
from app.widgets.plots.plot_series import PlotSeries

ZOOM = 0.8
"""How much of a range is left after zooming in once."""
STEP = 0.1
"""The share of a range by which it moves once."""
DECADES_BELOW = 3
"""What a logarithmic view shows below its highest value where the lowest has no logarithm."""
LARGEST_POWER = 300


class PlotView(pg.ViewBox):
    """Dragging zooms into a rectangle; with Shift, or with the middle button, it pans.

    The wheel scrolls the surrounding page; with Ctrl it zooms.
    """

    def __init__(self) -> None:
        super().__init__(enableMenu=False, defaultPadding=0)
        self.setMouseMode(pg.ViewBox.RectMode)

    def wheelEvent(self, ev, axis=None) -> None:
        """Ignored without Ctrl, so that the page scrolls."""
        if ev.modifiers() & Qt.KeyboardModifier.ControlModifier:
            super().wheelEvent(ev, axis)
        else:
            ev.ignore()

    def mouseDragEvent(self, ev, axis=None) -> None:
        """Zoom or pan, depending on how the drag started."""
        if ev.button() == Qt.MouseButton.RightButton:
            ev.ignore()
            return
        if ev.isStart():
            shift = bool(ev.modifiers() & Qt.KeyboardModifier.ShiftModifier)
            moves = shift or ev.button() == Qt.MouseButton.MiddleButton
            self.state["mouseMode"] = pg.ViewBox.PanMode if moves else pg.ViewBox.RectMode
        super().mouseDragEvent(ev, axis)
        if ev.isFinish():
            self.state["mouseMode"] = pg.ViewBox.RectMode

    def zoom(self, center: float, closer: bool) -> None:
        """Zoom x in or out around a position."""
        left, right = self.viewRange()[0]
        factor = ZOOM if closer else 1 / ZOOM
        self.setXRange(center - (center - left) * factor, center + (right - center) * factor, padding=0)
        self.sigRangeChangedManually.emit([True, False])

    def move(self, share: float) -> None:
        """Pan by a share of the visible range."""
        left, right = self.viewRange()[0]
        self.translateBy(x=(right - left) * share)
        self.sigRangeChangedManually.emit([True, False])

    def heights(self, logarithmic: bool) -> tuple[float, float]:
        """The heights of the lowest and highest visible value on the other scale."""
        low, high = self.viewRange()[1]
        if logarithmic:
            high = math.log10(high) if high > 0 else 0.0
            return math.log10(low) if low > 0 else high - DECADES_BELOW, high
        low, high = (10.0 ** max(-LARGEST_POWER, min(LARGEST_POWER, value)) for value in (low, high))
        return low, high

    def apply_theme(self) -> None:
        """The zoom rectangle in the accent colour."""
        accent = theme.color("accent")
        self.rbScaleBox.setPen(pg.mkPen(accent))
        accent.setAlpha(40)
        self.rbScaleBox.setBrush(accent)


REACH = 6
"""Pixels beside the click in which a spike is found."""


def nearest_point(
    series: PlotSeries, view: PlotView, x: float, y: float, logarithmic: bool = False
) -> tuple[float, float] | None:
    """The point of a curve nearest to a position; among those a few pixels away, the one at the click's height."""
    xs, ys = series.points.xs, series.points.ys
    if not len(xs):
        return None
    pixel_x, pixel_y = view.viewPixelSize()
    first, after = np.searchsorted(xs, [x - REACH * pixel_x, x + REACH * pixel_x])
    if first == after:
        return series.value_at(x)
    with np.errstate(divide="ignore", invalid="ignore"):
        heights = np.log10(ys[first:after]) if logarithmic else ys[first:after]
    away = ((xs[first:after] - x) / pixel_x) ** 2 + ((heights - y) / pixel_y) ** 2
    place = first + int(np.argmin(np.where(np.isnan(away), np.inf, away)))
    return float(xs[place]), float(ys[place])
