"""The curves of a search's trials in one plot, of which the best stands out."""

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.core.i18n import tr
from app.core.runs.run_comparison import CurveKind, curves_of
from app.core.runs.series import SeriesCursor
from app.pages.run.group_view import FEED_MS
from app.services.run_watcher import ComparedStates
from app.widgets.boxes import hbox
from app.widgets.card import label
from app.widgets.forms.inputs import QuietComboBox
from app.widgets.plots.live_plot import LivePlot, SeriesStyle

MOST_NAMED = 6
"""Curves that a legend names; the best stands out anyway."""


class TrialCurves(QWidget):
    """One curve per trial, of which the best stands out; read only once they are shown."""

    message = Signal(str, str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._shown: tuple[Sequence[str], dict[Path, str]] = ((), {})
        self._metric = ""
        self._best: Path | None = None
        self._cursors: dict[Path, SeriesCursor] = {}
        self._kinds: list[CurveKind] = []
        self.plot: LivePlot | None = None
        self.states = ComparedStates(self)
        self.states.advanced.connect(self._feed_soon)
        self._timer = QTimer(self, singleShot=True, interval=FEED_MS)
        self._timer.timeout.connect(self._feed)
        self.choice = QuietComboBox(name=tr("Curve"))
        self.choice.setMinimumContentsLength(16)
        self.choice.currentIndexChanged.connect(self._rebuild)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(4)
        note = label(tr("The strong line is the best trial."), "faint")
        self._column.addLayout(hbox(label(tr("Curve"), "muted"), self.choice, 1, note, spacing=8))
        self._column.addStretch(1)

    def show_trials(self, live: Sequence[str], names: dict[Path, str], metric: str, best: Path | None) -> None:
        """Show the curves of these runs; those that train now are followed."""
        self._metric = metric
        if (tuple(live), names) == self._shown and best == self._best:
            return
        self._shown, self._best, self._kinds = (tuple(live), names), best, []
        self._drop_plot()
        self.states.read(list(names))
        self._feed_soon()

    def _feed_soon(self) -> None:
        if not self._timer.isActive():
            self._timer.start()

    def _drop_plot(self) -> None:
        if self.plot is not None:
            self._column.removeWidget(self.plot)
            self.plot.hide()
            self.plot.deleteLater()
            self.plot = None

    def _curve(self) -> CurveKind | None:
        place = self.choice.currentIndex()
        return self._kinds[place] if 0 <= place < len(self._kinds) else None

    def _offer_curves(self) -> None:
        found = curves_of(self.states.states.values())
        if found == self._kinds:
            return
        chosen = self._curve() or CurveKind(self._metric, measured=True)
        self._kinds = found
        self.choice.blockSignals(True)
        self.choice.clear()
        self.choice.addItems([one.title for one in found])
        self.choice.setCurrentIndex(found.index(chosen) if chosen in found else 0)
        self.choice.blockSignals(False)
        self._rebuild()

    def _rebuild(self) -> None:
        curve, (_, names) = self._curve(), self._shown
        if curve is None:
            return
        kind = "markers" if curve.measured else "smoothed"
        first = [path for path in names if path == self._best]
        styles = [
            SeriesStyle(str(path), names[path], kind, raw=False, faint=path != self._best)
            for path in [*first, *(path for path in names if path != self._best)]
        ]
        self._drop_plot()
        self.plot = LivePlot("", styles)
        self.plot.message.connect(self.message)
        if len(names) > MOST_NAMED:
            self.plot.hide_legend()
        self._cursors = {path: SeriesCursor() for path in names}
        self._column.addWidget(self.plot, 1)
        self._feed_soon()

    def _feed(self) -> None:
        self._offer_curves()
        curve, plot = self._curve(), self.plot
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
        if is_behind:
            self._feed_soon()
