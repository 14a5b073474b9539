"""The curves of the Run page: the loss beside one of the others, on one x axis, fed with new points only."""

import time
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import isnan

from PySide6.QtCore import QEvent, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QPushButton, QStackedWidget, QWidget

from app import theme
from app.core import formatting
from app.core.i18n import tr
from app.core.runs.run_state import RunState
from app.core.runs.series import Resume, Series, SeriesCursor, breaks, effective_resumes
from app.widgets.boxes import holder, vbox
from app.widgets.card import Card
from app.widgets.forms.chips import chips, set_narrow
from app.widgets.plots.live_plot import LivePlot, SeriesStyle
from app.widgets.plots.plot_axis import X_LABELS
from app.widgets.plots.plot_series import SMOOTHING
from app.widgets.tables.layout_memory import RememberedSplitter

OTHER = "other/"
"""What the keys of the curves of the run begin with that this one is compared with."""
FEED_SECONDS = 0.003
"""The longest time a refresh spends on handing points over."""
PORTION = 2000
"""Points of one curve that are handed over at once."""

COLORS = ("plot_1", "plot_2", "plot_3", "plot_4", "plot_5")
OTHERS: dict[str, tuple[str, tuple[SeriesStyle, ...]]] = {
    tr("Learning rate"): (tr("Learning rate"), (SeriesStyle("learning_rate", tr("learning rate"), "line", "plot_3"),)),
    tr("Gradients"): (tr("Gradient norm"), (SeriesStyle("gradient_norm", tr("gradient norm"), "smoothed", "plot_4"),)),
    tr("Speed"): (
        tr("Throughput"),
        # Rows are so many fewer that beside tokens they would seem to stand still at 0; the tile tells them.
        (SeriesStyle("tokens_per_second", tr("tokens/s"), "smoothed", "plot_3"),),
    ),
    tr("Memory"): (
        tr("Memory (MB)"),
        (
            SeriesStyle("memory_mb", tr("RAM"), "line", "plot_1"),
            SeriesStyle("device_memory_mb", tr("accelerator"), "line", "plot_2", dash=1),
        ),
    ),
}
"""Page beside the metrics → its plot's title and curves."""
PAGES = (tr("Metrics"), *OTHERS)
NARROW = 860
"""Pixels of both plots together below which chips are narrow."""
TURN_MS = 150
"""Pause between two plots that are created in advance."""

SHORTEST_DOWN = 1.0
"""A run that was down for less only says that it was resumed, in seconds."""


