"""Owns where a live plot's curves stand: the zoomed view and the axes around it."""

import pyqtgraph as pg

from app import theme


class PlotView(pg.ViewBox):
    """Dragging zooms into a rectangle; the wheel belongs to the page around."""

    def __init__(self) -> None:
        super().__init__(enableMenu=False, defaultPadding=0)
        self.setMouseMode(pg.ViewBox.RectMode)

    def wheelEvent(self, ev, axis=None) -> None:
        """Not ours: a page scrolls."""
        ev.ignore()

    def apply_theme(self) -> None:
        """The zoom rectangle in the accent colour."""
        accent = theme.color("accent")
        self.rbScaleBox.setPen(pg.mkPen(accent))
        accent.setAlpha(40)
        self.rbScaleBox.setBrush(accent)


class PlotAxis(pg.AxisItem):
    """Large numbers with thousands apart."""

    def tickStrings(self, values, scale, spacing) -> list[str]:
        """`20,000`; a logarithmic axis and small numbers as pyqtgraph writes them."""
        if self.logMode or spacing < 1:
            return super().tickStrings(values, scale, spacing)
        return [f"{value:,.0f}" for value in values]
