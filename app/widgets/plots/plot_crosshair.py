"""The crosshair of a plot, moved by the mouse or the keyboard, and the panel with the value of every curve."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QEvent, QObject, QPointF, QRect, QRectF, Qt, Signal
from PySide6.QtGui import QFontMetrics, QKeyEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from app import theme
from app.core.i18n import figure, group_digits, tr
from app.widgets.plots.plot_axis import Kind, value_words
from app.widgets.plots.plot_marks import NEAR, PlotMarks
from app.widgets.plots.plot_series import PlotSeries
from app.widgets.plots.plot_view import STEP, PlotView

PADDING = 9
GAP = 14
SWATCH = 12
AWAY = 12
"""Pixels between the cross-hair and the panel."""


@dataclass(frozen=True)
class Line:
    """One curve: its colour, name and value; `dashed` as the curve is."""

    token: str
    name: str
    value: str
    dashed: bool = False


class PlotReadout(QWidget):
    """An overlay on the plot, transparent to the mouse."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        theme.give_font(self, 12)
        self.title = ""
        self.lines: list[Line] = []
        self.hide()

    def text(self) -> str:
        """All of it on one line."""
        return " · ".join([self.title, *(f"{line.name} {line.value}" for line in self.lines)])

    def show_at(self, area: QRect, x: int, title: str, lines: Sequence[Line]) -> None:
        """Show these beside x, within the parent's plot area."""
        self.title, self.lines = title, list(lines)
        self.resize(self._width(), self._row() * (1 + len(self.lines)) + 2 * PADDING)
        right = x + AWAY
        left = right if right + self.width() <= area.right() else x - AWAY - self.width()
        self.move(max(area.left(), min(left, area.right() - self.width())), area.top() + 4)
        self.show()
        self.raise_()
        self.update()

    def _row(self) -> int:
        return self.fontMetrics().height() + 3

    def _width(self) -> int:
        metrics: QFontMetrics = self.fontMetrics()
        rows = [
            SWATCH + 6 + metrics.horizontalAdvance(line.name) + GAP + metrics.horizontalAdvance(line.value)
            for line in self.lines
        ]
        return max([metrics.horizontalAdvance(self.title), *rows]) + 2 * PADDING

    def paintEvent(self, event: QPaintEvent) -> None:
        """A card with one line per curve."""
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            card = theme.color("card")
            card.setAlpha(238)
            painter.setBrush(card)
            painter.setPen(theme.color("border_strong"))
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 6, 6)
            row = QRect(PADDING, PADDING, self.width() - 2 * PADDING, self._row())
            painter.setPen(theme.color("muted"))
            painter.drawText(row, Qt.AlignmentFlag.AlignVCenter, self.title)
            for line in self.lines:
                row.translate(0, self._row())
                self._paint(painter, row, line)

    def _paint(self, painter: QPainter, row: QRect, line: Line) -> None:
        style = Qt.PenStyle.DotLine if line.dashed else Qt.PenStyle.SolidLine
        painter.setPen(QPen(theme.color(line.token), 3, style))
        middle = row.center().y() + 1
        painter.drawLine(row.left(), middle, row.left() + SWATCH, middle)
        painter.setPen(theme.color("muted"))
        painter.drawText(row.adjusted(SWATCH + 6, 0, 0, 0), Qt.AlignmentFlag.AlignVCenter, line.name)
        painter.setPen(theme.color("text"))
        painter.drawText(row, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, line.value)


KEY_STEP = 0.01
"""The share of the view by which an arrow key moves the cross-hair."""