class RunPlots(RememberedSplitter):
    """`show_state` takes over new points; a hidden plot stores them and draws when shown.

    All plots share their x axis, smoothing and crosshair.
    """

    message = Signal(str, str)
    event_file_requested = Signal()
    """All curves are wanted as TensorBoard reads them."""
    grown = Signal()
    """There is one more plot, which has no points yet."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("plots", Qt.Orientation.Horizontal, parent)
        self.loss = _plot(
            tr("Loss"),
            [
                SeriesStyle("loss", tr("training"), "smoothed", "plot_1"),
                SeriesStyle("evaluation", tr("evaluation"), "markers", "plot_2"),
            ],
        )
        self.metric_plots = [_metrics_plot([])]
        self.others: dict[str, LivePlot] = {}
        """Those that were made; each takes so long that the page would appear late with all of them at once."""
        self._turns = QTimer(self, interval=TURN_MS)
        self._turns.timeout.connect(self._make_next)
        self._pages = QStackedWidget()
        self._chips = QButtonGroup(self, exclusive=True)
        self.hold((self.loss, self._other_side()), (3, 2), (560, 460))
        self.axis, self.smoothing, self._run_name = "step", SMOOTHING, ""
        self._marks: tuple = ()
        self._metric_names: list[list[str]] = []
        self._metric_titles: list[str] = []
        self._feeds: list[CurveFeed] = []
        self._metric_feeds: list[CurveFeed] = []
        self._other_feeds: list[CurveFeed] = []
        self._other_name = ""
        for plot in self._all():
            self._join(plot)
        self.clear()

    def _other_side(self) -> QWidget:
        side = Card()
        row = QHBoxLayout()
        row.setSpacing(6)
        for number, name in enumerate(PAGES):
            chip = QPushButton(name)
            chip.setCheckable(True)
            theme.role(chip, "chip")
            self._chips.addButton(chip, number)
            row.addWidget(chip)
        row.addStretch(1)
        side.body.setSpacing(6)
        side.body.addLayout(row)
        side.add(self._pages, 1)
        for widget in (_metrics_page(self.metric_plots), *(QWidget() for _ in OTHERS)):
            self._pages.addWidget(widget)
        self._chips.button(0).setChecked(True)
        self._chips.idClicked.connect(self._on_page_chosen)
        return side

    @property
    def metrics(self) -> LivePlot:
        """The plot of the metrics, of several scales that of the first."""
        return self.metric_plots[0]

    def resizeEvent(self, event: QResizeEvent) -> None:
        """In a small window, reduce the chips to leave more room for the loss."""
        super().resizeEvent(event)
        set_narrow(self._chips, event.size().width() < NARROW)

    def show_page(self, name: str) -> None:
        """Show one of PAGES beside the loss."""
        self._chips.button(PAGES.index(name)).click()

    def _on_page_chosen(self, place: int) -> None:
        if place:
            self.other(PAGES[place])
        self._pages.setCurrentIndex(place)

    # Those beside the loss are created when they are requested, or one by one in advance

    def other(self, name: str) -> LivePlot:
        """The plot of one of OTHERS, created on first use."""
        if name not in self.others:
            title, styles = OTHERS[name]
            plot = self.others[name] = _plot(title, list(styles))
            place = PAGES.index(name)
            waiting = self._pages.widget(place)
            self._pages.insertWidget(place, _frameless(plot))
            if waiting is not None:
                self._pages.removeWidget(waiting)
                waiting.deleteLater()
            self._join(plot)
            self._feeds += _feeds_of(plot)
            self._marks, self._other_feeds = (), []  # marks and another run's curves are drawn in it, too
            self.grown.emit()
        return self.others[name]

    def _make_next(self) -> None:
        name = next((name for name in OTHERS if name not in self.others), "")
        if name:
            index = self._pages.currentIndex()
            self.other(name)
            self._pages.setCurrentIndex(index)
        else:
            self._turns.stop()

    def showEvent(self, event: QShowEvent) -> None:
        """Start drawing what is not visible yet."""
        super().showEvent(event)
        if len(self.others) < len(OTHERS):
            self._turns.start()

    def _join(self, plot: LivePlot) -> None:
        """Connect a plot to the shared axis, smoothing and crosshair."""
        plot.set_x(*X_LABELS[self.axis])
        plot.set_smoothing(self.smoothing)
        plot.message.connect(self.message)
        plot.hovered.connect(lambda x: self._on_hovered(plot, x))
        plot.saving.offer(tr("Export all curves for TensorBoard…"), self.event_file_requested.emit)
        self._name_files(plot)

    def _name_files(self, plot: LivePlot) -> None:
        title = plot.accessibleName().split(" (")[0].lower().replace(" ", "-")
        plot.saving.name = "-".join(filter(None, [self._run_name, title]))

    def _on_hovered(self, source: LivePlot, x: float | None) -> None:
        for plot in self._all():
            if plot is not source:
                plot.show_hover(x)

    def set_run_name(self, name: str) -> None:
        """Set the name used for saved plots."""
        if name != self._run_name:
            self._run_name = name
            for plot in self._all():
                self._name_files(plot)

    def set_axis(self, axis: str) -> None:
        """Draw everything over another of AXES; points are sent again, a few milliseconds at a time."""
        if axis == self.axis:
            return
        self.axis, self._marks = axis, ()
        for plot in self._all():
            plot.set_x(*X_LABELS[axis])
            plot.clear_series(list(plot.series))
        for feed in (*self._feeds, *self._metric_feeds, *self._other_feeds):
            feed.cursor = SeriesCursor()

    def set_smoothing(self, share: float) -> None:
        """Set the smoothing window as a share of the visible range; 0 draws the points themselves."""
        self.smoothing = share
        for plot in self._all():
            plot.set_smoothing(share)

    def clear(self) -> None:
        """Clear everything for another run."""
        for plot in (self.loss, *self.others.values()):
            plot.clear()
        self._use_metrics([])
        self._marks = ()
        self._feeds = [CurveFeed(self.loss, "loss"), CurveFeed(self.loss, "evaluation")]
        self._feeds += [feed for plot in self.others.values() for feed in _feeds_of(plot)]
        self.clear_other()

    def show_state(self, state: RunState) -> bool:
        """Send new points to all plots for a few milliseconds; returns whether there are more."""
        groups = _by_scale(state.metric_names[: len(COLORS)], state)
        if groups != self._metric_names or _metric_titles(groups) != self._metric_titles:
            self._use_metrics(groups)
        self._show_marks(state)
        waiting = feed_plots([*self._feeds, *self._metric_feeds], state, self.axis)
        # Whoever had to wait is first the next time.
        first = [feed for feed in waiting if feed in self._feeds]
        self._feeds = [*first, *(feed for feed in self._feeds if feed not in first)]
        return bool(waiting)

    def show_other(self, state: RunState, name: str) -> bool:
        """Send another run's points, labelled `name`; returns whether there are more."""
        if not self._other_feeds or name != self._other_name:
            self._name_other(name)
        ends = state.clock.at(self.axis, array("d", breaks(self.axis, state.resumes)))
        for plot in self._all():
            plot.set_breaks(ends, others=True)
        return bool(feed_plots(self._other_feeds, state, self.axis))

    @property
    def shows_other(self) -> bool:
        """Whether another run's curves were requested since the last clear, here or by a new plot."""
        return bool(self._other_feeds)

    def clear_other(self) -> None:
        """Remove the comparison."""
        self._other_feeds, self._other_name = [], ""
        for plot in self._all():
            plot.clear_series([key for key in plot.series if key.startswith(OTHER)])

    def _name_other(self, name: str) -> None:
        self.clear_other()
        self._other_name = name
        for plot in self._all():
            for key in [key for key in plot.series if key.startswith(OTHER)]:
                plot.rename(key, name)
                self._other_feeds.append(CurveFeed(plot, key))

    def _all(self) -> list[LivePlot]:
        return [self.loss, *self.metric_plots, *self.others.values()]

    def _use_metrics(self, groups: list[list[str]]) -> None:
        self._metric_feeds = []
        self._marks = ()
        if not groups and not self._metric_names:
            return
        # A plot's curves are fixed; which metrics there are is known after the first evaluation.
        index = self._pages.currentIndex()
        old = self._pages.widget(0)
        self.metric_plots = [_metrics_plot(names) for names in groups or [[]]]
        self._pages.insertWidget(0, _metrics_page(self.metric_plots, groups))
        if old is not None:
            self._pages.removeWidget(old)
            old.deleteLater()
        self._pages.setCurrentIndex(index)
        for plot in self.metric_plots:
            self._join(plot)
        self._metric_names = groups
        self._metric_titles = _metric_titles(groups)
        pairs = zip(self.metric_plots, groups, strict=False)
        self._metric_feeds = [CurveFeed(plot, name) for plot, names in pairs for name in names]
        self._other_feeds = []  # those of the old plots are gone; `show_other` begins anew

    def _show_marks(self, state: RunState) -> None:
        best = state.best.step if state.best is not None else None
        marks = (best, len(state.resumes), tuple(state.checkpoints), len(state.clock) > 0)
        if marks == self._marks:
            return
        self._marks = marks
        lines = [
            (self._place(state, resume.from_step), self._resume_words(resume), "muted")
            for resume in effective_resumes(state.resumes)
        ]
        if best is not None:
            lines.append((self._place(state, best), _title_of_best(state), "success"))
        ticks = [self._place(state, step) for step in sorted(state.checkpoints)]
        ends = [self._place(state, step) for step in breaks(self.axis, state.resumes)]
        for plot in self._all():
            plot.set_breaks(ends)
        for plot in (self.loss, *self.metric_plots):
            plot.set_marks(lines)
            plot.set_ticks(ticks, tr("checkpoint") if ticks and plot is self.loss else "")

    def _place(self, state: RunState, step: int) -> float:
        return state.clock.at(self.axis, array("d", [step]))[0]

    def _resume_words(self, resume: Resume) -> str:
        if self.axis == "time" and resume.down_seconds >= SHORTEST_DOWN:
            return tr("down {down_seconds}", down_seconds=formatting.duration(resume.down_seconds))
        return tr("resumed")


