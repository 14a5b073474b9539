"""The plot that overlays the curves of several runs, and the list that names them."""

import time
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QIcon, QPainter, QPen, QPixmap
from PySide6.QtWidgets import (
    QHBoxLayout,
    QListWidget,
    QListWidgetItem,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from app import theme
from app.core import formatting
from app.core.i18n import tr
from app.core.runs.run_comparison import CurveKind, curves_of
from app.core.runs.run_state import RunState
from app.core.runs.series import SeriesCursor, breaks
from app.widgets.card import Card, label
from app.widgets.forms.inputs import QuietComboBox
from app.widgets.plots.live_plot import LivePlot, SeriesStyle
from app.widgets.plots.plot_axis import AXIS_TITLES, X_LABELS
from app.widgets.plots.plot_series import DASHES
from app.widgets.tables.layout_memory import RememberedSplitter

COLORS = ("plot_1", "plot_2", "plot_3", "plot_4", "plot_5")
PATH = Qt.ItemDataRole.UserRole
VALUE = Qt.ItemDataRole.UserRole + 1
GAP = 10
BESIDE_NAME = 170
"""Pixels of the check box, the line, the value and the card's margins."""

SMOOTHINGS = {tr("None"): 0.0, tr("Light"): 0.01, tr("Medium"): 0.03, tr("Strong"): 0.1}
"""Words → the share of the curve that one point is the mean of."""
FEED_MS = 25
FEED_SECONDS = 0.003
PORTION = 2000
LEAST_LIST = 260
"""Pixels of the list of runs; longer names get up to a third of the width."""
DETAIL, LEAST_DETAIL = 5000, 200
"""Points of all curves together that are drawn, and of one at least."""


@dataclass(eq=False)
class _Feed:
    path: Path
    key: str
    cursor: SeriesCursor = field(default_factory=SeriesCursor)


class OverlayPlot(QWidget):
    """`show_runs` names the runs; `feed_soon` signals that their states have new points."""

    message = Signal(str, str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        theme.follow(self)
        self._names: dict[Path, str] = {}
        self._places: dict[Path, int] = {}
        """Which of the colours and dashes each has."""
        self._states: Mapping[Path, RunState] = {}
        self._feeds: list[_Feed] = []
        self._curves: list[CurveKind] = []
        self._hidden: set[Path] = set()
        self.choice = QuietComboBox(name=tr("Curve"))
        self.choice.setMinimumContentsLength(16)
        self.choice.currentIndexChanged.connect(self._rebuild)
        self.smoothing = QuietComboBox()
        self.smoothing.setAccessibleName(tr("Smoothing"))
        for words, share in SMOOTHINGS.items():
            self.smoothing.addItem(words, share)
        self.smoothing.setCurrentText(tr("Medium"))
        self.smoothing.currentIndexChanged.connect(self._rebuild)
        self.axis = QuietComboBox()
        self.axis.setAccessibleName(tr("X axis"))
        for name, words in AXIS_TITLES.items():
            self.axis.addItem(words, name)
        self.axis.currentIndexChanged.connect(self._rebuild)
        self.legend = CurveList()
        self.legend.shown.connect(self._on_shown)
        self.plot: LivePlot | None = None
        self._timer = QTimer(self, interval=FEED_MS, singleShot=True)
        self._timer.timeout.connect(self._feed)
        self._build()

    def _build(self) -> None:
        top = QHBoxLayout()
        top.setSpacing(8)
        for words, box in ((tr("Curve"), self.choice), (tr("X axis"), self.axis), (tr("Smoothing"), self.smoothing)):
            top.addWidget(label(words, "muted"))
            top.addWidget(box)
        top.addStretch(1)
        named = Card(tr("Runs"))
        named.add(self.legend, 1)
        self._split = RememberedSplitter("overlay")
        self._split.addWidget(named)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(10)
        column.addLayout(top)
        column.addWidget(self._split, 1)

    def show_runs(
        self,
        paths: Sequence[Path],
        names: Sequence[str],
        states: Mapping[Path, RunState],
        places: Sequence[int] | None = None,
    ) -> None:
        """Compare these; `states` is read whenever there are new points. Those with the same place share a colour."""
        self._names, self._states = dict(zip(paths, names, strict=True)), states
        self._places = dict(zip(paths, range(len(paths)) if places is None else places, strict=True))
        self._curves, self._hidden = [], set()
        self.choice.clear()
        self.legend.fill(self._names, self._hidden, self._places)
        self._drop_plot()
        self.feed_soon()

    def _drop_plot(self) -> None:
        if self.plot is not None:
            self.plot.hide()
            self.plot.setParent(None)  # at once, or the sizes of the next one would be given to this one
            self.plot.deleteLater()
            self.plot = None

    def curve(self) -> CurveKind | None:
        """The current curve."""
        return self.choice.currentData()

    def feed_soon(self) -> None:
        """Take over new points in the next event loop turn."""
        if not self._timer.isActive():
            self._timer.start()

    def apply_theme(self) -> None:
        """Redraw the list's lines in the current colours."""
        self.legend.fill(self._names, self._hidden, self._places)

    def _offer_curves(self) -> None:
        found = curves_of(self._states.values())
        if found == self._curves:
            return
        chosen = self.curve()
        self._curves = found
        self.choice.replace_items((one.title, one) for one in found)
        if self.curve() != chosen:
            self._rebuild()

    def _rebuild(self) -> None:
        # A plot's curves are fixed: another metric or smoothing gets a plot of its own.
        curve, share = self.curve(), self.smoothing.currentData()
        if curve is None:
            return
        kind = "markers" if curve.measured else "smoothed" if share else "line"
        detail = max(LEAST_DETAIL, min(800, DETAIL // max(1, len(self._names))))
        styles = [
            SeriesStyle(
                str(path), name, kind, COLORS[place % len(COLORS)], dash=place // len(COLORS), raw=False, detail=detail
            )
            for path, name in self._names.items()
            for place in (self._places[path],)
        ]
        self._drop_plot()
        self.plot = LivePlot(curve.title, styles)
        self.plot.set_x(*X_LABELS[self.axis.currentData()])
        self.plot.saving.name = f"runs-{curve.key.replace('/', '-').replace('_', '-')}"
        self.plot.message.connect(self.message)
        self.plot.hide_legend()
        self.plot.hovered.connect(self._show_values)
        if share:
            self.plot.set_smoothing(share)
        for path in self._hidden:
            self.plot.set_curve_hidden(str(path), True)
        self._split.insertWidget(0, self.plot)
        self._split.setStretchFactor(0, 1)
        listed = min(max(LEAST_LIST, self.legend.wanted_width()), self.width() // 3)
        self._split.setSizes([self.width() - listed - 14, listed])
        self._feeds = [_Feed(path, str(path)) for path in self._names]
        self.feed_soon()

    def _feed(self) -> None:
        self._offer_curves()
        curve, plot = self.curve(), self.plot
        if curve is None or plot is None:
            return
        end, waiting = time.perf_counter() + FEED_SECONDS, list(self._feeds)
        more: list[_Feed] = []
        while waiting and time.perf_counter() < end:
            one = waiting.pop(0)
            if self._give(one, curve, plot):
                more.append(one)
        if waiting or more:
            self._feeds = [*waiting, *more, *(one for one in self._feeds if one not in waiting and one not in more)]
            self._timer.start()
        self._show_values(None)

    def _give(self, feed: _Feed, curve: CurveKind, plot: LivePlot) -> bool:
        state, axis = self._states[feed.path], self.axis.currentData()
        series = curve.of(state)
        fresh = series.fresh(feed.cursor, PORTION) if series is not None else None
        if not fresh:
            return False
        if fresh.cut is not None:
            plot.truncate_after(state.clock.at(axis, array("d", [fresh.cut]))[0], feed.key)
        plot.series[feed.key].set_breaks(list(state.clock.at(axis, array("d", breaks(axis, state.resumes)))))
        plot.append(feed.key, state.clock.at(axis, fresh.xs), fresh.ys)
        return len(fresh.xs) == PORTION

    def _show_values(self, x: float | None) -> None:
        """Show each line's value at the mouse beside its name, else its last value."""
        if self.plot is None:
            return
        values: dict[Path, str] = {}
        for path in self._names:
            series = self.plot.series[str(path)]
            place = (series.points.xs[-1] if x is None else x) if len(series) else None
            point = series.value_at(place) if place is not None else None
            mean = series.mean_at(place) if point is not None and place is not None else None
            values[path] = formatting.number(point[1] if mean is None else mean) if point else ""
        self.legend.show_values(values)

    def _on_shown(self, path: Path, on: bool) -> None:
        (self._hidden.discard if on else self._hidden.add)(path)
        if self.plot is not None:
            self.plot.set_curve_hidden(str(path), not on)


class _ValueAtTheEnd(QStyledItemDelegate):
    """Shortens the name if necessary, never the value."""

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        value, whole = str(index.data(VALUE) or ""), QRect(option.rect)
        width = option.fontMetrics.horizontalAdvance(value)
        named = QStyleOptionViewItem(option)
        named.rect = whole.adjusted(0, 0, -(width + GAP) if value else 0, 0)
        super().paint(painter, named, index)
        painter.save()
        painter.setPen(theme.color("muted"))
        painter.drawText(whole, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, value)
        painter.restore()


class CurveList(QListWidget):
    """Emits `shown` when the user hides a run's curve or shows it again."""

    shown = Signal(object, bool)
    """The run's folder, and whether its curve is to be seen."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(tr("Compared runs"))
        self.setIconSize(QSize(26, 12))
        self.setSpacing(3)
        self.setMinimumWidth(200)
        self.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setItemDelegate(_ValueAtTheEnd(self))
        self.itemChanged.connect(self._on_item_changed)

    def fill(
        self, names: Mapping[Path, str], hidden: Sequence[Path] | set[Path], places: Mapping[Path, int]
    ) -> None:  # fmt: skip
        """List these runs again."""
        self.blockSignals(True)
        self.clear()
        for path, name in names.items():
            item = QListWidgetItem(_line_icon(places[path]), name)
            item.setData(PATH, str(path))
            item.setToolTip(f"{name}\n{path}")
            item.setFlags(Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsUserCheckable | Qt.ItemFlag.ItemIsSelectable)
            item.setCheckState(Qt.CheckState.Unchecked if path in hidden else Qt.CheckState.Checked)
            self.addItem(item)
        self.blockSignals(False)

    def wanted_width(self) -> int:
        """Pixels of the card with which every name and value is shown whole."""
        longest = max(
            (self.fontMetrics().horizontalAdvance(self.item(row).text()) for row in range(self.count())), default=0
        )
        return longest + BESIDE_NAME

    def show_values(self, values: Mapping[Path, str]) -> None:
        """Set the value beside each name."""
        self.blockSignals(True)
        for row in range(self.count()):
            item = self.item(row)
            value = values.get(Path(item.data(PATH)), "")
            if item.data(VALUE) != value:
                item.setData(VALUE, value)
                item.setData(Qt.ItemDataRole.AccessibleTextRole, f"{item.text()} {value}".strip())
        self.blockSignals(False)
        self.viewport().update()

    def _on_item_changed(self, item: QListWidgetItem) -> None:
        self.shown.emit(Path(item.data(PATH)), item.checkState() == Qt.CheckState.Checked)


def _line_icon(place: int) -> QIcon:
    """A sample of the run's line, so that it is not identified by colour or dash alone."""
    picture = QPixmap(26, 12)
    picture.fill(Qt.GlobalColor.transparent)
    with QPainter(picture) as painter:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(theme.color(COLORS[place % len(COLORS)]), 2, DASHES[place // len(COLORS) % len(DASHES)]))
        painter.drawLine(1, 6, 25, 6)
    return QIcon(picture)
