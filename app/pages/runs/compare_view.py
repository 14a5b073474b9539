"""The comparison of selected runs: curves, differing settings, final metrics."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtGui import QGuiApplication, QKeySequence, QShortcut
from PySide6.QtWidgets import QCheckBox, QFileDialog, QHBoxLayout, QStackedWidget, QVBoxLayout, QWidget

from app.core.backend_words import COLUMNS as COLUMN_TITLES
from app.core.backend_words import capitalize
from app.core.formatting import metric_title, with_full_stop
from app.core.i18n import localize_number, tr, trn
from app.core.runs.run_comparison import final_cells, names_of, setting_names
from app.core.runs.run_library import RunLibrary, RunSummary
from app.core.runs.run_status import TITLES
from app.core.tasks import task_title
from app.pages.runs.differences import Differences
from app.pages.runs.overlay_plot import OverlayPlot
from app.services.backend_client import BackendClient
from app.services.latest_question import LatestQuestion
from app.services.run_watcher import ComparedStates
from app.widgets.card import Card, label
from app.widgets.forms.chips import chips
from app.widgets.icon_label import IconButton
from app.widgets.page_layout import PageHeader, page_layout
from app.widgets.tables.text_table import TextTable
from backend.contract.rpc.predictions import ComparedRuns
from backend.contract.rpc.protocol import ErrorReply
from backend.contract.run.comparison import (
    UNSURE,
    WITHOUT_MODEL,
    FinalMetrics,
    TextRows,
    metrics_table,
    settings_table,
)
from backend.contract.run.group import RunGroup

SIDES = (tr("Curves"), tr("Settings"), tr("Metrics"), tr("Differences"))
ASKED_SIDES = (1, 3)
"""Those that show more than what is known here."""
DELETED = "deleted"
"""The state of a run whose folder is gone."""
_WORDS = {
    "run": lambda name: _run_words(name),
    "task": task_title,
    "state": lambda state: {**TITLES, DELETED: tr("Deleted")}.get(state, state),
}
"""Column of the metrics in files → the title that people read."""
_WITH_INTERVAL = re.compile(rf"([-+.\de]+) \(([-+.\de]+) to ([-+.\de]+)\)({re.escape(UNSURE)})?")
"""A metric in the table; a run's name may have parentheses too."""
SUFFIXES = {"csv": tr("CSV (*.csv)"), "markdown": tr("Markdown (*.md)")}


