"""The live plot: a card with growing curves, redrawn by a timer and never per event."""

import time
import weakref
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
import pyqtgraph as pg
import shiboken6
from PySide6.QtCore import QObject, QRectF, Qt, QTimer, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app import theme
from app.core.i18n import tr
from app.widgets.accessibility import Role
from app.widgets.card import Card, label
from app.widgets.icon_label import IconToolButton
from app.widgets.plots import plot_legend
from app.widgets.plots.min_max_pyramid import Floats
from app.widgets.plots.plot_axis import Kind, PlotAxis
from app.widgets.plots.plot_crosshair import PlotCrosshair, short_number
from app.widgets.plots.plot_export import PlotMenu, PlotPicture
from app.widgets.plots.plot_legend import Legend
from app.widgets.plots.plot_marks import Mark, PlotMarks
from app.widgets.plots.plot_series import PlotSeries, SeriesStyle
from app.widgets.plots.plot_view import PlotView, nearest_point

__all__ = ["LivePlot", "SeriesStyle", "short_number"]
HEADROOM = 0.03
ALONE = 0.5
"""What is shown at either side of a point that is the only one."""
LEAST_HEIGHT = 0.01
"""Of its values, what a plot shows at least: numbers on a finer axis would have more digits than there is room for."""
ABOVE_AXIS = 6
"""Pixels between the axis and the middle of a tick."""


class _Canvas(pg.PlotWidget):
    spoken_role = Role.Chart


