"""A search on the Run page: what it has found, what it tries now and why, its trials in four plots and a table."""

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QButtonGroup, QGridLayout, QMenu, QPushButton, QVBoxLayout, QWidget

from app import theme
from app.core import formatting
from app.core.backend_messages import translate_message
from app.core.draft.search_space import SAMPLERS
from app.core.i18n import tr, trn
from app.core.runs.run_comparison import setting_title
from app.core.runs.run_status import RunStatus
from app.core.runs.search_trials import (
    axes_of,
    describe_best,
    entries_of,
    header_of,
    importance_words,
    rows_of,
    sentences,
    tile_of_steps,
    tile_of_time,
    tile_of_trials,
    title_of_trial,
    training_now,
)
from app.core.setting_titles import in_titles
from app.pages.run.run_curves import RunCurves
from app.services.context import AppContext
from app.services.latest_question import LatestQuestion
from app.services.run_watcher import RunWatcher, trials_stamp
from app.widgets.banner import Banner
from app.widgets.boxes import stack
from app.widgets.card import Card, KpiTile, label
from app.widgets.desktop import open_folder
from app.widgets.icon_label import IconButton, IconToolButton
from app.widgets.page_layout import PageArea, PageHeader, scrolling_layout
from app.widgets.pill import Pill
from app.widgets.plots.interval_bars import IntervalBar, IntervalBars
from app.widgets.plots.parallel_coordinates import ParallelCoordinates
from app.widgets.plots.setting_plots import SettingPlots
from app.widgets.progress import ThinProgressBar
from app.widgets.tables.text_table import TextTable
from backend.contract.rpc.protocol import ErrorReply
from backend.contract.rpc.search import SearchReport

REFRESH_MS = 3000
"""While a search runs; the steps of its trials are in their folders, which nothing here watches."""
EXTENSIONS = (6, 12, 24)
"""By how many trials a search is extended with one click."""
PLOTS = (tr("Settings and results"), tr("Each setting"), tr("Importance"), tr("Curves"))
TOO_FEW = tr(
    "Importance appears once the search is over and eight trials have a result, if it searches two settings or more."
)
COMPUTING = tr("Computing what mattered…")
PLOT_HEIGHT, TABLE_HEIGHT = 290, 170
"""Pixels, at least."""


