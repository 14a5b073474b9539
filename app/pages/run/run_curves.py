"""The curves of several runs in one plot: one stands out, that of the best run or the mean of all, the others are faint."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np
from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import QSizePolicy, QWidget

from app import theme
from app.core.i18n import tr
from app.core.runs.run_comparison import CurveKind, curves_of
from app.core.runs.run_state import RunState
from app.core.runs.series import SeriesCursor
from app.services.run_watcher import ComparedStates
from app.widgets.boxes import hbox, holder, vbox
from app.widgets.card import label
from app.widgets.forms.inputs import QuietComboBox
from app.widgets.plots.live_plot import LivePlot, SeriesStyle

FEED_MS = 300
MEAN = "mean"
MOST_NAMED = 6
"""Curves that a legend names; the strong one stands out anyway."""


class RunCurves(QWidget):
    """`show_runs` says which; the user chooses which kind of curve.

    `note` says which line is the strong one. Inside a card, the plot is not one itself.
    """

    message = Signal(str, str)

    def __init__(
        self, note: str, *, has_mean: bool = False, is_in_card: bool = False, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._has_mean, self._is_in_card = has_mean, is_in_card
        self._names: dict[Path, str] = {}
        self._strong: Path | None = None
        self._preferred = ""
        self._is_chosen = False
        """Whether the user has chosen a kind of curve."""
        self._kinds: list[CurveKind] = []
        self._cursors: dict[Path, SeriesCursor] = {}
        self.plot: LivePlot | None = None
        self.states = ComparedStates(self)
        self.states.advanced.connect(self._feed_soon)
        self._timer = QTimer(self, singleShot=True, interval=FEED_MS)
        self._timer.timeout.connect(self._feed)
        self.choice = QuietComboBox(name=tr("Curve"))
        self.choice.setMinimumContentsLength(16)
        self.choice.currentIndexChanged.connect(self._rebuild)
        self.choice.activated.connect(self._on_activated)
        self._place = vbox()
        top = hbox(label(tr("Curve"), "muted"), self.choice, 1, label(note, "faint"), spacing=8)
        room = holder(self._place)
        room.setSizePolicy(
            QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Ignored
        )  # a plot asks for far more than it needs
        vbox(top, (room, 1), spacing=4, parent=self)

    def show_runs(
        self, names: Mapping[Path, str], steps: Mapping[Path, int], *, strong: Path | None = None, preferred: str = ""
    ) -> None:
        """Show the curves of these runs; of those shown before, only the points that are new are read.

        `steps` is how far each run is, by which those are found that have continued. `preferred` is the metric that is shown until
        the user chooses another curve.
        """
        self._preferred = preferred
        if dict(names) != self._names or strong != self._strong:
            self._names, self._strong = dict(names), strong
            self._rebuild()
        self.states.follow(list(names), self._continued(steps))
        self._feed_soon()

    def _continued(self, steps: Mapping[Path, int]) -> Collection[Path]:
        states = self.states.states
        return {path for path, step in steps.items() if path in states and states[path].step != step}

    def clear(self) -> None:
        """Show nothing, and watch no run any more."""
        self.states.stop()
        self.states.states = {}
        self._names, self._strong, self._kinds, self._is_chosen = {}, None, [], False
        self.choice.replace_items(())
        self._drop_plot()

    def _on_activated(self, place: int) -> None:
        self._is_chosen = True

    def _feed_soon(self) -> None:
        if not self._timer.isActive():
            self._timer.start()

    def _drop_plot(self) -> None:
        if self.plot is not None:
            self._place.removeWidget(self.plot)
            self.plot.hide()
            self.plot.deleteLater()
            self.plot = None

    def _offer_curves(self) -> None:
        found, before = curves_of(self.states.states.values()), self.choice.currentData()
        if found == self._kinds:
            return
        self._kinds = found
        self.choice.replace_items((one.title, one) for one in found)
        preferred = CurveKind(self._preferred, measured=True)
        if not self._is_chosen and preferred in found:
            self.choice.blockSignals(True)
            self.choice.setCurrentIndex(found.index(preferred))
            self.choice.blockSignals(False)
        if self.plot is None or self.choice.currentData() != before:
            self._rebuild()

    def _rebuild(self) -> None:
        curve: CurveKind | None = self.choice.currentData()
        self._drop_plot()
        if curve is None:
            return
        kind = "markers" if curve.measured else "smoothed"
        first = [path for path in self._names if path == self._strong]
        styles = [SeriesStyle(MEAN, tr("Mean"), kind, raw=False)] if self._has_mean else []
        styles += [
            SeriesStyle(str(path), self._names[path], kind, raw=False, faint=path != self._strong)
            for path in [*first, *(path for path in self._names if path != self._strong)]
        ]
        self.plot = LivePlot("", styles)
        if self._is_in_card:
            theme.role(self.plot, "plain")
            self.plot.layout().setContentsMargins(0, 0, 0, 0)  # type: ignore[union-attr]
        self.plot.message.connect(self.message)
        if len(styles) > MOST_NAMED:
            self.plot.hide_legend()
        self._cursors = {path: SeriesCursor() for path in self._names}
        self._place.addWidget(self.plot, 1)
        self._feed_soon()

    def _feed(self) -> None:
        self._offer_curves()
        curve, plot = self.choice.currentData(), self.plot
        if curve is None or plot is None:
            return
        is_behind = False
        for path, cursor in self._cursors.items():
            series = curve.of(self.states.states[path])
            fresh = series.fresh(cursor) if series is not None else None
            if fresh and fresh.cut is not None:
                plot.truncate_after(fresh.cut, str(path))
            if fresh:
                plot.append(str(path), fresh.xs, fresh.ys)
            is_behind = is_behind or (series is not None and cursor.index < len(series))
        if self._has_mean:
            plot.clear_series([MEAN])
            plot.append(MEAN, *mean_curve(curve, list(self.states.states.values())))
        if is_behind:
            self._feed_soon()


def mean_curve(curve: CurveKind, states: Sequence[RunState]) -> tuple[np.ndarray, np.ndarray]:
    """The mean of the seeds that have finished at each step that all of these have; of all seeds, before two have."""
    done = [state for state in states if state.finished is not None and state.finished.state == "finished"]
    found = [curve.of(state) for state in (done if len(done) > 1 else states)]
    points = [(np.asarray(one.xs), np.asarray(one.ys)) for one in found if one is not None and len(one)]
    if len(points) < 2:
        return np.zeros(0), np.zeros(0)
    xs = np.concatenate([own for own, _ in points])
    steps, places = np.unique(xs, return_inverse=True)
    counts, sums = np.bincount(places), np.bincount(places, np.concatenate([own for _, own in points]))
    common = counts == len(points)
    return steps[common], sums[common] / counts[common]
