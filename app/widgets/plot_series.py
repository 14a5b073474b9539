"""Owns one curve of a live plot: its points, how it is drawn, and its items in the scene."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt
from PySide6.QtGui import QPen

from app import theme
from app.widgets.min_max_pyramid import Floats, MinMaxPyramid
from app.widgets.running_mean import RunningMean

MOST_RAW = 1600
MOST_SMOOTH = 800
MOST_DOTS = 120
"""More dots than these would only cover each other, and each costs more than a line."""
SMOOTHING = 0.03
"""A smoothed point is the mean of this share of what is visible."""
DASHES = (
    Qt.PenStyle.SolidLine,
    Qt.PenStyle.DashLine,
    Qt.PenStyle.DotLine,
    Qt.PenStyle.DashDotLine,
)


@dataclass(frozen=True)
class SeriesStyle:
    """`smoothed` draws the points thin and pale and their running mean strong; `markers` joins dots.

    `twin_of` is the key of another curve that this one is compared with: it is drawn dashed, without dots, of a smoothed
    one the mean alone, and its label says whose it is.
    """

    key: str
    label: str
    kind: Literal["line", "smoothed", "markers"] = "line"
    color_token: str = "plot_1"
    twin_of: str = ""
    dash: int = 0
    """A place in DASHES: of many curves those that share a colour differ in their line."""
    raw: bool = True
    """Whether a smoothed curve shows its points too."""


class PlotSeries:
    """x must not fall."""

    def __init__(self, style: SeriesStyle, plot: pg.PlotItem) -> None:
        self.style = style
        self.points = MinMaxPyramid()
        self._means = RunningMean()
        self.changed = False
        self.smoothing = SMOOTHING
        self.is_hidden = False
        self._line = pg.PlotCurveItem(connect="finite")
        self._strong = pg.PlotCurveItem(connect="finite", antialias=True)
        self._dots = pg.ScatterPlotItem(size=7, pxMode=True)
        self._strong.setZValue(2 if style.kind != "markers" else 3)
        self._dots.setZValue(4)
        for item in (self._line, self._strong, self._dots):
            plot.addItem(item, ignoreBounds=True)
        self._line.setVisible(style.kind == "line" or (style.kind == "smoothed" and style.raw and not style.twin_of))
        self._strong.setVisible(style.kind != "line")
        self._dots.hide()
        self.apply_theme()

    def __len__(self) -> int:
        return len(self.points)

    def apply_theme(self) -> None:
        """Pens of the present theme."""
        strong = theme.color(self.style.color_token)
        pale = theme.color(f"{self.style.color_token}_raw")
        dash = Qt.PenStyle.DashLine if self.style.twin_of else DASHES[self.style.dash % len(DASHES)]
        self._line.setPen(_pen(pale if self.style.kind == "smoothed" else strong, 1, dash))
        self._strong.setPen(_pen(strong, 2, dash))
        self._dots.setPen(None)
        self._dots.setBrush(strong)
        self.changed = True

    def append(self, xs: Floats, ys: Floats) -> None:
        """Add points at the end."""
        values = np.asarray(ys, np.float64)
        self.points.append(np.asarray(xs, np.float64), values)
        if self.style.kind == "smoothed":
            self._means.append(values)
        self.changed = True

    def truncate_after(self, x: float) -> None:
        """Drop every point beyond x."""
        self.points.truncate_after(x)
        self._means.truncate(len(self.points))
        self.changed = True

    def clear(self) -> None:
        """Forget every point."""
        self.points.clear()
        self._means.truncate(0)
        self.changed = True

    def set_visible(self, on: bool) -> None:
        """Show or hide the curve; its points stay."""
        shown = {self._line: self.style.kind == "line" or self.style.raw, self._strong: self.style.kind != "line"}
        for item, own in shown.items():
            item.setVisible(on and own)
        self._dots.setVisible(on and self.style.kind == "markers")
        self.is_hidden = not on
        self.changed = True

    def value_at(self, x: float) -> tuple[float, float] | None:
        """The point nearest to x, smoothed where the curve is, or None."""
        xs = self.points.xs
        if not len(xs):
            return None
        right = min(len(xs) - 1, int(np.searchsorted(xs, x)))
        index = right - 1 if right and x - xs[right - 1] < xs[right] - x else right
        return float(xs[index]), float(self.points.ys[index])

    def draw(self, first: float, last: float, logarithmic: bool) -> None:
        """Hand the scene what is visible between two x."""
        self.changed = False
        if self.style.kind == "smoothed":
            if self.style.raw:
                _set(self._line, *self.points.reduced(first, last, MOST_RAW), logarithmic)
            _set(self._strong, *self._smoothed(first, last), logarithmic)
        elif self.style.kind == "markers":
            xs, ys = self.points.reduced(first, last, MOST_SMOOTH)
            _set(self._strong, xs, ys, logarithmic)
            few = len(xs) <= MOST_DOTS and not self.style.twin_of
            shown = np.isfinite(ys) & ((ys > 0) | (not logarithmic)) & few
            self._dots.setVisible(bool(shown.any()) and not self.is_hidden)
            self._dots.setData(xs[shown], np.log10(ys[shown]) if logarithmic else ys[shown])
        else:
            _set(self._line, *self.points.reduced(first, last, MOST_RAW), logarithmic)

    def _smoothed(self, first: float, last: float) -> tuple[Floats, Floats]:
        xs = self.points.xs
        begin = max(0, int(np.searchsorted(xs, first)) - 1)
        end = min(len(xs), int(np.searchsorted(xs, last, side="right")) + 1)
        if end - begin < 2:
            return xs[begin:end].copy(), self.points.ys[begin:end].copy()
        indices = np.unique(np.linspace(begin, end - 1, min(MOST_SMOOTH, end - begin)).astype(np.intp))
        window = max(5, round((end - begin) * self.smoothing))
        return xs[indices].copy(), self._means.at(indices, window)


def _pen(color: object, width: int, dash: Qt.PenStyle) -> QPen:
    pen = pg.mkPen(color, width=width, style=dash)
    pen.setCosmetic(True)
    return pen


def _set(item: pg.PlotCurveItem, xs: Floats, ys: Floats, logarithmic: bool) -> None:
    if logarithmic:
        ys = np.log10(ys, out=np.full(len(ys), np.nan), where=ys > 0)
    item.setData(xs, ys, connect="all" if np.isfinite(ys).all() else "finite")
