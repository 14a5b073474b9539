"""One curve of a live plot: its points, style and smoothing, and its items in the scene."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt
from PySide6.QtGui import QPen

from app import theme
from app.widgets.plots.min_max_pyramid import Floats, MinMaxPyramid

MAX_RAW = 1600
MAX_SMOOTH = 800
MAX_DOTS = 120
"""More dots than these would only cover each other, and each costs more than a line."""
SMOOTHING = 0.03
"""A smoothed point is the mean of this share of what is visible, unless another is chosen."""
LEAST_SMOOTHING = 0.01
"""A curve that is only compared with is never raw: two noisy lines hide each other."""
THIN = 400
"""Lines of less detail are one among many and drawn thin, which takes a fifth of the time."""
DASHES = (
    Qt.PenStyle.SolidLine,
    Qt.PenStyle.DashLine,
    Qt.PenStyle.DotLine,
    Qt.PenStyle.DashDotLine,
)
DASH_SIGNS = ("━", "╍", "┅", "╺")
"""How a legend writes them."""
DOTS = {"plot_1": ("o", "●"), "plot_2": ("s", "■"), "plot_3": ("d", "◆"), "plot_4": ("t", "▼"), "plot_5": ("star", "★")}
"""Colour → the shape of its dots, and its symbol in a legend, so that color is not needed to tell lines apart."""


@dataclass(frozen=True)
class SeriesStyle:
    """`smoothed` draws the points thin and pale and their running mean strong; `markers` connects dots.

    `twin_of` is the key of the curve that this one is compared with: it is drawn dashed, without dots and, if smoothed,
    only as its mean, and its label says whose it is.
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
    faint: bool = False
    """Whether it is one of several whose mean is what matters."""
    detail: int = MAX_SMOOTH
    """Maximum number of points drawn per line: more cost time and make no visible difference."""

    @property
    def own_color(self) -> str:
        """The token of the colour in which it is drawn."""
        return f"{self.color_token}_raw" if self.faint else self.color_token

    @property
    def sign(self) -> str:
        """The curve's legend symbol: the shape of its dots or its dashes."""
        if self.kind == "markers" and not self.twin_of and self.color_token in DOTS:
            return DOTS[self.color_token][1]
        return DASH_SIGNS[self.dash % len(DASH_SIGNS)]


