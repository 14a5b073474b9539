"""The Run page: one run, active or finished, and the actions on it."""

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import Qt, QTimer, Signal, SignalInstance
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QStackedWidget, QVBoxLayout, QWidget

from app.core import formatting
from app.core.actions import Action
from app.core.i18n import tr
from app.core.page_actions import OPEN_A_RUN, RUN
from app.core.runs.run_obstacles import button_obstacles
from app.core.runs.run_status import RunResults, RunStatus, results_of
from app.core.setting_titles import in_titles
from app.pages.run.comparison import Comparison
from app.pages.run.events_card import EventsCard
from app.pages.run.fix_buttons import FixButtons
from app.pages.run.group_view import GroupView
from app.pages.run.model_export import ModelExport
from app.pages.run.plot_options import PlotOptions, SelectedStep, TensorBoardExport
from app.pages.run.plots import RunPlots
from app.pages.run.progress import ProgressTiles, RunProgress, subtitle_of, title_of
from app.pages.run.run_buttons import GONE, EngineSwitch, QueueStatus, RunButtons, RunMove
from app.pages.run.search_view import SearchView
from app.services.context import AppContext
from app.services.run_watcher import RunWatcher
from app.widgets.banner import Banner
from app.widgets.commands import button_action
from app.widgets.desktop import open_folder
from app.widgets.empty_state import EmptyState
from app.widgets.icon_label import IconButton
from app.widgets.page_layout import PageArea, PageHeader, scrolling_layout
from app.widgets.tables.layout_memory import RememberedSplitter
from backend.contract.run.events import RequestAnswered
from backend.contract.run.folder import RunFolder
from backend.contract.run.group import RunGroup
from backend.contract.run.notes import RunNotes

REFRESH_MS = 100
ROOM_FOR_ROWS = 300
LOW = 720
"""Pixels below which the numbers are in one row."""
NARROW = 860
LOWEST_PLOTS = 220
CATCH_UP_MS = 25
"""Between refreshes while points wait to be handed to the plots."""