def _title_of_best(state: RunState) -> str:
    """What is best there; without a deciding metric that step is the lowest loss, and its model is not the saved one."""
    decides = state.plan.best_metric if state.plan else None
    if decides in (None, "loss"):
        return tr("lowest evaluation loss")
    return tr("best: {metric}", metric=formatting.metric_title(decides))


@dataclass(eq=False)
class CurveFeed:
    """One curve of a plot, and how much of it has been sent."""

    plot: LivePlot
    key: str
    cursor: SeriesCursor = field(default_factory=SeriesCursor)

    def give(self, state: RunState, axis: str) -> bool:
        """Send new points at their positions on the axis; returns whether there are more."""
        series = _series_of(self, state)
        fresh = series.fresh(self.cursor, PORTION) if series is not None else None
        if not fresh:
            return False
        if fresh.cut is not None:
            self.plot.truncate_after(state.clock.at(axis, array("d", [fresh.cut]))[0], self.key)
        self.plot.append(self.key, state.clock.at(axis, fresh.xs), fresh.ys)
        return len(fresh.xs) == PORTION


def feed_plots(feeds: Sequence[CurveFeed], state: RunState, axis: str) -> list[CurveFeed]:
    """Send points for a few milliseconds; returns the feeds with more to send."""
    waiting, end = list(feeds), time.perf_counter() + FEED_SECONDS
    while waiting and time.perf_counter() < end:
        feed = waiting.pop(0)
        if feed.give(state, axis):
            waiting.append(feed)
    return waiting