class PlotSeries:
    """x must not decrease."""

    def __init__(self, style: SeriesStyle, plot: pg.PlotItem) -> None:
        self.style = style
        self.points = MinMaxPyramid()
        self._means = RunningMean()
        self._window = 1
        self.smoothing = SMOOTHING
        self.breaks: list[float] = []
        """x after which the line is broken."""
        self.is_hidden = self.changed = False
        self._line = pg.PlotCurveItem(connect="finite")
        self._strong = pg.PlotCurveItem(connect="finite", antialias=True)
        self._dots = pg.ScatterPlotItem(size=8, pxMode=True, symbol=DOTS.get(style.color_token, DOTS["plot_1"])[0])
        self._strong.setZValue(2 if style.kind != "markers" else 3)
        self._dots.setZValue(4)
        for item in (self._line, self._strong, self._dots):
            plot.addItem(item, ignoreBounds=True)
        self._dots.hide()
        self.apply_theme()

    def __len__(self) -> int:
        return len(self.points)

    def apply_theme(self) -> None:
        """Update the pens for the current theme."""
        pale = theme.color(f"{self.style.color_token}_raw")
        strong = theme.color(self.style.own_color)
        dash = Qt.PenStyle.DashLine if self.style.twin_of else DASHES[self.style.dash % len(DASHES)]
        self._line.setPen(_pen(pale if self._is_smooth else strong, 1, dash))
        self._strong.setPen(_pen(strong, 1 if self.style.detail < THIN or self.style.faint else 2, dash))
        self._dots.setPen(None)
        self._dots.setBrush(strong)
        drawn = not self.is_hidden
        self._line.setVisible(drawn and self.style.kind != "markers" and not (self._is_smooth and self._has_mean_alone))
        self._strong.setVisible(drawn and (self.style.kind == "markers" or self._is_smooth))
        self._dots.setVisible(drawn and self._dots.isVisible())
        self.changed = True

    @property
    def _has_mean_alone(self) -> bool:
        return bool(self.style.twin_of) or not self.style.raw

    def set_hidden(self, hidden: bool) -> None:
        """Hide or show the curve; its points are kept."""
        self.is_hidden = hidden
        self.apply_theme()

    @property
    def _is_smooth(self) -> bool:
        return self.style.kind == "smoothed" and bool(self.smoothing or self.style.twin_of)

    def set_smoothing(self, share: float) -> None:
        """Set the share of the visible range over which the curve is averaged; 0 draws the points themselves."""
        self.smoothing = share
        self.apply_theme()

    def set_breaks(self, breaks: list[float]) -> None:
        """Break the line after these x."""
        self.changed = self.changed or breaks != self.breaks
        self.breaks = breaks

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

    def value_at(self, x: float) -> tuple[float, float] | None:
        """The point nearest to x, or None."""
        index = self._nearest(x)
        return None if index is None else (float(self.points.xs[index]), float(self.points.ys[index]))

    def mean_at(self, x: float) -> float | None:
        """The smoothed line's value there; None if the points themselves are drawn."""
        index = self._nearest(x)
        if index is None or not self._is_smooth:
            return None
        return float(self._means.at(np.array([index]), self._window)[0])

    def _nearest(self, x: float) -> int | None:
        xs = self.points.xs
        if not len(xs) or self._is_between(x):
            return None
        right = min(len(xs) - 1, int(np.searchsorted(xs, x)))
        return right - 1 if right and x - xs[right - 1] < xs[right] - x else right

    def _is_between(self, x: float) -> bool:
        """Whether x is in a gap: a value from either side would be made up."""
        xs = self.points.xs
        after = (int(np.searchsorted(xs, place, side="right")) for place in self.breaks if place < x)
        return any(index < len(xs) and x < xs[index] for index in after)

    def draw(self, first: float, last: float, logarithmic: bool) -> None:
        """Update the scene with what is visible between two x."""
        self.changed = False
        if self.style.kind != "markers":
            self._draw_alone(logarithmic)
        if self._is_smooth:
            if not self._has_mean_alone:
                self._set(self._line, *self.points.reduce(first, last, MAX_RAW), logarithmic)
            self._set(self._strong, *self._smooth(first, last), logarithmic)
        elif self.style.kind == "markers":
            xs, ys = self.points.reduce(first, last, self.style.detail)
            self._set(self._strong, xs, ys, logarithmic)
            few = len(xs) <= MAX_DOTS and not self.style.twin_of
            drawn = np.isfinite(ys) & ((ys > 0) | (not logarithmic)) & few
            self._dots.setVisible(bool(drawn.any()) and not self.is_hidden)
            self._dots.setData(xs[drawn], np.log10(ys[drawn]) if logarithmic else ys[drawn])
        else:
            self._set(self._line, *self.points.reduce(first, last, min(MAX_RAW, 2 * self.style.detail)), logarithmic)

    def _draw_alone(self, logarithmic: bool) -> None:
        """Draw a single point as a dot, because a line needs two."""
        xs, ys = self.points.xs, self.points.ys
        is_alone = len(xs) == 1 and bool(np.isfinite(ys[0])) and (ys[0] > 0 or not logarithmic)
        self._dots.setVisible(is_alone and not self.is_hidden)
        if is_alone:
            self._dots.setData(xs.copy(), np.log10(ys) if logarithmic else ys.copy())

    def _smooth(self, first: float, last: float) -> tuple[Floats, Floats]:
        xs = self.points.xs
        begin = max(0, int(np.searchsorted(xs, first)) - 1)
        end = min(len(xs), int(np.searchsorted(xs, last, side="right")) + 1)
        if end - begin < 2:
            return xs[begin:end].copy(), self.points.ys[begin:end].copy()
        indices = np.unique(np.linspace(begin, end - 1, min(self.style.detail, end - begin)).astype(np.intp))
        share = max(self.smoothing, LEAST_SMOOTHING) if self.style.twin_of else self.smoothing
        self._window = max(5, round((end - begin) * share))
        return xs[indices].copy(), self._means.at(indices, self._window)

    def _set(self, item: pg.PlotCurveItem, xs: Floats, ys: Floats, logarithmic: bool) -> None:
        if logarithmic:
            ys = np.log10(ys, out=np.full(len(ys), np.nan), where=ys > 0)
        xs, ys = _broken(xs, ys, self.breaks)
        item.setData(xs, ys, connect="all" if np.isfinite(ys).all() else "finite")


def _pen(color: object, width: int, dash: Qt.PenStyle) -> QPen:
    pen = pg.mkPen(color, width=width, style=dash)
    pen.setCosmetic(True)
    return pen


def _broken(xs: Floats, ys: Floats, breaks: list[float]) -> tuple[Floats, Floats]:
    places = np.searchsorted(xs, breaks, side="right") if breaks else np.zeros(0, np.intp)
    places = places[(places > 0) & (places < len(xs))]
    if not len(places):
        return xs, ys
    return np.insert(xs, places, xs[places]), np.insert(ys, places, np.nan)


class RunningMean:
    """Means over a window of neighbours; NaN is skipped. Appending n points costs O(n), a mean costs O(1)."""

    def __init__(self) -> None:
        self._count = 0
        self._sums = np.zeros((2, 64), np.float64)  # (sum of values, number of values) before each index

    def __len__(self) -> int:
        return self._count

    def append(self, ys: Floats) -> None:
        """Add values at the end."""
        needed = self._count + len(ys) + 1
        if needed > self._sums.shape[1]:
            grown = np.zeros((2, max(needed, 2 * self._sums.shape[1])), np.float64)
            grown[:, : self._count + 1] = self._sums[:, : self._count + 1]
            self._sums = grown
        finite = np.isfinite(ys)
        fresh = np.cumsum([np.where(finite, ys, 0.0), finite], axis=1)
        self._sums[:, self._count + 1 : needed] = self._sums[:, self._count : self._count + 1] + fresh
        self._count = needed - 1

    def truncate(self, count: int) -> None:
        """Keep the first `count` values."""
        self._count = min(self._count, count)

    def at(self, indices: np.ndarray, window: int) -> Floats:
        """The mean of `window` values around each index, fewer at the ends; NaN if there is none."""
        half = max(0, window // 2)
        low = np.maximum(indices - half, 0)
        high = np.minimum(indices + half + 1, self._count)
        sums = self._sums[:, high] - self._sums[:, low]
        return np.divide(sums[0], sums[1], out=np.full(len(indices), np.nan), where=sums[1] > 0)
