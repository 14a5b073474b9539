"""Owns the live plot: a card with curves that grow, always shown whole, redrawn in turns and never per event."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QEvent, QObject, QPointF, QRectF, Qt, Signal
from PySide6.QtWidgets import QLabel, QSizePolicy, QWidget

from app import theme
from app.widgets.card import Card, label
from app.widgets.icon_label import IconToolButton
from app.widgets.min_max_pyramid import Floats
from app.widgets.plot_series import PlotSeries, SeriesStyle
from app.widgets.plot_view import PlotAxis, PlotView
from app.widgets.redraw_turns import redraw_turns

__all__ = ["LivePlot", "SeriesStyle"]
HEADROOM = 0.03
MARK_LINES = 5
"""Heights at which the words of marks stand."""


class LivePlot(Card):
    """Curves over a shared x, for example training steps. Drag to zoom, double-click to see everything again.

    Without `legend` whoever shows the plot names its curves, and hears of the mouse by `hovered`.
    """

    hovered = Signal(object)
    """The x below the mouse, or None."""

    def __init__(
        self,
        title: str,
        series: Sequence[SeriesStyle],
        x_label: str = "step",
        parent: QWidget | None = None,
        *,
        legend: bool = True,
    ):
        super().__init__(title, parent)
        self._x_label = x_label
        self._zoomed = self._logarithmic = False
        self._grid_missing = True
        self._hover: float | None = None
        self._marks: list[tuple[float, str, str]] = []
        self._mark_items: list[pg.InfiniteLine] = []
        self._legend = QLabel()
        self._legend.setTextFormat(Qt.TextFormat.RichText)
        self._legend.setVisible(legend)
        self._has_legend = legend
        self._log = IconToolButton("chart", "Logarithmic scale")
        self._log.setCheckable(True)
        self._log.toggled.connect(self.set_logarithmic)
        self.corner.addWidget(self._legend)
        self.corner.addWidget(self._log)
        self._view = PlotView()
        axes = {side: PlotAxis(side) for side in ("bottom", "left")}
        self._widget = pg.PlotWidget(viewBox=self._view, background=theme.hex_color("card"), axisItems=axes)
        self._plot: pg.PlotItem = self._widget.getPlotItem()  # type: ignore[assignment]
        # The axis' own grid costs half of every paint; a few lines of our own cost nothing.
        self._grid = pg.PlotCurveItem(connect="pairs")
        self._grid.setZValue(-10)
        self._plot.addItem(self._grid, ignoreBounds=True)
        self._nothing = label("Nothing to draw yet", "faint")
        self._nothing.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._arrange()
        # Made from the last to the first: what is added later lies above, and the first curve matters most.
        made = {style.key: PlotSeries(style, self._plot) for style in reversed(series)}
        self.series = {style.key: made[style.key] for style in series}
        self._cross = pg.InfiniteLine(angle=90, movable=False)
        self._cross.hide()
        self._plot.addItem(self._cross, ignoreBounds=True)
        self._widget.scene().sigMouseMoved.connect(self._on_mouse_moved)  # type: ignore[attr-defined]
        self._view.sigRangeChangedManually.connect(self._on_zoomed)
        self._widget.viewport().installEventFilter(self)
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
        self._widget.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        for side in ("left", "bottom"):
            self._plot.getAxis(side).setStyle(tickLength=-4, tickTextOffset=6, tickFont=theme.font(11), maxTickLevel=1)
            self._plot.getAxis(side).enableAutoSIPrefix(False)
        self._plot.getAxis("left").setWidth(46)
        self._plot.getAxis("bottom").setHeight(22)
        self.body.addWidget(self._widget, 1)
        self.body.addWidget(self._nothing, 1)
        self.body.setContentsMargins(0, 0, 0, 0)

    def apply_theme(self) -> None:
        """Background, axes and pens in the present colours."""
        self._widget.setBackground(theme.hex_color("card"))
        for side in ("left", "bottom"):
            axis = self._plot.getAxis(side)
            axis.setPen(pg.mkPen(theme.color("plot_axis")))
            axis.setTextPen(pg.mkPen(theme.color("muted")))
        self._grid.setPen(pg.mkPen(theme.color("plot_grid")))
        self._cross.setPen(pg.mkPen(theme.color("border_strong")))
        self._view.apply_theme()
        for series in self.series.values():
            series.apply_theme()
        self.set_marks(self._marks)
        self._write_legend()
        self._ask()

    # Data

    def append(self, key: str, xs: Sequence[float] | Floats, ys: Sequence[float] | Floats) -> None:
        """Add points to one curve; x must not fall; NaN makes a gap."""
        if len(xs):
            self.series[key].append(np.asarray(xs, np.float64), np.asarray(ys, np.float64))
            self._ask()

    def clear_series(self, keys: Sequence[str]) -> None:
        """Forget the points of some curves."""
        for key in keys:
            self.series[key].clear()
        self._ask()

    def rename(self, key: str, words: str) -> None:
        """Call a curve otherwise in the legend."""
        self.series[key].style = replace(self.series[key].style, label=words)
        self._write_legend()

    def clear(self) -> None:
        """Forget all points and marks and the zoom."""
        for series in self.series.values():
            series.clear()
        self._zoomed = False
        self.set_marks([])
        self._ask()

    def truncate_after(self, x: float, key: str | None = None) -> None:
        """Drop every point beyond x, of one curve or of all."""
        for series in [self.series[key]] if key else self.series.values():
            series.truncate_after(x)
        self._ask()

    def set_marks(self, marks: Sequence[tuple[float, str, str]]) -> None:
        """Vertical lines as (x, what it is, colour token), for example the best step."""
        self._marks = list(marks)
        for item in self._mark_items:
            self._plot.removeItem(item)
        self._mark_items = [self._mark_item(place, *mark) for place, mark in enumerate(self._marks)]

    def _mark_item(self, place: int, x: float, text: str, token: str) -> pg.InfiniteLine:
        pen = pg.mkPen(theme.color(token), width=1, style=Qt.PenStyle.DashLine)
        # One below the other: marks may be close together.
        options = {
            "position": 0.96 - 0.08 * (place % MARK_LINES),
            "color": theme.color(token),
            "anchors": [(0, 0), (1, 0)],
        }
        line = pg.InfiniteLine(x, angle=90, movable=False, pen=pen, label=text or None, labelOpts=options)
        self._plot.addItem(line, ignoreBounds=True)
        return line

    def set_logarithmic(self, on: bool) -> None:
        """Whether y is drawn as a logarithm; values that are not positive are left out then."""
        self._logarithmic = on
        self._log.setChecked(on)
        self._plot.getAxis("left").setLogMode(False, on)
        self._redraw_all()

    def set_smoothing(self, share: float) -> None:
        """How large a share of what is visible one smoothed point is the mean of."""
        for series in self.series.values():
            series.smoothing = share
        self._redraw_all()

    def set_curve_visible(self, key: str, on: bool) -> None:
        """Show or hide one curve."""
        self.series[key].set_visible(on)
        self._ask()

    def show_all(self) -> None:
        """Leave the zoom."""
        self._zoomed = False
        self._redraw_all()

    def _redraw_all(self) -> None:
        for series in self.series.values():
            series.changed = True
        self._ask()

    # Drawing

    def _ask(self) -> None:
        is_empty = not any(len(series) for series in self.series.values())
        for widget in (self._widget, self._log):
            widget.setVisible(not is_empty)
        self._nothing.setVisible(is_empty)
        if self.isVisible():
            redraw_turns().ask(self)

    def showEvent(self, event) -> None:
        """What came while hidden is drawn now."""
        super().showEvent(event)
        self._ask()

    def redraw(self) -> None:
        """Hand the scene what changed; called when it is this plot's turn."""
        if not self.isVisible():
            return
        changed = [series for series in self.series.values() if series.changed]
        moved = not self._zoomed and self._show_whole()
        if moved or self._zoomed or self._grid_missing:
            self._draw_grid()
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
        """Fit the range around all points; returns whether it changed. Headroom makes changes rare."""
        filled = [series.points for series in self.series.values() if len(series)]
        if not filled:
            return False
        left, right = min(p.xs[0] for p in filled), max(p.xs[-1] for p in filled)
        bounds = [b for b in (p.bounds() for p in filled) if b]
        low, high = (min(b[0] for b in bounds), max(b[1] for b in bounds)) if bounds else (0.0, 1.0)
        if self._logarithmic:
            low, high = self._log_bounds(high)
        span = QRectF(left, low, max(right - left, 1e-12), max(high - low, abs(high) * 1e-3, 1e-12))
        if self._fits(span):
            return False
        room_x, room_y = span.width() * HEADROOM, span.height() * 0.06
        self._view.setRange(
            xRange=(left - room_x, left + span.width() + room_x),
            yRange=(low - room_y, low + span.height() + room_y),
            padding=0,
        )
        return True

    def _log_bounds(self, high: float) -> tuple[float, float]:
        positive = [ys[ys > 0] for ys in (s.points.reduced(points=512)[1] for s in self.series.values())]
        least = min((float(ys.min()) for ys in positive if ys.size), default=high / 10 or 1e-3)
        return (np.log10(least), np.log10(high)) if high > 0 else (-3.0, 0.0)

    def _fits(self, span: QRectF) -> bool:
        (left, right), (low, high) = self._view.viewRange()
        inside = left <= span.left() and right >= span.right() and low <= span.top() and high >= span.bottom()
        return inside and span.width() > 0.93 * (right - left) and span.height() > 0.85 * (high - low)

    # The mouse

    def _on_zoomed(self) -> None:
        self._zoomed = True
        self._redraw_all()

    def _on_mouse_moved(self, place: QPointF) -> None:
        inside = self._plot.sceneBoundingRect().contains(place)
        self._hover = self._view.mapSceneToView(place).x() if inside else None
        self._cross.setVisible(inside)
        if self._hover is not None:
            self._cross.setPos(self._hover)
        self._write_legend()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """A double-click shows everything again; leaving hides the crosshair."""
        if event.type() == QEvent.Type.MouseButtonDblClick:
            self.show_all()
            return True
        if event.type() == QEvent.Type.Leave:
            self._hover = None
            self._cross.hide()
            self._write_legend()
        return False

    def _write_legend(self) -> None:
        if not self._has_legend:
            self.hovered.emit(self._hover)
            return
        parts = [
            self._legend_entry(series) for series in self.series.values() if len(series) and not series.style.twin_of
        ]
        twin = next((series for series in self._twins() if len(series)), None)
        if twin is not None:  # one entry stands for all: colours tell which is which
            parts.append(f"{_mark('╍', 'muted')} {_muted(twin.style.label)}")
        if self._hover is not None and parts:
            parts.insert(0, _muted(f"{self._x_label} {self._hover:,.0f}"))
        words = "&nbsp;&nbsp;&nbsp;".join(parts)
        if words != self._legend.text():
            self._legend.setText(words)
        self.setAccessibleDescription(", ".join(self._spoken(s) for s in self.series.values() if len(s)))

    def _twins(self) -> Iterator[PlotSeries]:
        return (series for series in self.series.values() if series.style.twin_of)

    def _legend_entry(self, series: PlotSeries) -> str:
        entry = f"{_mark('━', series.style.color_token)} {_muted(series.style.label)}"
        if self._hover is None:
            return entry
        twins = [twin for twin in self._twins() if twin.style.twin_of == series.style.key]
        point, *others = (each.value_at(self._hover) for each in (series, *twins))
        value = f" <b>{short_number(point[1])}</b>" if point else ""
        return "".join([entry, value, *(_muted(f" / {short_number(other[1])}") for other in others if other)])

    def _spoken(self, series: PlotSeries) -> str:
        owner = self.series.get(series.style.twin_of)
        name = f"{owner.style.label} of {series.style.label}" if owner else series.style.label
        return f"{name} {short_number(float(series.points.ys[-1]))} at {series.points.xs[-1]:,.0f}"


def _muted(words: str) -> str:
    return f'<span style="color:{theme.hex_color("muted")}">{words}</span>'


def _mark(sign: str, token: str) -> str:
    return f'<span style="color:{theme.hex_color(token)}"><b>{sign}</b></span>'


def short_number(value: float) -> str:
    """Four significant digits, as people write them."""
    if not np.isfinite(value):
        return "not a number"
    if value and (abs(value) < 1e-3 or abs(value) >= 1e6):
        return f"{value:.2e}"
    return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"
