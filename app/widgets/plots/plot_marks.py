"""Marks in a live plot: labeled dashed lines, and small triangles at the bottom."""

from collections.abc import Sequence
from math import inf

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt

from app import theme

Mark = tuple[float, str, str]
"""Its position, its kind, and its colour token."""
ROWS = 3
"""Rows at the top of the view for the labels of marks, above the curves."""
TALLEST_ROW = 0.22
"""The most of the view's height that a row may take; in a lower view the words would cover the curves, and are left out."""
NEAR = 0.008
"""A mark is met by a cross-hair within this share of the range."""


class PlotMarks:
    """`lines` are few and labelled, for example the best step; `ticks` may be many, for example checkpoints."""

    def __init__(self, plot: pg.PlotItem) -> None:
        self._plot = plot
        self.lines: list[Mark] = []
        self._view = (-inf, inf)
        self.ticks: list[float] = []
        self.tick_word = ""
        self.items: list[pg.InfiniteLine] = []
        self.taken = 0.0
        """The share of the view's height at its top that words take."""
        self._triangles = pg.ScatterPlotItem(size=8, symbol="t1", pxMode=True)
        self._triangles.setZValue(5)
        plot.addItem(self._triangles, ignoreBounds=True)

    def set_lines(self, lines: Sequence[Mark]) -> None:
        """Vertical lines with text."""
        self.lines = list(lines)
        for item in self.items:
            self._plot.removeItem(item)
        self.items = [self._line(*mark) for mark in self.lines]
        self.show_between(*self._view)

    def _line(self, x: float, text: str, token: str) -> pg.InfiniteLine:
        pen = pg.mkPen(theme.color(token), width=1, style=Qt.PenStyle.DashLine)
        options = {"color": theme.color(token), "anchors": [(0, 0), (1, 0)]}
        options["fill"] = theme.color("card")  # words across a curve, as when a person zooms in, cannot be read
        template = text.replace("{", "{{").replace("}", "}}")  # pyqtgraph would put the line's x in braces
        line = pg.InfiniteLine(x, angle=90, movable=False, pen=pen, label=template or None, labelOpts=options)
        self._plot.addItem(line, ignoreBounds=True)
        return line

    def set_ticks(self, ticks: Sequence[float], word: str) -> None:
        """Triangles at these x, named `word`."""
        self.ticks, self.tick_word = list(ticks), word

    def place(self, bottom: float) -> None:
        """Put the triangles at this y."""
        self._triangles.setData(np.asarray(self.ticks, np.float64), np.full(len(self.ticks), bottom))

    def show_between(self, first: float, last: float) -> None:
        """Hide lines beyond these x, and put the words of the others into rows, the newest first.

        Words that find no room, which the edge would cut too, are hidden, and so are equal words that would overlap.
        """
        self._view = (first, last)
        taken: list[tuple[str, int, float, float]] = []
        share = self._row_share()
        rows = range(ROWS if share <= TALLEST_ROW else 0)
        for item, (x, text, _) in reversed(list(zip(self.items, self.lines, strict=True))):
            item.setVisible(bool(first <= x <= last))
            if not text:
                continue
            left, right = self._reach(item, (x - first) / (last - first) if first < last < inf else 0.0)
            beside = [(words, row) for words, row, begin, end in taken if begin < right and left < end]
            is_cut = first < last < inf and (left < 0 or right > self._width())
            free = None if is_cut else next((row for row in rows if all(one != row for _, one in beside)), None)
            is_shown = item.isVisible() and free is not None and all(words != text for words, _ in beside)
            item.label.setVisible(is_shown)
            if is_shown and free is not None:
                item.label.setPosition(1 - free * share)
                taken.append((text, free, left, right))
        self.taken = share * max((row + 1 for _, row, _, _ in taken), default=0)

    def _row_share(self) -> float:
        """The height of a row of words, as a share of the view's."""
        view = self._plot.vb
        assert view is not None, "a plot has its view from the start"
        tallest = max((item.label.boundingRect().height() for item in self.items if item.label), default=0.0)
        return tallest / max(1.0, view.height())

    def _width(self) -> float:
        view = self._plot.vb
        assert view is not None, "a plot has its view from the start"
        return view.width()

    def _reach(self, item: pg.InfiniteLine, share: float) -> tuple[float, float]:
        """The pixel range of a line's text, for a line at this share of the width: on the side with more room."""
        place, width = share * self._width(), item.label.boundingRect().width()
        return (place, place + width) if share < 0.5 else (place - width, place)

    def near(self, x: float, width: float) -> list[str]:
        """The marks at x, in a view of this width."""
        words = [text for place, text, _ in self.lines if text and abs(place - x) <= NEAR * width]
        is_tick = any(abs(place - x) <= NEAR * width for place in self.ticks)
        return [*dict.fromkeys(words), *([self.tick_word] if is_tick and self.tick_word else [])]

    def apply_theme(self) -> None:
        """Redraw in the current colours."""
        self._triangles.setPen(None)
        self._triangles.setBrush(theme.color("muted"))
        self.set_lines(self.lines)
