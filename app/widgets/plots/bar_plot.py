"""A plot of grouped bars, for example tokens per word of several tokenizers by language."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QEvent, QObject, QPointF, Qt
from PySide6.QtWidgets import QLabel, QSizePolicy, QVBoxLayout, QWidget

from app import theme
from app.core.i18n import figure, tr
from app.widgets.accessibility import Role
from app.widgets.plots.plot_axis import PlotAxis
from app.widgets.plots.plot_view import PlotView

GROUP = 0.8
"""Width of a group; the rest parts it from the next."""
HINT = tr("Hover over a bar to see its value.")
LETTERS = 14
"""Of a group's name under the axis."""


@dataclass(frozen=True)
class Bars:
    """One value per group, in a colour token."""

    name: str
    values: Sequence[float]
    token: str


class BarPlot(QWidget):
    """Hovering over a bar shows its value; zooming is off."""

    spoken_role = Role.Chart

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        theme.follow(self)
        self._groups: list[str] = []
        self._bars: list[Bars] = []
        self._unit = ""
        self.setAccessibleName(name)
        self._view = PlotView()
        self._view.setMouseEnabled(False, False)
        axes = {"bottom": pg.AxisItem("bottom"), "left": PlotAxis("left")}
        self._widget = pg.PlotWidget(viewBox=self._view, axisItems=axes)
        self._plot: pg.PlotItem = self._widget.getPlotItem()  # type: ignore[assignment]
        self._plot.hideButtons()
        self._plot.setMenuEnabled(False)
        self._plot.layout.setContentsMargins(0, 8, 8, 0)  # type: ignore[attr-defined]
        self._widget.setFrameShape(self._widget.Shape.NoFrame)
        self._widget.setMinimumHeight(110)
        self._widget.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self._widget.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        for side in ("left", "bottom"):
            self._plot.getAxis(side).setStyle(tickLength=-4, tickTextOffset=6, tickFont=theme.font(11), maxTickLevel=0)
            self._plot.getAxis(side).enableAutoSIPrefix(False)
        self._plot.getAxis("bottom").setStyle(tickLength=0)
        self._plot.getAxis("left").setWidth(46)
        self._plot.getAxis("bottom").setHeight(22)
        self._said = QLabel()
        self._said.setTextFormat(Qt.TextFormat.PlainText)
        theme.role(self._said, "faint")
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2)
        column.addWidget(self._widget, 1)
        column.addWidget(self._said)
        self._widget.scene().sigMouseMoved.connect(self._on_mouse_moved)  # type: ignore[attr-defined]
        self._widget.viewport().installEventFilter(self)
        self.apply_theme()

    def show_bars(self, groups: Sequence[str], bars: Sequence[Bars], unit: str = "") -> None:
        """Show other bars; each has one value per group."""
        self._groups, self._bars, self._unit = list(groups), list(bars), unit
        words = (
            f"{group or 'all'}: " + ", ".join(f"{each.name} {figure(each.values[place], '.3g')}" for each in bars)
            for place, group in enumerate(groups)
        )
        self.setAccessibleDescription("; ".join(words))
        self._said.setText(HINT)
        self._draw()

    def caption(self) -> str:
        """The text of the line below the plot."""
        return self._said.text()

    def apply_theme(self) -> None:
        """Redraw in the current colours."""
        self._widget.setBackground(theme.hex_color("card"))
        for side in ("left", "bottom"):
            axis = self._plot.getAxis(side)
            axis.setStyle(tickFont=theme.font(11))
            axis.setPen(pg.mkPen(theme.color("plot_axis")))
            axis.setTextPen(pg.mkPen(theme.color("muted")))
        self._draw()

    def _draw(self) -> None:
        self._plot.clear()
        highest = max((max(each.values, default=0.0) for each in self._bars), default=0.0)
        if not self._groups or not self._bars:
            return
        width = GROUP / len(self._bars)
        for number, each in enumerate(self._bars):
            left = np.arange(len(self._groups)) - GROUP / 2 + number * width
            brush = theme.color(each.token)
            self._plot.addItem(
                pg.BarGraphItem(x0=left, width=width * 0.92, height=np.asarray(each.values), brush=brush, pen=brush)
            )
        ticks = [(place, _short(name)) for place, name in enumerate(self._groups)]
        self._plot.getAxis("bottom").setTicks([ticks])
        self._view.setRange(xRange=(-0.6, len(self._groups) - 0.4), yRange=(0, highest * 1.08 or 1.0), padding=0)

    def _on_mouse_moved(self, place: QPointF) -> None:
        at = self._view.mapSceneToView(place)
        self._said.setText(self._words_at(at.x(), at.y()))

    def _words_at(self, x: float, y: float) -> str:
        group = round(x)
        if not 0 <= group < len(self._groups) or abs(x - group) > GROUP / 2 or y < 0:
            return HINT
        number = min(len(self._bars) - 1, int((x - group + GROUP / 2) / GROUP * len(self._bars)))
        each = self._bars[number]
        where = f"{self._groups[group]}: " if self._groups[group] else ""
        return f"{where}{each.name} {figure(each.values[group], '.3f')} {self._unit}"

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Leaving ends the hover."""
        if event.type() == QEvent.Type.Leave:
            self._said.setText(HINT)
        return False


def _short(name: str) -> str:
    return name if len(name) <= LETTERS else f"{name[: LETTERS - 1]}…"
