"""A small plot per setting: the metric of each trial against the setting's value."""

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from app import theme
from app.core.i18n import tr, trn
from app.widgets.accessibility import Role
from app.widgets.plots.parallel_coordinates import AxisLike
from app.widgets.plots.plot_frame import HoverPlot

LEAST, MOST = 200, 380
"""Pixels of a plot's width."""
LEFT, TOP, BOTTOM, GAP = 46, 26, 26, 48
NEAR, DOT = 9, 7


class SettingPlots(HoverPlot):
    """The best trial stands out; a click on a dot chooses its trial."""

    spoken_role = Role.Chart

    dot_chosen = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        theme.follow(self)
        self._settings: Sequence[AxisLike] = ()
        self._metric: AxisLike | None = None
        self._words: Sequence[str] = ()
        self._best: int | None = None
        self.setMinimumHeight(170)
        self.setAccessibleName(tr("The metric against each setting"))
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)

    def show_dots(self, axes: Sequence[AxisLike], words: Sequence[str], best: int | None) -> None:
        """Show other trials; the last axis is the metric, `words` describe each trial, `best` is its number."""
        self._settings, self._metric = axes[:-1], axes[-1] if axes else None
        self._words, self._best, self._hovered = words, best, None
        self.setAccessibleDescription("; ".join([trn("{count} trial", "{count} trials", len(words)), *words[:10]]))
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        """Wider than high."""
        return QSize(640, 240)

    def apply_theme(self) -> None:
        """Nothing to update: colours are read at every paint."""
        self.update()

    # Where things are

    def _columns(self) -> int:
        return max(1, min(len(self._settings), self.width() // theme.pixels(LEAST)))

    def area_of(self, number: int) -> QRectF:
        """The area of a setting's plot, without its labels."""
        columns = self._columns()
        rows = -(-len(self._settings) // columns)
        width = min(theme.pixels(MOST), (self.width() - LEFT) / columns)
        height = self.height() / max(1, rows)
        left, top = LEFT + number % columns * width, number // columns * height
        return QRectF(left + GAP / 2, top + TOP, width - GAP, max(30.0, height - TOP - BOTTOM))

    def place_of(self, number: int, trial: int) -> QPointF | None:
        """Where a trial's dot is in a setting's plot, if it has both values."""
        assert self._metric is not None
        across, up = self._settings[number].places[trial], self._metric.places[trial]
        if across is None or up is None:
            return None
        area = self.area_of(number)
        return QPointF(area.left() + across * area.width(), area.bottom() - up * area.height())

    def part_at(self, place: QPointF) -> int | None:
        """The trial of the nearest dot, if it is close."""
        near = []
        for number in range(len(self._settings)):
            for trial in range(len(self._words)):
                dot = self.place_of(number, trial)
                if dot is not None and (away := (dot - place).manhattanLength()) <= NEAR:
                    near.append((away, trial))
        return min(near)[1] if near else None

    def words_of(self, part: int) -> str:
        """What the trial is and reached."""
        return self._words[part]

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Choose the trial of a dot."""
        found = self.part_at(event.position())
        if found is not None:
            self.dot_chosen.emit(found)

    # Painting

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint each setting's plot; the best trial and the one under the mouse are painted last, in all of them."""
        if self._metric is None:
            return
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setFont(theme.font(11))
            for number in range(len(self._settings)):
                self._paint_frame(painter, number)
                self._paint_dots(painter, number)

    def _paint_frame(self, painter: QPainter, number: int) -> None:
        area, setting, metrics = self.area_of(number), self._settings[number], painter.fontMetrics()
        assert self._metric is not None
        painter.setPen(theme.color("text"))
        title = metrics.elidedText(setting.title, Qt.TextElideMode.ElideRight, int(area.width()))
        painter.drawText(
            QRectF(area.left(), area.top() - TOP + 2, area.width(), 18), Qt.AlignmentFlag.AlignHCenter, title
        )
        is_first = number % self._columns() == 0
        for place, text in self._metric.ticks:
            y = area.bottom() - place * area.height()
            painter.setPen(QPen(theme.color("plot_grid"), 1))
            painter.drawLine(QPointF(area.left() - 6, y), QPointF(area.right() + 6, y))
            if is_first:
                painter.setPen(theme.color("muted"))
                painter.drawText(QRectF(0, y - 9, area.left() - 12, 18), Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, text)  # fmt: skip
        painter.setPen(QPen(theme.color("control"), 1))
        painter.drawLine(area.bottomLeft() - QPointF(8, 0), area.topLeft() - QPointF(8, 0))
        painter.setPen(theme.color("muted"))
        free = area.left() - GAP
        for place, text in setting.ticks:
            width = metrics.horizontalAdvance(text) + 4
            x = min(
                max(area.left() + place * area.width() - width / 2, area.left() - GAP / 2),
                area.right() + GAP / 2 - width,
            )
            if x >= free:  # labels that would overlap are left out
                painter.drawText(QRectF(x, area.bottom() + 6, width, 18), Qt.AlignmentFlag.AlignHCenter, text)
                free = x + width

    def _paint_dots(self, painter: QPainter, number: int) -> None:
        first = [trial for trial in range(len(self._words)) if trial not in (self._best, self._hovered)]
        faint = theme.color("plot_1")
        faint.setAlphaF(0.7)
        last = [(self._best, theme.color("accent"), DOT + 3), (self._hovered, theme.color("plot_2"), DOT + 3)]
        for trial, ink, size in [*((one, faint, DOT) for one in first), *last]:
            dot = self.place_of(number, trial) if trial is not None else None
            if dot is not None:
                painter.setPen(QPen(ink, size, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
                painter.drawPoint(dot)
