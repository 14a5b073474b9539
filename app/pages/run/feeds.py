"""Owns how the points of a run's curves reach its plots: each once, a few milliseconds at a time."""

import time
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field

from app.core.runs.run_state import RunState
from app.core.runs.series import Cursor, Series
from app.widgets.plots.live_plot import LivePlot

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

    def give(self, state: RunState, axis: str) -> bool:
        """Hand over points that the plot has not got, at their places on the axis; says whether there are more."""
        series = _series_of(self, state)
        fresh = series.fresh(self.cursor, PORTION) if series is not None else None
        if not fresh:
            return False
        if fresh.cut is not None:
            self.plot.truncate_after(state.clock.at(axis, array("d", [fresh.cut]))[0], self.key)
        self.plot.append(self.key, state.clock.at(axis, fresh.xs), fresh.ys)
        return len(fresh.xs) == PORTION


def fed(feeds: Sequence[Feed], state: RunState, axis: str) -> list[Feed]:
    """Hands over points for a few milliseconds; the feeds that have more, or had no turn."""
    waiting, end = list(feeds), time.perf_counter() + FEED_SECONDS
    while waiting and time.perf_counter() < end:
        feed = waiting.pop(0)
        if feed.give(state, axis):
            waiting.append(feed)
    return waiting


def _series_of(feed: Feed, state: RunState) -> Series | None:
    key = feed.key.removeprefix(OTHER)
    if key == "evaluation":
        return state.metric_series.get("loss")
    return state.series[key] if key in state.series else state.metric_series.get(key)
