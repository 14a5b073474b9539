"""A group on the Run page: what its seeds reached, their mean and spread, and each one's curve faint behind the mean."""

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from app.core import formatting
from app.core.i18n import figure, tr
from app.core.runs.run_library import RunSummary
from app.core.runs.run_obstacles import resume_obstacle, stop_obstacle
from app.core.runs.run_status import TITLES
from app.pages.run.run_curves import RunCurves
from app.services.context import AppContext
from app.widgets.card import Card, label
from app.widgets.desktop import open_folder
from app.widgets.icon_label import IconButton
from app.widgets.page_layout import PageHeader, page_layout
from app.widgets.tables.text_table import TextTable

MOST_METRICS = 5


class GroupView(QWidget):
    """`show_group` fills it."""

    message = Signal(str, str)
    run_selected = Signal(str)
    predictions_requested = Signal(str)

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self.path: Path | None = None
        self._members: tuple[Path, ...] = ()
        self.header = PageHeader(tr("Group"))
        self.buttons = {
            "resume": IconButton(tr("Resume"), "play", clicked=self._on_resume),
            "stop": IconButton(tr("Stop"), "stop", "danger", clicked=self._on_stop),
            "predictions": IconButton(tr("Predictions"), "target", clicked=self._on_predictions),
            "folder": IconButton(tr("Open folder"), "folder", clicked=self._on_folder),
        }
        for button in self.buttons.values():
            self.header.buttons.addWidget(button)
        self.table = TextTable(tr("Results of each seed"))
        self.table.set_choosable(tr("Open this seed's run"))
        self.table.row_chosen.connect(self._on_row_chosen)
        self.curves = RunCurves(tr("The strong line is the mean."), has_mean=True)
        self.curves.message.connect(self.message)
        self._build()
        context.library_watcher.changed.connect(self._show_summary)

    def _build(self) -> None:
        results = Card(tr("Results"))
        results.add(self.table, 1)
        self.note = label(
            tr("The interval is that of the mean over all seeds, by Student's t (95 %)."), "muted", wrap=True
        )
        results.add(self.note)
        page = page_layout(self)
        page.addWidget(self.header)
        page.addWidget(results, 2)
        page.addWidget(self.curves, 3)

    def show_group(self, path: Path) -> None:
        """Show another group; of the current one, what has changed."""
        if path != self.path:
            self.path, self._members = path, ()
            self.curves.clear()
        self._context.library_watcher.refresh_now()
        self._show_summary()

    def leave(self) -> None:
        """Stop watching the runs."""
        self.curves.clear()
        self.path, self._members = None, ()

    # Results

    def _summary(self) -> RunSummary | None:
        return self._context.library.find(self.path) if self.path is not None else None

    def _show_summary(self) -> None:
        if self.path is None:
            return
        group = self._summary()
        self.header.set_title(group.title if group is not None else self.path.name)
        for button in self.buttons.values():
            button.setEnabled(group is not None)
        if group is None:
            self.header.set_subtitle(tr("Loading…"))
            return
        members = self._context.library.members(group)
        subject = [formatting.name_of_path(group.model), group.data]
        self.header.set_subtitle(" · ".join(filter(None, [group.message, TITLES.get(group.state, ""), *subject])))
        for key, problem in (("resume", resume_obstacle(group)), ("stop", stop_obstacle(group))):
            self.buttons[key].setEnabled(not problem)
            self.buttons[key].setToolTip(problem)
        self.buttons["predictions"].setEnabled(group.has_predictions)
        self.table.show_rows(*group_table(group, members))
        self._members = group.members
        names = {run.path: tr("Seed {seed}", seed=run.seed) for run in members}
        self.curves.show_runs(names, {run.path: run.step for run in members})

    def _on_row_chosen(self, row: int) -> None:
        seed = row - (self.table.model().rowCount() - len(self._members))
        if 0 <= seed < len(self._members):
            self.run_selected.emit(str(self._members[seed]))

    # What is done with all runs

    def _on_resume(self) -> None:
        assert self.path is not None
        self.buttons["resume"].setEnabled(False)
        self._context.jobs.resume(
            self.path,
            lambda path: self._context.library_watcher.refresh_now(),
            lambda sentence: self.message.emit("error", sentence),
        )

    def _on_stop(self) -> None:
        assert self.path is not None
        problem = self._context.jobs.request(self.path, "stop")
        words = tr("Stopping the group's runs… saving checkpoints and models.")
        self.message.emit("error" if problem else "info", problem or words)

    def _on_predictions(self) -> None:
        self.predictions_requested.emit(str(self.path))

    def _on_folder(self) -> None:
        if self.path is not None and (problem := open_folder(self.path)):
            self.message.emit("info", problem)


def group_table(group: RunSummary, members: Sequence[RunSummary]) -> tuple[list[str], list[list[str]]]:
    """The titles, and rows for the mean, its interval, a rule without a model, and each seed."""
    names = list(dict.fromkeys(name for run in members for name in run.metrics))
    first = [group.metric] if group.metric in names else []
    names = [*first, *(name for name in names if name not in (*first, "loss")), *(["loss"] if "loss" in names else [])]
    names = names[:MOST_METRICS]
    titles = [tr("Seed"), tr("State"), *map(formatting.metric_title, names)]
    rows: list[list[str]] = []
    if group.metrics:
        rows.append([tr("Mean ± standard deviation"), "", *(_mean_words(group, name) for name in names)])
        rows.append([tr("Interval of the mean"), "", *(_interval_words(group, name) for name in names)])
    if not group.trivial.keys().isdisjoint(names):
        rules = (group.trivial.get(name) for name in names)
        rows.append([tr("Without a model"), "", *("–" if one is None else formatting.number(one) for one in rules)])
    for run in members:
        values = (run.metrics.get(name) for name in names)
        seed = tr("Seed {seed}", seed=run.seed)
        rows.append(
            [
                seed,
                TITLES.get(run.state, run.state),
                *("–" if one is None else formatting.number(one) for one in values),
            ]
        )
    return titles, rows


def _mean_words(group: RunSummary, name: str) -> str:
    value, deviation = group.metrics.get(name), group.deviations.get(name)
    if value is None:
        return "–"
    return formatting.number(value) + (f" ± {figure(deviation, '.2g')}" if deviation is not None else "")


def _interval_words(group: RunSummary, name: str) -> str:
    interval = group.intervals.get(name)
    if interval is None:
        return "–"
    words = tr("{low} to {high}", low=figure(interval[0], ".3g"), high=figure(interval[1], ".3g"))
    return tr("{value}, may be chance", value=words) if name in group.unsure else words