class LivePlot(Card):
    """Curves over a shared x, for example training steps. Drag to zoom, double-click to reset the view.

    Keyboard: arrows move the crosshair, + and - zoom around it, Shift with arrows moves the view, Home resets it.
    """

    hovered = Signal(object)
    """The x under the cross-hair, or None; other plots follow it with `show_hover`."""
    message = Signal(str, str)

    picked = Signal(float)
    """The x of the first curve's point that was clicked."""

    def __init__(self, title: str, series: Sequence[SeriesStyle], x_label: str = "step", parent: QWidget | None = None):
        super().__init__(title, parent)
        theme.follow(self)
        self._zoomed = self._logarithmic = False
        self._grid_missing = True
        self._legend = Legend()
        self._log = IconToolButton("chart", tr("Log scale (values of zero or less are not shown)"))
        self._log.setCheckable(True)
        self._log.toggled.connect(self.set_logarithmic)
        self.saving = PlotMenu(self, self._picture, self._table, self.show_all)
        self.saving.message.connect(self.message)
        for widget in (self._legend, self._log, self.saving.button):
            self.corner.addWidget(widget)
        self._view = PlotView()
        self._axes = {side: PlotAxis(side) for side in ("bottom", "left")}
        self._widget = _Canvas(viewBox=self._view, background=theme.hex_color("card"), axisItems=self._axes)
        self._plot: pg.PlotItem = self._widget.getPlotItem()  # type: ignore[assignment]
        # The axis' own grid costs half of every paint; a few lines of our own cost nothing.
        self._grid = pg.PlotCurveItem(connect="pairs")
        self._grid.setZValue(-10)
        self._plot.addItem(self._grid, ignoreBounds=True)
        self._nothing = label(tr("No data yet"), "faint")
        self._nothing.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._arrange()
        # Made from the last to the first: what is added later lies above, and the first curve matters most.
        made = {style.key: PlotSeries(style, self._plot) for style in reversed(series)}
        self.series = {style.key: made[style.key] for style in series}
        self.marks = PlotMarks(self._plot)
        self.crosshair = PlotCrosshair(self._widget, self._view, self.series, self.marks)
        self.crosshair.x_label = x_label
        self.crosshair.moved.connect(self.hovered)
        self.crosshair.all_requested.connect(self.show_all)
        self._pin = pg.InfiniteLine(angle=90, movable=False)
        self._pin.hide()
        self._plot.addItem(self._pin, ignoreBounds=True)
        self._widget.scene().sigMouseClicked.connect(self._on_clicked)  # type: ignore[attr-defined]
        self._view.sigRangeChangedManually.connect(self._on_zoomed)
        self.apply_theme()

    def _arrange(self) -> None:
        self._plot.hideButtons()
        # Half a label stands out at the ends of an axis.
        self._plot.layout.setContentsMargins(0, 8, 8, 0)  # type: ignore[attr-defined]
        self._plot.setMenuEnabled(False)
        self._view.disableAutoRange()
        self._widget.setFrameShape(self._widget.Shape.NoFrame)
        self._widget.setMinimumHeight(110)
        self._widget.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self._widget.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._widget.setAccessibleName(self.accessibleName())
        for side in ("left", "bottom"):
            self._plot.getAxis(side).setStyle(tickLength=-4, tickTextOffset=6, tickFont=theme.font(11), maxTickLevel=1)
            self._plot.getAxis(side).enableAutoSIPrefix(False)
        self._plot.getAxis("left").setWidth(46)
        self._plot.getAxis("bottom").setHeight(22)
        self.body.addWidget(self._widget, 1)
        self.body.addWidget(self._nothing, 1)
        self.body.setContentsMargins(0, 0, 0, 0)

    def apply_theme(self) -> None:
        """Background, axes and pens in the current colours."""
        self._widget.setBackground(theme.hex_color("card"))
        for side in ("left", "bottom"):
            axis = self._plot.getAxis(side)
            axis.setStyle(tickFont=theme.font(11))
            axis.setPen(pg.mkPen(theme.color("plot_axis")))
            axis.setTextPen(pg.mkPen(theme.color("muted")))
        self._grid.setPen(pg.mkPen(theme.color("plot_grid")))
        self.crosshair.apply_theme()
        self._pin.setPen(pg.mkPen(theme.color("accent"), width=1.5))
        self._view.apply_theme()
        for series in self.series.values():
            series.apply_theme()
        self.marks.apply_theme()
        self._write_legend()
        self._ask()

    # Data

    def append(self, key: str, xs: Sequence[float] | Floats, ys: Sequence[float] | Floats) -> None:
        """Add points to one curve; x must not decrease; NaN makes a gap."""
        if len(xs):
            self.series[key].append(np.asarray(xs, np.float64), np.asarray(ys, np.float64))
            self._ask()

    def clear_series(self, keys: Sequence[str]) -> None:
        """Remove the points of some curves."""
        for key in keys:
            self.series[key].clear()
        self._ask()

    def rename(self, key: str, words: str) -> None:
        """Rename a curve in the legend."""
        self.series[key].style = replace(self.series[key].style, label=words)
        self._write_legend()

    def clear(self) -> None:
        """Remove all points and marks and reset the zoom."""
        for series in self.series.values():
            series.clear()
        self._zoomed = False
        self.set_marks([])
        self.set_ticks([], "")
        self.set_breaks([])

    def truncate_after(self, x: float, key: str | None = None) -> None:
        """Drop every point beyond x, of one curve or of all."""
        for series in [self.series[key]] if key else self.series.values():
            series.truncate_after(x)
        self._ask()

    def set_marks(self, marks: Sequence[Mark]) -> None:
        """Vertical lines as (x, text, colour token), for example the best step."""
        self.marks.set_lines(marks)
        self._ask()

    def set_ticks(self, ticks: Sequence[float], word: str) -> None:
        """Triangles at the bottom, for example for checkpoints."""
        self.marks.set_ticks(ticks, word)
        self._place_ticks()

    def _place_ticks(self) -> None:
        # A little above the axis, which would hide their lower half.
        self.marks.place(self._view.viewRange()[1][0] + ABOVE_AXIS * self._view.viewPixelSize()[1])

    def set_breaks(self, breaks: Sequence[float], others: bool = False) -> None:
        """Break the lines after these x: the plot's own, or those of the compared `others`."""
        for series in self.series.values():
            if bool(series.style.twin_of) == others:
                series.set_breaks(list(breaks))
        self._ask()

    def set_x(self, label: str, kind: Kind) -> None:
        """Change the x axis; the points must be sent again."""
        self.crosshair.x_label, self.crosshair.x_kind = label, kind
        self._axes["bottom"].set_kind(kind)
        self.show_hover(None)
        self.show_all()

    def set_smoothing(self, share: float) -> None:
        """Set the share of the visible range over which smoothed curves are averaged; 0 draws the points themselves."""
        for series in self.series.values():
            series.set_smoothing(share)
        self._write_legend()
        self._ask()

    def set_logarithmic(self, on: bool) -> None:
        """Set whether y is logarithmic; values that are not positive are left out then."""
        heights = self._view.heights(on) if on != self._logarithmic else None
        self._logarithmic = on
        self._log.setChecked(on)
        self._plot.getAxis("left").setLogMode(False, on)
        if heights:
            # At once: a range of 5,000 that is taken for 5,000 powers of ten has ticks without end.
            self._view.setYRange(*heights, padding=0)
        self._redraw_all()

    def show_all(self) -> None:
        """Reset the zoom."""
        self._zoomed = False
        self._redraw_all()

    def _redraw_all(self) -> None:
        for series in self.series.values():
            series.changed = True
        self._ask()

    # Drawing

    def _ask(self) -> None:
        is_empty = not any(len(series) for series in self.series.values())
        for widget in (self._widget, self._log, self.saving.button):
            widget.setVisible(not is_empty)
        self._nothing.setVisible(is_empty)
        if self.isVisible():
            redraw_turns().ask(self)

    def showEvent(self, event) -> None:
        """Draw points that arrived while hidden."""
        super().showEvent(event)
        self._ask()

    def redraw(self) -> None:
        """Update the scene with what changed; called when it is this plot's turn."""
        if not self.isVisible():
            return
        changed = [series for series in self.series.values() if series.changed]
        moved = not self._zoomed and self._show_whole()
        if moved or self._zoomed or self._grid_missing:
            self._draw_grid()
            self._place_ticks()
            taken = self.marks.taken
            self.marks.show_between(*self._view.viewRange()[0])
            if self.marks.taken != taken:
                self._ask()  # the words need more room above the curves, or less
        first, last = self._view.viewRange()[0]
        for series in self.series.values() if moved or self._zoomed else changed:
            if len(series) or series.changed:
                series.draw(first, last, self._logarithmic)
        if changed:
            self._write_legend()

    def _draw_grid(self) -> None:
        (left, right), (low, high) = self._view.viewRange()
        levels = self._plot.getAxis("left").tickValues(low, high, max(1, self._widget.height()))
        ticks = np.asarray(levels[0][1] if levels else [], np.float64)
        self._grid.setData(np.tile([left, right], len(ticks)), np.repeat(ticks, 2), connect="pairs")
        self._grid_missing = not len(ticks)

    def _show_whole(self) -> bool:
        """Fit the range to all points; returns whether it changed. Headroom makes changes rare."""
        filled = [series.points for series in self.series.values() if len(series)]
        if not filled:
            return False
        left, right = min(p.xs[0] for p in filled), max(p.xs[-1] for p in filled)
        if left == right:  # one step stands in the middle
            left, right = left - ALONE, right + ALONE
        bounds = [b for b in (p.bounds() for p in filled) if b]
        low, high = (min(b[0] for b in bounds), max(b[1] for b in bounds)) if bounds else (0.0, 1.0)
        if self._logarithmic:
            low, high = self._log_bounds(high)
        lacking = max(LEAST_HEIGHT * max(abs(low), abs(high)), 1e-12) - (high - low)
        if lacking > 0:  # so does one height
            low, high = low - lacking / 2, high + lacking / 2
        high += (high - low) * self.marks.taken / (1 - self.marks.taken)  # words of marks stand above the curves
        span = QRectF(left, low, max(right - left, 1e-12), max(high - low, 1e-12))
        if self._fits(span):
            return False
        room_x, room_y = span.width() * HEADROOM, span.height() * 0.06
        x_range = (left - room_x, left + span.width() + room_x)
        y_range = (low - room_y, low + span.height() + room_y)
        if not np.isfinite((*x_range, *y_range)).all():
            return False
        self._view.setRange(xRange=x_range, yRange=y_range, padding=0)
        return True

    def _log_bounds(self, high: float) -> tuple[float, float]:
        positive = [ys[ys > 0] for ys in (s.points.reduce(points=512)[1] for s in self.series.values())]
        least = min((float(ys.min()) for ys in positive if ys.size), default=high / 10 or 1e-3)
        return (np.log10(least), np.log10(high)) if high > 0 else (-3.0, 0.0)

    def _fits(self, span: QRectF) -> bool:
        (left, right), (low, high) = self._view.viewRange()
        inside = left <= span.left() and right >= span.right() and low <= span.top() and high >= span.bottom()
        return inside and span.width() > 0.93 * (right - left) and span.height() > 0.85 * (high - low)

    # Looking closer

    def hide_legend(self) -> None:
        """Hide the legend: the surrounding view names the curves and shows their values."""
        self._legend.hide()
        self.crosshair.tells_values = False

    def set_curve_hidden(self, key: str, hidden: bool) -> None:
        """Hide or show one curve."""
        self.series[key].set_hidden(hidden)
        self._ask()

    def set_pin(self, x: float | None) -> None:
        """Set a line at a selected position; None removes it."""
        self._pin.setVisible(x is not None)
        if x is not None:
            self._pin.setPos(x)

    def _on_clicked(self, event) -> None:
        series = next(iter(self.series.values()))
        if event.button() == Qt.MouseButton.LeftButton and not event.double() and len(series):
            place = self._view.mapSceneToView(event.scenePos())
            if point := nearest_point(series, self._view, place.x(), place.y(), self._logarithmic):
                self.picked.emit(point[0])

    def _on_zoomed(self) -> None:
        self._zoomed = True
        self._redraw_all()

    def show_hover(self, x: float | None) -> None:
        """Put the crosshair at x and show every curve's value there; None removes it."""
        self.crosshair.show_at(x)

    # To take along

    def _picture(self) -> PlotPicture:
        self.redraw()  # a plot that waits for its turn has neither its last points nor a legend
        self._write_legend()
        return PlotPicture(self._widget, self.accessibleName(), self._legend.text())

    def _table(self) -> tuple[str, dict[str, tuple[Floats, Floats]]]:
        filled = [series for series in self.series.values() if len(series)]
        columns = {plot_legend.curve_name(each, self.series): (each.points.xs, each.points.ys) for each in filled}
        return self.crosshair.x_label, columns

    def _write_legend(self) -> None:
        words = plot_legend.legend_html(self.series.values(), self.marks.tick_word)
        if words != self._legend.text():
            self._legend.setText(words)
            self._place_legend()
        for spoken in (self, self._widget):
            spoken.setAccessibleDescription(plot_legend.describe_curves(self.series))

    def _place_legend(self) -> None:
        """Beside the heading if all of it fits there, else below; without a heading it can have two lines."""
        self.corner.invalidate()  # else it tells the width of the words before
        taken = self.corner.sizeHint().width()
        if self.corner.indexOf(self._legend) >= 0:
            taken -= self._legend.sizeHint().width()
        margins = self.contentsMargins() + self.layout().contentsMargins()  # type: ignore[union-attr]
        room = self.width() - margins.left() - margins.right() - self.heading.sizeHint().width() - taken
        below = not self.heading.isHidden() and self._legend.one_line() > room
        if below != (self.body.indexOf(self._legend) >= 0):
            (self.body if below else self.corner).insertWidget(0, self._legend)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Place the legend again for the new width, and the words of marks for the new height."""
        super().resizeEvent(event)
        self._place_legend()
        self._grid_missing = True
        self._ask()


# One plot is redrawn per turn: Qt paints all changed widgets together, and six plots at once would stop everything else

TURN_MS = 40
LONGEST_TURN_MS = 200
LATE_MS = 10
"""Where turns come later than this, the machine is busy, and drawing less often keeps the window usable."""


class Redrawable(Protocol):
    """Anything that can wait in the redraw queue."""

    def redraw(self) -> None:
        """Take over everything new."""
        ...


class RedrawQueue(QObject):
    """Gives each waiting plot its turn, first come, first served; idle while nothing waits."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting: dict[int, weakref.ref] = {}
        self._timer = QTimer(self, interval=TURN_MS)
        self._timer.timeout.connect(self._next)
        self._began = 0.0

    def ask(self, plot: Redrawable) -> None:
        """Request one turn; repeated requests before it have no effect."""
        self._waiting.setdefault(id(plot), weakref.ref(plot))
        if not self._timer.isActive():
            self._began = time.perf_counter()
            self._timer.start()

    def _next(self) -> None:
        if not self._waiting:
            self._timer.stop()
            return
        self._pace()
        key = next(iter(self._waiting))
        plot = self._waiting.pop(key)()
        # Qt may have deleted a plot that Python still knows, for example the metrics of another run.
        if plot is not None and shiboken6.isValid(plot):
            plot.redraw()

    def _pace(self) -> None:
        now = time.perf_counter()
        late_ms = (now - self._began) * 1000 - self._timer.interval()
        factor = 1.5 if late_ms > LATE_MS else 0.9
        self._timer.setInterval(round(min(LONGEST_TURN_MS, max(TURN_MS, self._timer.interval() * factor))))
        self._began = now


_turns: list[RedrawQueue] = []


def redraw_turns() -> RedrawQueue:
    """The only queue in the process."""
    if not _turns:
        _turns.append(RedrawQueue())
    return _turns[0]