def _series_of(feed: CurveFeed, state: RunState) -> Series | None:
    key = feed.key.removeprefix(OTHER)
    if key == "evaluation":
        return state.metric_series.get("loss")
    return state.series[key] if key in state.series else state.metric_series.get(key)


def _feeds_of(plot: LivePlot) -> list[CurveFeed]:
    return [CurveFeed(plot, key) for key in plot.series if not key.startswith(OTHER)]


def _plot(title: str, styles: Sequence[SeriesStyle]) -> LivePlot:
    """Each curve with the other run's counterpart behind it, empty without a comparison."""
    twins = [replace(style, key=f"{OTHER}{style.key}", label="", twin_of=style.key) for style in styles]
    return LivePlot(title, [*styles, *twins])


def _frameless(plot: LivePlot) -> LivePlot:
    """The plot without a frame, inside a card whose chips already name it."""
    name = plot.accessibleName()
    plot.set_title("")
    plot.setAccessibleName(name)
    theme.role(plot, "page")
    layout = plot.layout()
    assert layout is not None
    layout.setContentsMargins(0, 0, 0, 0)
    layout.setSpacing(4)
    return plot


def _by_scale(names: Sequence[str], state: RunState) -> list[list[str]]:
    """The shares, between -1 and 1, apart from the others: an accuracy beside a perplexity would be a line at 0."""
    groups: dict[bool, list[str]] = {}
    for name in names:
        is_share = all(isnan(value) or abs(value) <= 1 for value in state.metric_series[name].ys)
        groups.setdefault(is_share, []).append(name)
    return [*groups.values()]


def _metric_titles(groups: Sequence[Sequence[str]]) -> list[str]:
    return [formatting.metric_title(name) for names in groups for name in names]


class MetricPlots(QWidget):
    """Plots of metrics on different scales, one above the other; without room for that, one that a chip chooses."""

    def __init__(self, plots: Sequence[LivePlot], titles: Sequence[str]) -> None:
        super().__init__()
        self._plots, self._shown, self._is_low = plots, 0, False
        group, row = chips(titles, self._on_chosen)
        set_narrow(group, is_narrow=True)
        row.addStretch(1)
        self.switch = holder(row)
        vbox(self.switch, *((_frameless(plot), 1) for plot in plots), spacing=6, parent=self)
        row.setContentsMargins(0, 0, 0, 0)
        self._show()

    def _on_chosen(self, place: int) -> None:
        self._shown = place
        self._show()

    def _show(self) -> None:
        self.switch.setVisible(self._is_low)
        for place, plot in enumerate(self._plots):
            plot.setVisible(not self._is_low or place == self._shown)

    def minimumSizeHint(self) -> QSize:
        """That of one plot: a page that is lower than all of them shows one."""
        hints = [plot.minimumSizeHint() for plot in self._plots]
        height = max(hint.height() for hint in hints) + self.switch.sizeHint().height() + 6
        return QSize(max(hint.width() for hint in hints), height)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Show as many as there is room for."""
        super().resizeEvent(event)
        self._fit()

    def event(self, event: QEvent, /) -> bool:
        """The same once a plot has its first points, or a longer legend."""
        if event.type() == QEvent.Type.LayoutRequest:
            self._fit()
        return super().event(event)

    def _fit(self) -> None:
        needed = sum(plot.minimumSizeHint().height() for plot in self._plots) + 6 * (len(self._plots) - 1)
        if (is_low := self.height() < needed) != self._is_low:
            self._is_low = is_low
            self._show()


def _metrics_page(plots: Sequence[LivePlot], groups: Sequence[Sequence[str]] = ()) -> QWidget:
    """Several plots with a chip for each; a single one as it is."""
    return _frameless(plots[0]) if len(plots) == 1 else MetricPlots(plots, [_group_title(names) for names in groups])


def _group_title(names: Sequence[str]) -> str:
    """The first metric of a plot, for its chip."""
    title = formatting.metric_title(names[0])
    return title if len(names) == 1 else f"{title} …"


def _metrics_plot(names: list[str]) -> LivePlot:
    styles = [
        SeriesStyle(name, formatting.metric_title(name), "markers", color)
        for name, color in zip(names, COLORS, strict=False)
    ]
    return _plot(tr("Metrics"), styles)