class PlotCrosshair(QObject):
    """Positioned at one x; `moved` is only emitted for the user's moves, so that other plots can follow."""

    moved = Signal(object)
    """The x, or None where it left."""
    all_requested = Signal()

    def __init__(
        self, widget: pg.PlotWidget, view: PlotView, series: Mapping[str, PlotSeries], marks: PlotMarks
    ) -> None:
        super().__init__(widget)
        self._widget, self._view, self._series, self._marks = widget, view, series, marks
        self.x: float | None = None
        self.x_label = "step"
        self.x_kind: Kind = "number"
        self.tells_values = True
        """Whether the values are drawn next to it; otherwise another widget shows them, and only the line is drawn."""
        self.readout = PlotReadout(widget)
        self._line = pg.InfiniteLine(angle=90, movable=False)
        self._line.hide()
        plot: pg.PlotItem = widget.getPlotItem()  # type: ignore[assignment]
        plot.addItem(self._line, ignoreBounds=True)
        widget.scene().sigMouseMoved.connect(self.on_mouse_moved)  # type: ignore[attr-defined]
        for watched in (widget, widget.viewport()):
            watched.installEventFilter(self)

    def apply_theme(self) -> None:
        """Redraw the line in the current colours."""
        self._line.setPen(pg.mkPen(theme.color("border_strong")))

    def on_mouse_moved(self, place: QPointF) -> None:
        """Handle the mouse at a scene position."""
        inside = self._view.sceneBoundingRect().contains(place)
        self._move(self._view.mapSceneToView(place).x() if inside else None)

    def _move(self, x: float | None) -> None:
        if x != self.x:
            self.show_at(x)
            self.moved.emit(x)

    def show_at(self, x: float | None) -> None:
        """Move to x; None hides it."""
        self.x = x
        left, right = self._view.viewRange()[0]
        inside = x is not None and bool(left <= x <= right) and self._widget.isVisible()
        self._line.setVisible(inside)
        if x is None or not inside:
            self.readout.hide()
            return
        self._line.setPos(x)
        visible = [series for series in self._series.values() if not series.is_hidden] if self.tells_values else []
        lines = [line for series in visible if (line := self._line_of(series, x))]
        words = [value_words(x, self.x_label, self.x_kind), *self._marks.near(x, right - left)]
        at = round(self._view.mapViewToScene(QPointF(x, 0)).x())
        self.readout.show_at(self._widget.rect(), at, " · ".join(words), lines)

    def _line_of(self, series: PlotSeries, x: float) -> Line | None:
        point, mean = series.value_at(x), series.mean_at(x)
        if point is None:
            return None
        owner = self._series.get(series.style.twin_of)
        name = f"{series.style.label} {owner.style.label}" if owner else series.style.label
        value = short_number(point[1]) + (
            tr(" · mean {short_number}", short_number=short_number(mean)) if mean is not None else ""
        )
        left, right = self._view.viewRange()[0]
        if series.style.kind == "markers" and abs(point[0] - x) > NEAR * (right - left):
            place = value_words(point[0], self.x_label, self.x_kind)
            value = tr("{value} at {place}", value=value, place=place)
        return Line(series.style.color_token, name, value, owner is not None)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """A double-click resets the view; leaving hides the crosshair; keys do what the mouse does."""
        kind = event.type()
        if kind == QEvent.Type.MouseButtonDblClick:
            self.all_requested.emit()
            return True
        if kind == QEvent.Type.KeyPress and watched is self._widget and isinstance(event, QKeyEvent):
            return self._on_key(event)
        if kind == QEvent.Type.FocusIn and watched is self._widget:
            self._move(sum(self._view.viewRange()[0]) / 2)
        if kind in (QEvent.Type.Leave, QEvent.Type.FocusOut):
            self._move(None)
        return False

    def _on_key(self, event: QKeyEvent) -> bool:
        left, right = self._view.viewRange()[0]
        x = (left + right) / 2 if self.x is None else self.x
        side = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}.get(Qt.Key(event.key()), 0)
        if side and event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            self._view.move(side * STEP)
        elif side:
            self._move(min(right, max(left, x + side * KEY_STEP * (right - left))))
        elif event.key() in (Qt.Key.Key_Plus, Qt.Key.Key_Equal, Qt.Key.Key_Minus):
            self._view.zoom(x, event.key() != Qt.Key.Key_Minus)
        elif event.key() == Qt.Key.Key_Home:
            self.all_requested.emit()
        else:
            return False
        return True


def short_number(value: float) -> str:
    """Four significant digits, as people write them."""
    if not np.isfinite(value):
        return tr("not a number")
    if value and (abs(value) < 1e-3 or abs(value) >= 1e6):
        return figure(value, ".2e")
    return figure(value, ".4g") if abs(value) < 1000 else group_digits(value)