class SearchView(QWidget):
    """`show_search` fills it."""

    message = Signal(str, str)
    run_selected = Signal(str)
    duplicate_requested = Signal(str)

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self.path: Path | None = None
        self.watcher: RunWatcher | None = None
        self._report: SearchReport | None = None
        self._stamp: tuple[int, ...] = ()
        """The `trials_stamp` when the report was asked for."""
        self._is_whole = False
        """Whether the report was asked for with what takes seconds, which only a search that is over is asked for."""
        self._asking = LatestQuestion(
            context.client, "search_report", self._on_report, self._on_error, opened="", parent=self
        )
        self._timer = QTimer(self, interval=REFRESH_MS)
        self._timer.timeout.connect(self._ask_if_changed)
        self._make_header()
        self._make_findings()
        self._make_plots()
        self._place()

    # Widgets

    def _make_header(self) -> None:
        self.header = PageHeader(tr("Search"))
        self.pill = Pill()
        self.buttons = {
            "start_now": IconButton(tr("Start now"), "play", clicked=self._on_start_now),
            "pause": IconButton(tr("Pause"), "pause", clicked=lambda: self._request("pause"), hint=tr("Pause all trials; each keeps a checkpoint")),
            "stop": IconButton(tr("Stop"), "stop", "danger", clicked=lambda: self._request("stop"), hint=tr("Stop searching; it can be resumed later")),
            "resume": IconButton(tr("Resume"), "play", "primary", clicked=self._on_resume),
            "extend": IconButton(tr("Extend"), "plus", hint=tr("Try more combinations of settings")),
        }  # fmt: skip
        self.extensions = QMenu(self.buttons["extend"])
        for count in EXTENSIONS:
            words = trn("By {count} trial", "By {count} trials", count)
            self.extensions.addAction(words, lambda count=count: self._extend(count))
        self.buttons["extend"].setMenu(self.extensions)
        self.more = IconToolButton("more", tr("More actions"), "text")
        self.menu = QMenu(self.more)
        self.menu.addAction(tr("Duplicate"), lambda: self.duplicate_requested.emit(str(self.path)))
        self.menu.addAction(tr("Open folder"), self._on_folder)
        self.more.clicked.connect(lambda: self.menu.popup(self.more.mapToGlobal(self.more.rect().bottomLeft())))
        for widget in (self.pill, *self.buttons.values(), self.more):
            self.header.buttons.addWidget(widget)
        self.banner = Banner()

    def _make_findings(self) -> None:
        self.tiles = {
            "best": KpiTile(tr("Best")), "trials": KpiTile(tr("Trials")), "steps": KpiTile(tr("Steps")), "time": KpiTile(tr("Time left")),
        }  # fmt: skip
        self.bar = ThinProgressBar()
        self.now, self.findings = Card(tr("Training now")), Card(tr("Findings"))
        self.now_words = label("", wrap=True, selectable=True)
        self.words = label("", wrap=True, selectable=True)
        self.now.add(self.now_words)
        self.now.hide()
        self.findings.add(self.words)

    def _make_plots(self) -> None:
        self.lines, self.dots = ParallelCoordinates(), SettingPlots()
        self.lines.line_chosen.connect(self._choose)
        self.dots.dot_chosen.connect(self._choose)
        self.importance = IntervalBars(name=tr("The share of the differences that each setting explains"))
        self.importance_note = label(TOO_FEW, "muted", wrap=True)
        self.curves = RunCurves(tr("The strong line is the best trial."), is_in_card=True)
        self.curves.message.connect(self.message)
        important = QWidget()
        column = QVBoxLayout(important)
        column.setContentsMargins(0, 8, 0, 0)
        column.setSpacing(12)
        column.addWidget(self.importance)
        column.addWidget(self.importance_note)
        column.addStretch(1)
        self.plots = stack(self.lines, self.dots, important, self.curves)
        self.plots.setMinimumHeight(theme.pixels(PLOT_HEIGHT))
        self.chips = QButtonGroup(self, exclusive=True)
        self.plot_card = Card(tr("Trials"))
        for number, name in enumerate(PLOTS):
            chip = QPushButton(name)
            chip.setCheckable(True)
            theme.role(chip, "chip")
            self.chips.addButton(chip, number)
            self.plot_card.corner.addWidget(chip)
        self.chips.button(0).setChecked(True)
        self.chips.idClicked.connect(self._on_plot_chosen)
        self.plot_card.add(self.plots, 1)
        self.best = QPushButton()
        theme.role(self.best, "link")
        self.best.setToolTip(tr("Open this trial"))
        self.best.clicked.connect(lambda: self._choose(0))
        self.table = TextTable(tr("Trials"))
        self.table.set_choosable(tr("Open this trial"))
        self.table.row_chosen.connect(self._choose)
        self.table.setMinimumHeight(theme.pixels(TABLE_HEIGHT))

    def _place(self) -> None:
        holder = QWidget()
        self._column = QVBoxLayout(holder)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(14)
        self._tile_grid = QGridLayout()
        self._tile_grid.setSpacing(10)
        for number, tile in enumerate(self.tiles.values()):
            self._tile_grid.addWidget(tile, 0, number)
        self._column.addLayout(self._tile_grid)
        self._column.addWidget(self.bar)
        self._column.addWidget(self.now)
        self._column.addWidget(self.findings)
        self._column.addWidget(self.plot_card, 3)
        results = Card(tr("Results"))
        results.body.addWidget(self.best, 0, Qt.AlignmentFlag.AlignLeft)
        results.add(self.table, 1)
        self._column.addWidget(results, 2)
        area = PageArea(holder, self)
        scrolling_layout(self, self.header, self.banner).addWidget(area, 1)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """On a narrow page the chips of the plots lose nothing, but the buttons lose their words."""
        super().resizeEvent(event)
        is_narrow = event.size().width() < theme.pixels(760)
        for key, words in (("pause", tr("Pause")), ("stop", tr("Stop"))):
            self.buttons[key].setText("" if is_narrow else words)
            self.buttons[key].setAccessibleName(words)

    # The search that is shown

    def show_search(self, path: Path) -> None:
        """Show another search; of the current one, what has changed."""
        if path == self.path and self.watcher is not None and not self.watcher.is_gone:
            self.watcher.refresh_now()
            self._ask_if_changed()
            return
        self.leave()
        self.path = path
        self.header.set_title(path.name)
        self.header.set_subtitle("")
        self.words.setText(tr("Reading the trials…"))
        self.watcher = RunWatcher(path, self)
        self.watcher.outcome_changed.connect(self._on_outcome)
        self.watcher.caught_up.connect(lambda: self._on_outcome())
        self.watcher.vanished.connect(self._on_vanished)
        self._show_outcome(self.watcher.outcome)
        self._ask()

    def leave(self) -> None:
        """Watch nothing any more."""
        self._asking.stop()
        self._timer.stop()
        self.curves.clear()
        if self.watcher is not None:
            self.watcher.stop()
            self.watcher.deleteLater()
        self.watcher, self.path, self._report, self._stamp = None, None, None, ()
        self.lines.show_lines((), (), None)
        self.dots.show_dots((), (), None)
        self.table.show_rows((), ())
        self.importance.show_bars(())
        self.banner.clear()
        for tile in self.tiles.values():
            tile.set_value("–", " ")

    def _on_vanished(self, sentence: str) -> None:
        self._timer.stop()
        self.banner.show_message("error", tr("{sentence}. See Runs for your other runs.", sentence=sentence))
        for button in (*self.buttons.values(), self.more):
            button.setEnabled(False)

    def _on_outcome(self, outcome: RunStatus | None = None) -> None:
        assert self.watcher is not None
        self._show_outcome(outcome or self.watcher.outcome)
        self._ask()

    def _show_outcome(self, outcome: RunStatus) -> None:
        self.pill.set(outcome.title, outcome.kind, outcome.doubt)
        is_over = outcome.state == "finished"
        shown = {
            "start_now": outcome.waits, "pause": outcome.alive, "stop": outcome.alive,
            "resume": not outcome.alive and not is_over and outcome.state != "starting", "extend": not outcome.alive,
        }  # fmt: skip
        for key, visible in shown.items():
            self.buttons[key].setVisible(visible)
            self.buttons[key].setEnabled(True)
        self._offer_extensions()
        self.more.setEnabled(True)
        if outcome.alive:
            self._timer.start()
        else:
            self._timer.stop()
        sentence = formatting.with_full_stop(formatting.sentence(outcome.message)) if outcome.message else ""
        hint = in_titles(outcome.hint)
        if outcome.state in ("failed", "lost", "interrupted") and sentence:
            kind = "error" if outcome.state == "failed" else "warning"
            self.banner.show_message(kind, "\n".join(filter(None, (sentence, hint))))
        else:
            self.banner.clear()

    # Its report

    def showEvent(self, event: QShowEvent) -> None:
        """What has changed while another page was in front is read now."""
        super().showEvent(event)
        self._ask_if_changed()

    def _ask_if_changed(self) -> None:
        if self.path is not None and self.isVisible() and trials_stamp(self.path) != self._stamp:
            self._ask()

    def _ask(self) -> None:
        """Unless nobody would see the answer."""
        if self.path is None or self.watcher is None or self._asking.open:
            return
        if not self.isVisible():
            self._stamp = ()
            return
        self._stamp, self._is_whole = trials_stamp(self.path), not self.watcher.outcome.alive
        self._asking.ask({"search": str(self.path), "importance": self._is_whole})

    def _on_report(self, report: SearchReport) -> None:
        self._report = report
        if not self._is_whole and self.watcher is not None and not self.watcher.outcome.alive:
            self._ask()  # it has ended while the question was on its way
        self.header.set_title(report.name)
        self.header.set_subtitle(
            tr("Search by {metric} · {sampler}", metric=formatting.metric_title(report.metric), sampler=SAMPLERS.get(report.sampler, report.sampler))
        )  # fmt: skip
        self._show_numbers(report)
        self._offer_extensions()
        now = training_now(report)
        self.now.setVisible(bool(now))
        self.now_words.setText("\n".join(f"{why}\n{what}" for why, what in now))
        self.words.setText("\n".join(sentences(report)))
        self.findings.setVisible(bool(self.words.text()))
        rows, header, axes = rows_of(report), header_of(report), axes_of(report)
        best_words = describe_best(report)
        self.best.setText(f"★ {best_words}" if best_words else tr("No trial has finished yet."))
        self.best.setEnabled(report.best is not None)
        if rows != self.table.texts() or header != self.table.header_texts():
            self.table.show_rows(header, rows)
        described = [_describe(row, header) for row in rows[: len(report.trials)]]
        best = next((place for place, trial in enumerate(report.trials) if trial.trial == report.best), None)
        self.lines.show_lines(axes, described, best)
        self.dots.show_dots(axes, described, best)
        self._show_importance(report)
        self._show_curves()

    def _show_numbers(self, report: SearchReport) -> None:
        best = next((one for one in report.trials if one.trial == report.best), None)
        self.tiles["best"].set_caption(tr("Best {metric}", metric=formatting.metric_title(report.metric)))
        self.tiles["best"].set_value(formatting.number(best.metric) if best else "–", tr("trial {trial}", trial=best.trial) if best else " ")  # fmt: skip
        self.tiles["trials"].set_value(*tile_of_trials(report))
        self.tiles["steps"].set_value(*tile_of_steps(report))
        caption, *words = tile_of_time(report)
        self.tiles["time"].set_caption(caption)
        self.tiles["time"].set_value(*words)
        over = int(tile_of_trials(report)[0])
        self.bar.set_fraction(min(1.0, over / max(1, report.planned)))
        self.bar.setVisible(report.state in ("running", "queued"))

    def _offer_extensions(self) -> None:
        """More trials, unless there are no other settings to try."""
        left = self._report.left if self._report is not None else None
        self.buttons["extend"].setEnabled(left != 0)
        self.buttons["extend"].setToolTip(
            tr("All combinations of these settings are already planned or tried. Duplicate the search to try other values.")
            if left == 0 else tr("Try more combinations of settings")
        )  # fmt: skip
        for count, action in zip(EXTENSIONS, self.extensions.actions(), strict=True):
            most = count if left is None else min(count, left)
            action.setText(trn("By {count} trial", "By {count} trials", most))
            action.setVisible(left is None or count == EXTENSIONS[0] or count <= left)

    def _show_importance(self, report: SearchReport) -> None:
        self.importance.show_bars(
            [
                IntervalBar(setting_title(one.setting), importance_words(one), one.share, *one.interval, is_sure=True)
                for one in report.importance
            ]
        )
        known = tr("The share of the differences in the metric that each setting explains (fANOVA). In parentheses: its range when the trials are drawn again 20 times, which is wide with few trials.")  # fmt: skip
        is_coming = not self._is_whole and report.state not in ("running", "queued")
        self.importance_note.setText(known if report.importance else COMPUTING if is_coming else TOO_FEW)

    def _on_plot_chosen(self, number: int) -> None:
        self.plots.setCurrentIndex(number)
        self._show_curves()

    def _show_curves(self) -> None:
        if self._report is None or self.plots.currentWidget() is not self.curves:
            return
        shown = [one for one in entries_of(self._report) if one.steps]
        names = {Path(one.run): title_of_trial(one) for one in shown}
        best = next((Path(one.run) for one in shown if one.trial == self._report.best), None)
        steps = {Path(one.run): one.steps for one in shown}
        self.curves.show_runs(names, steps, strong=best, preferred=self._report.metric)

    def _on_error(self, mistake: ErrorReply) -> None:
        self.words.setText(formatting.sentence(mistake.message))
        self.findings.show()
        self.now.hide()

    def _choose(self, place: int) -> None:
        if self._report is None:
            return
        trial = entries_of(self._report)[place]
        if Path(trial.run).is_dir():
            self.run_selected.emit(trial.run)
        else:
            self.message.emit("info", formatting.sentence(translate_message(trial.message)) or tr("This trial has not started yet."))  # fmt: skip

    # What is done with it

    def _request(self, kind: str) -> None:
        assert self.path is not None
        problem = self._context.jobs.request(self.path, kind)
        if problem:
            self.message.emit("error", problem)
            return
        for key in ("pause", "stop"):
            self.buttons[key].setEnabled(False)
        self.message.emit("info", tr("Pausing the trials… each saves a checkpoint."))

    def _on_start_now(self) -> None:
        assert self.path is not None
        if problem := self._context.jobs.start_now(self.path):
            self.message.emit("error", problem)

    def _on_resume(self) -> None:
        assert self.path is not None
        self.buttons["resume"].setEnabled(False)
        self._context.jobs.resume(self.path, self._on_started, self._on_refused)

    def _extend(self, count: int) -> None:
        if self.path is None or self._report is None:
            return
        self.buttons["extend"].setEnabled(False)
        self._context.jobs.extend(self.path, self._report.planned + count, self._on_started, self._on_refused)

    def _on_started(self, path: str) -> None:
        if self.watcher is not None and Path(path) == self.path:
            self.watcher.refresh_now()
        self._context.library_watcher.refresh_now()

    def _on_refused(self, sentence: str) -> None:
        self.buttons["resume"].setEnabled(True)
        self._offer_extensions()
        self.message.emit("error", formatting.sentence(sentence))

    def _on_folder(self) -> None:
        if self.path is not None and (problem := open_folder(self.path)):
            self.message.emit("info", problem)


def _describe(row: Sequence[str], header: Sequence[str]) -> str:
    pairs = ", ".join(f"{title} {cell}" for title, cell in zip(header[1:], row[1:], strict=True))
    return tr("Trial {number}: {settings}", number=row[0], settings=pairs)