class CompareView(QWidget):
    """`show_runs` fills it; `closed` asks for the list of all runs."""

    closed = Signal()
    message = Signal(str, str)

    def __init__(self, library: RunLibrary, client: BackendClient, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._library = library
        self._comparing = LatestQuestion(
            client, "compare_runs", self._on_compared, self._on_not_compared, opened="", parent=self
        )
        self._runs: dict[Path, RunSummary] = {}
        """As they were when they were chosen, for those that are deleted meanwhile."""
        self._paths: list[Path] = []
        self._names: list[str] = []
        self._table: TextRows | None = None
        self._is_asked = True
        self._compared = ComparedRuns()
        self.states = ComparedStates(self)
        self.header = PageHeader(tr("Compare"))
        self.back = IconButton(tr("All runs"), "runs")
        self.back.clicked.connect(self.close_view)
        self.header.buttons.addWidget(self.back)
        self.sides, sides = chips(SIDES)
        self.curves = OverlayPlot()
        self.settings = TextTable(tr("Settings"))
        self.everything = QCheckBox(tr("Show all settings"))
        self.everything.toggled.connect(self._show_settings)
        self.same = label("", "muted", wrap=True)
        self.metrics = TextTable(tr("Final metrics"))
        self.export = IconButton(tr("Save as…"), "save")
        self.export.clicked.connect(self._on_export)
        self.copy = IconButton(tr("Copy as Markdown"), "copy")
        self.copy.clicked.connect(self._on_copy)
        self._pages = QStackedWidget()
        self._pages.addWidget(self.curves)
        self._pages.addWidget(_below({self.everything: 0, self.same: 1}, self.settings))
        self._pages.addWidget(_below({self.copy: 0, self.export: 0}, self.metrics))
        self.tested = Differences(client)
        self.result, self.differences = self.tested.result, self.tested.table
        self._pages.addWidget(self.tested)
        self.sides.idClicked.connect(self._on_side)
        sides.addStretch(1)
        page = page_layout(self)
        page.addWidget(self.header)
        page.addLayout(sides)
        page.addWidget(self._pages, 1)
        self.states.advanced.connect(self.curves.feed_soon)
        self.states.advanced.connect(self._show_subtitle)
        self.curves.message.connect(self.message)
        self.states.specs_read.connect(self._show_settings)
        self.dialog: QFileDialog | None = None
        QShortcut(QKeySequence(QKeySequence.StandardKey.Cancel), self, self.close_view)

    def show_runs(self, runs: Sequence[RunSummary]) -> None:
        """Compare these."""
        self._runs = {run.path: run for run in runs}
        self._paths, self._names = [run.path for run in runs], names_of(runs)
        self.settings.show_rows((), ())
        self._compared = ComparedRuns()
        curves = [
            (path, name if path == run.path else tr("{name}, seed {seed}", name=name, seed=self._seed_of(path)), place)
            for place, (run, name) in enumerate(zip(runs, self._names, strict=True))
            for path in run.members or (run.path,)
        ]
        paths, names, places = zip(*curves, strict=True)
        self.states.read(paths)
        self._show_subtitle()
        self.curves.show_runs(paths, names, self.states.states, places)
        self._show_metrics()
        self.same.setText(tr("Loading settings…"))
        self.tested.show_waiting(self._paths, self._names)
        self._comparing.stop()  # what is open concerns other runs
        self._is_asked = False
        self._ask()

    def _on_side(self, place: int) -> None:
        self._pages.setCurrentIndex(place)
        self._ask()

    def _ask(self) -> None:
        """Ask once what takes seconds, when somebody looks at it: what differs, and what the runs found."""
        if not self._is_asked and self._pages.currentIndex() in ASKED_SIDES:
            self._is_asked = True
            self._comparing.ask({"runs": [str(path) for path in self._paths], "names": self._names})

    def _seed_of(self, path: Path) -> str:
        run = self._library.find(path)
        return str(run.seed) if run is not None else path.name

    def _spec_of(self, path: Path) -> dict[str, Any]:
        if (group := RunGroup(path)).exists():
            return group.settings()
        return self.states.specs.get(path, {})

    def _show_subtitle(self) -> None:
        count, unread = trn("{count} run", "{count} runs", len(self._paths)), self.states.unread
        reading = tr("loading {number} of them…", number=unread) if unread else ""
        names = [
            name if path.is_dir() else tr("{name} (deleted)", name=name)
            for path, name in zip(self._paths, self._names, strict=True)
        ]
        self.header.set_subtitle(" · ".join(filter(None, [count, reading, ", ".join(names)])))

    def follow(self) -> None:
        """Show what has become of the runs, as when one was deleted."""
        if self._paths:
            self._show_subtitle()
            self._show_metrics()

    def show_side(self, name: str) -> None:
        """Show one of SIDES."""
        self.sides.button(SIDES.index(name)).click()

    def close_view(self) -> None:
        """Stop watching and go back."""
        self.states.stop()
        self._comparing.stop()
        self.closed.emit()

    def _show_settings(self) -> None:
        facts = self._compared.facts or [{} for _ in self._paths]
        named = zip(self._paths, self._names, facts, strict=True)
        specs = {name: {**self._spec_of(path), **own} for path, name, own in named}
        table = settings_table(specs, everything=self.everything.isChecked())
        names = setting_names([key for key, *_ in table.rows])
        rows = [[name, *map(localize_number, values)] for name, (_, *values) in zip(names, table.rows, strict=True)]
        self.settings.show_rows((tr("Setting"), *table.header[1:]), rows)
        none = tr("These runs have identical settings.") if not table.rows else ""
        losses = [with_full_stop(capitalize(each)) for each in self._compared.losses if each]
        self.same.setText(" ".join(filter(None, [none, *losses, *self.states.problems])))

    # Differences

    def _on_compared(self, found: ComparedRuns) -> None:
        self._compared = found
        self._show_settings()
        self.tested.show_tests(found)

    def _on_not_compared(self, error: ErrorReply) -> None:
        self.result.setText(with_full_stop(error.message))

    # Metrics

    def _show_metrics(self) -> None:
        table = self._metrics()
        if table != self._table:  # else an order that was chosen would be lost
            self._table = table
            self.metrics.show_rows(*_parts(table))

    def _metrics(self, form: str = "markdown") -> TextRows:
        runs = [self._library.find(path) or self._last_known(path) for path in self._paths]
        named = zip(runs, self._names, strict=True)
        lines = [
            FinalMetrics(final_cells(run, name), run.metrics, run.intervals, run.trivial, run.unsure)
            for run, name in named
        ]
        return metrics_table(lines, form=form)

    def _last_known(self, path: Path) -> RunSummary:
        run = self._runs[path]
        return run if path.is_dir() else replace(run, state=DELETED)

    def _on_copy(self) -> None:
        QGuiApplication.clipboard().setText(self._metrics().format("markdown"))
        self.message.emit("success", tr("Copied the table as Markdown."))

    def _on_export(self) -> None:
        dialog = self.dialog = QFileDialog(self, tr("Save table"))
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setNameFilters(list(SUFFIXES.values()))
        dialog.setDefaultSuffix("csv")
        dialog.selectFile("runs.csv")
        dialog.fileSelected.connect(self.save)
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def save(self, path: str) -> None:
        """Save the metrics table as Markdown if the file name says so, else as CSV."""
        form = "markdown" if Path(path).suffix.lower() in (".md", ".markdown") else "csv"
        try:
            Path(path).write_text(self._metrics(form).format(form), encoding="utf-8", newline="")
        except OSError as error:
            self.message.emit(
                "error",
                tr(
                    "Couldn't write {path} ({strerror}). Choose another folder.",
                    path=path,
                    strerror=error.strerror,
                ),
            )
            return
        self.message.emit("success", tr("Saved the table as {path}.", path=path))


def _below(tools: Mapping[QWidget, int], table: TextTable) -> QWidget:
    """A row of tools, each with its stretch, above a table; tools without any are on the left."""
    side = QWidget()
    row = QHBoxLayout()
    row.setSpacing(10)
    for tool, stretch in tools.items():
        row.addWidget(tool, stretch)
    if not any(tools.values()):
        row.addStretch(1)
    column = QVBoxLayout(side)
    column.setContentsMargins(0, 0, 0, 0)
    column.setSpacing(10)
    column.addLayout(row)
    card = Card()
    layout = card.layout()
    assert layout is not None
    layout.setContentsMargins(1, 1, 1, 1)
    card.add(table, 1)
    column.addWidget(card, 1)
    return side


def _localize(cell: str) -> str:
    """A number, with its interval if it has one, as people write it here."""
    found = _WITH_INTERVAL.fullmatch(cell)
    if found is None:
        return localize_number(cell)
    value, low, high = map(localize_number, found.groups()[:3])
    words = tr("{value} ({low} to {high})", value=value, low=low, high=high)
    return tr("{value}, may be chance", value=words) if found[4] else words


def _run_words(name: str) -> str:
    """A run's name as it is, and in words the row of a rule."""
    own = name.removeprefix(WITHOUT_MODEL)
    return tr("Without a model{of_run}", of_run=own) if own != name else name


def _parts(table: TextRows) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    known = {name: COLUMN_TITLES[name] for name in table.header if name in COLUMN_TITLES}
    words = [_WORDS.get(name, _localize) for name in table.header]
    rows = tuple(tuple(to_words(cell) for to_words, cell in zip(words, row, strict=True)) for row in table.rows)
    return tuple(known.get(name) or metric_title(name) for name in table.header), rows
