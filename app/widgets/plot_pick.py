"""Owns the choice of a point of a plot by a click: the point of a curve that is nearest on the screen, and its mark."""

from collections.abc import Callable

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QObject, Qt, Signal

from app import theme
from app.widgets.plot_series import PlotSeries
from app.widgets.plot_view import PlotView

REACH = 6
"""Pixels beside the click in which a spike is found."""


class PlotPick(QObject):
    """Listens to clicks on a plot; `series_of` gives the curve whose points are meant, and whether y is a logarithm."""

    picked = Signal(float)
    """The x of the point that was clicked."""

    def __init__(
        self, plot: pg.PlotItem, view: PlotView, series_of: Callable[[], tuple[PlotSeries, bool]], parent: QObject
    ) -> None:
        super().__init__(parent)
        self._view, self._series_of = view, series_of
        self.pin = pg.InfiniteLine(angle=90, movable=False)
        self.pin.hide()
        plot.addItem(self.pin, ignoreBounds=True)
        plot.scene().sigMouseClicked.connect(self._on_clicked)  # type: ignore[attr-defined]

    def set_pin(self, x: float | None) -> None:
        """A line at a place that was picked; None takes it away."""
        self.pin.setVisible(x is not None)
        if x is not None:
            self.pin.setPos(x)

    def apply_theme(self) -> None:
        """The line in the present colours."""
        self.pin.setPen(pg.mkPen(theme.color("accent"), width=1.5))

    def _on_clicked(self, event) -> None:
        series, logarithmic = self._series_of()
        if event.button() == Qt.MouseButton.LeftButton and not event.double() and len(series):
            place = self._view.mapSceneToView(event.scenePos())
            if point := nearest_point(series, self._view, place.x(), place.y(), logarithmic):
                self.picked.emit(point[0])


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
