"""Owns the curves of the Run page: the loss beside one of the others, fed with new points only."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QPushButton, QSplitter, QStackedWidget, QWidget

from app import theme
from app.core import wording
from app.core.run_state import RunState
from app.core.series import Cursor, Series
from app.widgets.card import Card
from app.widgets.live_plot import LivePlot, SeriesStyle

COLORS = ("plot_1", "plot_2", "plot_3", "plot_4", "plot_5")
PAGES = ("Metrics", "Learning rate", "Gradients", "Speed", "Memory")

OTHER = "other/"
"""What the keys of the curves of the run begin with that this one is compared with."""
FEED_SECONDS = 0.003
"""The longest time a refresh spends on handing points over."""
PORTION = 2000
"""Points of one curve that are handed over at once."""


@dataclass(eq=False)
class Feed:
    """One curve of a plot and how far it was fed."""

    plot: LivePlot
    key: str
    cursor: Cursor = field(default_factory=Cursor)

    def give(self, series: Series | None) -> bool:
        """Hand over points that the plot has not got; says whether there are more."""
        fresh = series.fresh(self.cursor, PORTION) if series is not None else None
        if not fresh:
            return False
        if fresh.cut is not None:
            self.plot.truncate_after(fresh.cut, self.key)
        self.plot.append(self.key, fresh.xs, fresh.ys)
        return len(fresh.xs) == PORTION


class Plots(QSplitter):
    """`show_state` takes over what is new; a hidden plot holds its points and draws when it is seen."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setChildrenCollapsible(False)
        self.setHandleWidth(14)
        self.loss = _plot(
            "Loss",
            [
                SeriesStyle("loss", "training", "smoothed", "plot_1"),
                SeriesStyle("evaluation", "evaluation", "markers", "plot_2"),
            ],
        )
        self.metrics = _metrics_plot([])
        self.others = {
            "Learning rate": _plot("Learning rate", [SeriesStyle("learning_rate", "learning rate", "line", "plot_3")]),
            "Gradients": _plot("Gradient norm", [SeriesStyle("gradient_norm", "gradient norm", "smoothed", "plot_4")]),
            "Speed": _plot(
                "Throughput",
                [
                    SeriesStyle("rows_per_second", "rows / s", "smoothed", "plot_5"),
                    SeriesStyle("tokens_per_second", "tokens / s", "smoothed", "plot_3"),
                ],
            ),
            "Memory": _plot(
                "Memory (MB)",
                [
                    SeriesStyle("memory_mb", "processes", "line", "plot_1"),
                    SeriesStyle("device_memory_mb", "accelerator", "line", "plot_2"),
                ],
            ),
        }
        self._pages = QStackedWidget()
        self._chips = QButtonGroup(self, exclusive=True)
        self.addWidget(self.loss)
        self.addWidget(self._other_side())
        self.setStretchFactor(0, 3)
        self.setStretchFactor(1, 2)
        self.setSizes([560, 460])
        self._marks: list[tuple[float, str, str]] = []
        self._metric_names: list[str] = []
        self._feeds: list[Feed] = []
        self._metric_feeds: list[Feed] = []
        self._other_feeds: list[Feed] = []
        self._other_name = ""
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
        side.body.setSpacing(2)
        side.body.addLayout(row)
        side.add(self._pages, 1)
        for plot in (self.metrics, *self.others.values()):
            self._pages.addWidget(_frameless(plot))
        self._chips.button(0).setChecked(True)
        self._chips.idClicked.connect(self._pages.setCurrentIndex)
        return side

    def show_page(self, name: str) -> None:
        """Show one of PAGES beside the loss."""
        self._chips.button(PAGES.index(name)).click()

    def clear(self) -> None:
        """Forget everything: another run is shown."""
        for plot in (self.loss, *self.others.values()):
            plot.clear()
        self._use_metrics([])
        self._marks = []
        self._feeds = [Feed(self.loss, "loss"), Feed(self.loss, "evaluation")]
        self._feeds += [
            Feed(plot, key) for plot in self.others.values() for key in plot.series if not key.startswith(OTHER)
        ]
        self.clear_other()

    def show_state(self, state: RunState) -> bool:
        """Feed all plots with what is new, for a few milliseconds; says whether more is waiting."""
        names = [name for name in state.metric_series if name != "loss" and not name.endswith("/loss")][: len(COLORS)]
        if names != self._metric_names:
            self._use_metrics(names)
        self._show_marks(state)
        waiting = _fed([*self._feeds, *self._metric_feeds], state)
        # Whoever had to wait is first the next time.
        first = [feed for feed in waiting if feed in self._feeds]
        self._feeds = [*first, *(feed for feed in self._feeds if feed not in first)]
        return bool(waiting)

    def show_other(self, state: RunState, name: str) -> bool:
        """Feed the curves of another run, called by `name`, below these; says whether more is waiting."""
        if not self._other_feeds or name != self._other_name:
            self._name_other(name)
        return bool(_fed(self._other_feeds, state))

    @property
    def shows_other(self) -> bool:
        """Whether another run's curves were asked for since the last clearing, here or by a new plot of metrics."""
        return bool(self._other_feeds)

    def clear_other(self) -> None:
        """Nothing is compared."""
        self._other_feeds, self._other_name = [], ""
        for plot in self._all():
            plot.clear_series([key for key in plot.series if key.startswith(OTHER)])

    def _name_other(self, name: str) -> None:
        self.clear_other()
        self._other_name = name
        for plot in self._all():
            for key in [key for key in plot.series if key.startswith(OTHER)]:
                plot.rename(key, name)
                self._other_feeds.append(Feed(plot, key))

    def _all(self) -> list[LivePlot]:
        return [self.loss, self.metrics, *self.others.values()]

    def _use_metrics(self, names: list[str]) -> None:
        self._metric_feeds = []
        self._marks = []
        if not names and not self._metric_names:
            return
        # A plot's curves are fixed; which metrics there are is known after the first evaluation.
        shown = self._pages.currentIndex()
        old, self.metrics = self.metrics, _metrics_plot(names)
        self._pages.insertWidget(0, _frameless(self.metrics))
        self._pages.removeWidget(old)
        old.deleteLater()
        self._pages.setCurrentIndex(shown)
        self._metric_names = names
        self._metric_feeds = [Feed(self.metrics, name) for name in names]
        self._other_feeds = []  # those of the old plot are gone; `show_other` begins anew

    def _show_marks(self, state: RunState) -> None:
        marks: list[tuple[float, str, str]] = [(resume.from_step, "resumed", "muted") for resume in state.resumes]
        if state.best is not None:
            marks.append((state.best.step, "best", "success"))
        if marks != self._marks:
            self._marks = marks
            self.loss.set_marks(marks)
            self.metrics.set_marks(marks)


