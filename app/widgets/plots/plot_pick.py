"""Owns the choice of a point of a plot by a click: the point of a curve that is nearest on the screen."""

import numpy as np

from app.widgets.plots.plot_series import PlotSeries
from app.widgets.plots.plot_view import PlotView

REACH = 6
"""Pixels beside the click in which a spike is found."""


def nearest_point(
    series: PlotSeries, view: PlotView, x: float, y: float, logarithmic: bool = False
) -> tuple[float, float] | None:
    """The point of a curve nearest to a place of the plot, of those few pixels away the one at the click's height."""
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