class Page(QWidget):
    """Shows the run passed to `show_run`; several windows may show the same one."""

    message = Signal(str, str)
    wrote = Signal(str, str)
    """What was exported, in words, and where."""
    try_requested = Signal(str)
    predictions_requested = Signal(str)
    duplicate_requested = Signal(str)
    search_requested = Signal(str, object, str)
    """The run around whose settings to search, the highest learning rate that it had, and its main metric."""
    runs_requested = Signal()
    rows_requested = Signal(str, int)
    """Run folder and optimizer step whose rows should be shown."""

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self.watcher: RunWatcher | None = None
        self._timer = QTimer(self, singleShot=True)
        self._timer.timeout.connect(self._show_state)
        self._build()

    # Widgets

    def _build(self) -> None:
        self._pages = QStackedWidget(self)
        self.header = PageHeader(tr("Run"))
        self.controls = RunButtons()
        self.controls.resume_requested.connect(lambda: self.resume())
        self.controls.try_requested.connect(lambda: self._emit_path(self.try_requested))
        self.controls.predictions_requested.connect(lambda: self._emit_path(self.predictions_requested))
        self.controls.duplicate_requested.connect(lambda: self._emit_path(self.duplicate_requested))
        self.controls.search_requested.connect(self._on_search_requested)
        self.controls.export_requested.connect(self._on_export_requested)
        self.controls.folder_requested.connect(self._on_folder)
        self.controls.curves_requested.connect(self._on_event_file_requested)
        self.back = IconButton(tr("Search"), "chevron-left", hint=tr("Back to the search that this trial belongs to"))
        self.back.clicked.connect(lambda: self.show_run(str(search_of(self.path))))
        self.header.buttons.addWidget(self.back)
        self.header.buttons.addWidget(self.controls)
        self.banner, self.progress = Banner(), RunProgress()
        self.requests = self.progress.requests
        self.requests.requested.connect(self._ask)
        self.queue = QueueStatus(self._context, self.controls, self.progress, self)
        self.queue.message.connect(self.message)
        self.fix_buttons = FixButtons(self._context, self.banner, self)
        self.fix_buttons.message.connect(self.message)
        self.fix_buttons.run_started.connect(self.show_run)
        self.tiles, self.plots, self.journal = ProgressTiles(), RunPlots(), EventsCard()
        self.plot_options = PlotOptions(self._context.preferences)
        self.plot_options.axis_chosen.connect(self._on_axis_chosen)
        self.plot_options.smoothing_chosen.connect(self.plots.set_smoothing)
        self.plots.set_axis(self.plot_options.axis.currentData())
        self.plots.set_smoothing(self.plot_options.share)
        self.plots.message.connect(self.message)
        self.plots.grown.connect(self._refresh_soon)
        self.tensorboard = TensorBoardExport(self._context.client, self)
        self.tensorboard.message.connect(self.message)
        self.plots.event_file_requested.connect(self._on_event_file_requested)
        self.exporting = ModelExport(self._context.client, self)
        self.exporting.wrote.connect(self.wrote)
        self.pick = SelectedStep(self.plots.loss, self._step_at)
        self.pick.rows_requested.connect(self._on_rows_requested)
        self.comparison = Comparison(self._context.library, self.plots, self)
        self.comparison.message.connect(self.message)
        self.notes = self.journal.notes
        self.notes.written.connect(self._on_notes_written)
        self.notes.message.connect(self.message)
        self._context.library_watcher.changed.connect(self._show_notes)
        self.engines = EngineSwitch(self._context, self.controls, self)
        self.engines.message.connect(self.message)
        self.engines.run_started.connect(self._on_repeated)
        self.engines.resume_requested.connect(self.resume)
        self.moves = self._make_moves()
        self.engines.offered.connect(self._show_buttons)
        self.engines.offered.connect(self._refresh_soon)  # the catalog has come, which has the titles of metrics
        self._make_pages()
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(self._pages)

    def _make_pages(self) -> None:
        """What is shown in place of a run: nothing yet, a group of runs, or a search."""
        self.empty = EmptyState(
            "chart",
            tr("No run selected"),
            tr("Start one on the New run page, or open an earlier one from Runs."),
            tr("Show all runs"),
        )
        self.empty.action_clicked.connect(self.runs_requested)
        self._pages.addWidget(self.empty)
        self._pages.addWidget(self._body())
        self.group = GroupView(self._context, self._pages)
        self.group.message.connect(self.message)
        self.group.run_selected.connect(self.show_run)
        self.group.predictions_requested.connect(self.predictions_requested)
        self._pages.addWidget(self.group)
        self.search = SearchView(self._context, self._pages)
        self.search.message.connect(self.message)
        self.search.run_selected.connect(self.show_run)
        self.search.duplicate_requested.connect(self.duplicate_requested)
        self._pages.addWidget(self.search)

    def _make_moves(self) -> RunMove:
        moves = RunMove(self._context, self.controls, self)
        moves.message.connect(self.message)
        moves.changed.connect(self._show_buttons)
        moves.sending.connect(lambda words: self.banner.show_message("info", words))
        moves.answered.connect(self._on_resume_answered)
        return moves

    def _body(self) -> QWidget:
        body = QWidget(self._pages)
        layout = scrolling_layout(body, self.header, self.banner)
        layout.addWidget(self._make_scrollable(body), 1)
        return body

    def _make_scrollable(self, body: QWidget) -> PageArea:
        """Wrap content so that a low window scrolls instead of squeezing it."""
        holder = QWidget()
        area = PageArea(holder, body)
        layout = QVBoxLayout(holder)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(14)
        layout.addWidget(self.tiles)
        layout.addWidget(self.progress)
        layout.addWidget(self.plot_options)
        split = self._split = RememberedSplitter("run", Qt.Orientation.Vertical, holder)
        split.hold((self.plots, self.journal), (3, 1), (400, 200))
        self.plots.setMinimumHeight(LOWEST_PLOTS)
        self.journal.setMinimumHeight(130)
        self.journal.page_shown.connect(self._on_page_shown)
        layout.addWidget(split, 1)
        return area

    def _on_page_shown(self, name: str) -> None:
        """Give rows in their task's view more room than lines need."""
        plots, journal = self._split.sizes()
        if name == tr("Samples") and journal < ROOM_FOR_ROWS:
            self._split.setSizes([plots + journal - ROOM_FOR_ROWS, ROOM_FOR_ROWS])

    def resizeEvent(self, event: QResizeEvent) -> None:
        """On a low page keep room for the plots, on a narrow one for the title."""
        super().resizeEvent(event)
        self.controls.set_narrow(event.size().width() < NARROW)
        self.tiles.set_low(event.size().height() < LOW)

    def offered_actions(self) -> list[Action]:
        """For the palette and the keyboard."""
        buttons = {**self.requests.buttons, **self.controls.buttons}
        menu = {
            "duplicate": self._on_duplicate,
            "search": self._on_search_requested,
            "folder": self._on_folder,
            "curves": self._on_event_file_requested,
        }
        return [
            button_action(buttons[key], action, self._obstacle(key))
            if key in buttons
            else action.bind(menu[key], self._obstacle(""))
            for key, action in RUN.items()
        ]

    def _obstacle(self, key: str) -> Callable[[], str]:
        """Why a button cannot be pressed now, or, for an empty `key`, why nothing can be done with the run."""

        def why_not() -> str:
            if self.watcher is None:
                return OPEN_A_RUN
            if self.watcher.is_gone:
                return GONE
            return button_obstacles(self.watcher.outcome, self._results(), self.requests.waiting).get(key, "")

        return why_not

    def _results(self) -> RunResults:
        assert self.watcher is not None
        return results_of(self.watcher.folder, self.watcher.state, self.watcher.outcome)

    # The run that is shown

    def on_shown(self) -> None:
        """The page came to the front: query the available engines, and show what is running if no run was chosen."""
        self.engines.ask()
        self.moves.ask()
        shows_nothing = self.watcher is None and self.group.path is None and self.search.path is None
        running = self._context.library.newest_alive() if shows_nothing else None
        if running is not None:
            self.show_run(str(running.path))

    @property
    def path(self) -> Path | None:
        """The folder of the current run."""
        return self.watcher.folder.path if self.watcher else None

    def show_run(self, path: str) -> None:
        """Show another run; for the current one nothing changes, unless its folder was gone."""
        if self.watcher is not None and self.path == Path(path) and not self.watcher.is_gone:
            self.watcher.refresh_now()
            return
        self._drop_watcher()
        self._restart()
        if RunFolder(path).search.exists():
            self._show_search(Path(path))
            return
        self.search.leave()
        if RunGroup(path).exists():
            self._show_group(Path(path))
            return
        self.group.leave()
        self.journal.leave_failure()
        self.watcher = watcher = RunWatcher(path, self)
        watcher.advanced.connect(self._refresh_soon)
        watcher.restarted.connect(self._restart)
        watcher.logged.connect(self.journal.add_process_lines)
        watcher.outcome_changed.connect(self._on_outcome)
        watcher.caught_up.connect(self._refresh_soon)
        watcher.vanished.connect(self._on_vanished)
        self.comparison.show_run(watcher.folder.path, watcher.state)
        self.engines.show_run(watcher.folder, resumable=watcher.outcome.resumable)
        self.moves.show_run(watcher.folder)
        self._pages.setCurrentIndex(1)
        self.back.setVisible(search_of(watcher.folder.path) is not None)
        self._show_state()
        self._show_outcome()
        self._show_notes()

    def _show_group(self, path: Path) -> None:
        self._pages.setCurrentWidget(self.group)
        self.group.show_group(path)

    def _show_search(self, path: Path) -> None:
        self.group.leave()
        self._pages.setCurrentWidget(self.search)
        self.search.show_search(path)

    def _drop_watcher(self) -> None:
        if self.watcher is not None:
            self.watcher.stop()
            self.watcher.deleteLater()
            self.watcher = None

    def _restart(self) -> None:
        self.controls.forget()
        self.requests.waiting.clear()
        self.tiles.clear()
        self.plots.clear()
        self.plot_options.clear()
        self.pick.forget()
        self.journal.clear()
        self.banner.clear()
        if self.watcher is not None:
            self.comparison.follow(self.watcher.folder.path, self.watcher.state)

    @property
    def is_drawn(self) -> bool:
        """Whether everything that was read is on screen."""
        return not self._timer.isActive()

    def _refresh_soon(self) -> None:
        if self.watcher is not None and not self._timer.isActive():
            self._timer.start(REFRESH_MS)

    def _show_state(self) -> None:
        assert self.watcher is not None
        state = self.watcher.state
        if self.plots.show_state(state):
            self._timer.start(CATCH_UP_MS)
        self.comparison.refresh()
        if self.watcher.is_caught_up:
            # While an old run is read its numbers would only flicker, and every text costs a layout.
            self.tiles.show_state(state, self.watcher.outcome)
            self.journal.show_state(state)
            self.plot_options.show_state(state, self.watcher.outcome)
            self.plots.set_run_name(state.name or self.watcher.folder.name)
        self.header.set_title(title_of(self.watcher))
        self.header.set_subtitle(subtitle_of(self.watcher))
        self._forget_answered()
        self.progress.show_state(state, self.watcher.outcome, self.watcher.is_caught_up)
        self.queue.show_place(self.watcher)
        self._show_buttons()

    def _step_at(self, x: float) -> int:
        """The step at a position in the plots."""
        assert self.watcher is not None
        return self.watcher.state.clock.step_at(self.plots.axis, x)

    def _on_axis_chosen(self, axis: str) -> None:
        self.plots.set_axis(axis)
        self.pick.forget()
        self.comparison.draw_again()
        self._refresh_soon()

    # How it stands

    def _on_outcome(self, outcome: RunStatus) -> None:
        if not outcome.alive:
            self.requests.waiting.clear()
            if self.watcher is not None:
                self.engines.show_run(self.watcher.folder, resumable=outcome.resumable)
        self._show_outcome()
        self._show_state()

    def _show_outcome(self) -> None:
        assert self.watcher is not None
        outcome = self.watcher.outcome
        self.controls.show_outcome(outcome)
        self.fix_buttons.show_outcome(self.watcher.folder, outcome)
        parts = [formatting.sentence(outcome.message), in_titles(outcome.hint)]
        sentence = "\n".join(formatting.with_full_stop(part) for part in parts if part)
        if outcome.state in ("failed", "lost", "interrupted") and sentence:
            self.banner.show_message("error" if outcome.state == "failed" else "warning", sentence)
            if outcome.state == "failed":
                self.journal.show_failure()
        elif outcome.state == "finished" and outcome.fix is not None and outcome.doubt:
            self.banner.show_message("warning", outcome.doubt)
        else:
            self.banner.clear()

    def _show_notes(self) -> None:
        """Show the notes read by the list of runs; a run from another folder is not in it."""
        run = self._context.library.find(self.path) if self.path else None
        self.notes.show_notes(run.path if run else None, run.notes if run else RunNotes())
        self.journal.offer_notes(run is not None)

    def _on_notes_written(self, path: Path, notes: RunNotes) -> None:
        if problem := self._context.library_watcher.annotate(path, notes):
            self.message.emit("error", problem)

    def _on_vanished(self, sentence: str) -> None:
        self.controls.show_gone()
        self.fix_buttons.hide()
        self.requests.hide()
        self._show_state()
        self.banner.show_message("error", tr("{sentence}. See Runs for your other runs.", sentence=sentence))
        if not self.isVisible():
            self.message.emit("error", sentence)

    def _show_buttons(self) -> None:
        if self.watcher is None:
            return
        outcome = self.watcher.outcome
        if not self.watcher.is_gone:
            self.requests.show_usable(outcome)
        self.controls.show_usable(
            outcome,
            self.watcher.is_caught_up,
            self._results(),
            stopping="stop" in self.requests.waiting,
        )

    # What can be asked of it

    def _ask(self, kind: str) -> None:
        assert self.watcher is not None
        problem = self._context.jobs.request(self.watcher.folder.path, kind)
        if problem:
            self.message.emit("error", problem)
            return
        self.requests.waiting[kind] = len(self._answers(kind))
        self._show_buttons()

    def _answers(self, kind: str) -> list[RequestAnswered]:
        assert self.watcher is not None
        return [answer for answer in self.watcher.state.answered if answer.request == kind]

    def _forget_answered(self) -> None:
        # Stop and pause are answered too, but then the run saves for a while: they wait for its end.
        answers = self._answers("checkpoint")
        if len(answers) > self.requests.waiting.get("checkpoint", len(answers)):
            del self.requests.waiting["checkpoint"]
            self.message.emit(
                "success", tr("Saved a checkpoint at step {step}.", step=formatting.group_digits(answers[-1].step))
            )

    def resume(self, engine: str = "") -> None:
        """Continue the run from its last checkpoint, with another engine if one is named."""
        if self.watcher is None:
            return
        self.controls.resuming = True
        self._show_buttons()
        watcher = self.watcher
        self._context.jobs.resume(
            watcher.folder.path,
            lambda _: self._on_resume_answered(watcher.folder),
            lambda sentence: self._on_resume_answered(watcher.folder, "error", sentence),
            engine,
        )

    def _on_resume_answered(self, run: RunFolder, kind: str = "", sentence: str = "") -> None:
        if sentence:
            self.message.emit(kind, formatting.sentence(sentence))
        if self.watcher is None or run is not self.watcher.folder:
            return
        # Not only once it is seen alive: it may end in the same way again before the page refreshes.
        self.controls.resuming = False
        self.watcher.refresh_now()
        self.moves.show_run(run)
        self._show_outcome()
        self._show_buttons()

    def _on_repeated(self, path: str, before: str) -> None:
        self.show_run(path)
        self.comparison.compare(before)

    def _emit_path(self, signal: SignalInstance) -> None:
        if self.path is not None:
            signal.emit(str(self.path))

    def _on_duplicate(self) -> None:
        self._emit_path(self.duplicate_requested)

    def _on_search_requested(self) -> None:
        if self.watcher is not None:
            rates = self.watcher.state.series.get("learning_rate")
            rate = float(max(rates.ys)) if rates else None
            self.search_requested.emit(str(self.path), rate, self.watcher.state.main_metric)

    def _on_export_requested(self) -> None:
        if self.watcher is not None:
            self.exporting.ask(self.watcher.folder)

    def _on_rows_requested(self, step: int) -> None:
        if self.path is not None:
            self.rows_requested.emit(str(self.path), step)

    def _on_event_file_requested(self) -> None:
        if self.path is not None:
            self.tensorboard.choose(self.path)

    def _on_folder(self) -> None:
        if self.path is not None and (problem := open_folder(self.path)):
            self.message.emit("info", problem)


def search_of(run: Path | None) -> Path | None:
    """The folder of the search that a run is a trial of, if it is one."""
    if run is None or run.parent.name != RunFolder(run.parent.parent).trials.name:
        return None
    return run.parent.parent if RunFolder(run.parent.parent).search.exists() else None