def _fed(feeds: Sequence[Feed], state: RunState) -> list[Feed]:
    """Hands over points for a few milliseconds; the feeds that have more, or had no turn."""
    waiting, end = list(feeds), time.perf_counter() + FEED_SECONDS
    while waiting and time.perf_counter() < end:
        feed = waiting.pop(0)
        if feed.give(_series_of(feed, state)):
            waiting.append(feed)
    return waiting


def _series_of(feed: Feed, state: RunState) -> Series | None:
    key = feed.key.removeprefix(OTHER)
    if key == "evaluation":
        return state.metric_series.get("loss")
    return state.series[key] if key in state.series else state.metric_series.get(key)


def _plot(title: str, styles: Sequence[SeriesStyle]) -> LivePlot:
    """Each curve with its like of another run below it, which is empty where nothing is compared."""
    twins = [replace(style, key=f"{OTHER}{style.key}", label="", twin_of=style.key) for style in styles]
    return LivePlot(title, [*styles, *twins])


def _frameless(plot: LivePlot) -> LivePlot:
    """The plot as a page inside another card, whose chips name it already."""
    name = plot.accessibleName()
    plot.set_title("")
    plot.setAccessibleName(name)
    theme.role(plot, "page")
    layout = plot.layout()
    assert layout is not None
    layout.setContentsMargins(0, 0, 0, 0)
    layout.setSpacing(4)
    return plot


def _metrics_plot(names: list[str]) -> LivePlot:
    styles = [
        SeriesStyle(name, wording.metric_title(name), "markers", color)
        for name, color in zip(names, COLORS, strict=False)
    ]
    return _plot("Metrics", styles)
