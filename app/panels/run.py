"""Owns the Run page: one run, alive or over, and what can be asked of it."""

from pathlib import Path

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSplitter, QStackedWidget, QVBoxLayout, QWidget

from app.core import wording
from app.core.outcome import Outcome
from app.panels.run_cards.journal import Journal
from app.panels.run_cards.plots import Plots
from app.panels.run_cards.tiles import Tiles
from app.services.context import AppContext
from app.services.run_watcher import RunWatcher
from app.widgets.banner import Banner
from app.widgets.card import label
from app.widgets.empty_state import EmptyState
from app.widgets.icon_label import IconButton
from app.widgets.page_header import PageHeader, page_layout
from app.widgets.pill import Pill
from app.widgets.progress_bar import ThinProgressBar

REFRESH_MS = 100
CATCH_UP_MS = 25
"""Between refreshes while points wait to be handed to the plots."""
PILLS = {
    "starting": "info",
    "running": "accent",
    "finished": "success",
    "stopped": "neutral",
    "paused": "warning",
    "failed": "danger",
    "lost": "danger",
}
BARS = {"finished": "success", "failed": "danger", "lost": "danger", "paused": "warning"}
ASKED = {"stop": "Stopping…", "pause": "Pausing…", "checkpoint": "Saving…"}
WORDS = {"stop": "Stop", "pause": "Pause", "checkpoint": "Checkpoint now"}


class Panel(QWidget):
    """Shows the run of `show_run`; several windows may show the same one."""

    message = Signal(str, str)
    predictions_requested = Signal(str)
    duplicate_requested = Signal(str)
    runs_requested = Signal()

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self.watcher: RunWatcher | None = None
        self._asked: dict[str, int] = {}
        self._resuming = False
        self._dirty = False
        self._timer = QTimer(self, interval=REFRESH_MS)
        self._timer.timeout.connect(self._refresh_if_needed)
        self._build()

    # Widgets

    def _build(self) -> None:
        self.header = PageHeader("Run")
        self.pill = Pill()
        self._build_buttons()
        self.banner = Banner()
        self.stage = label("", "muted")
        self.time_left = label("", "muted")
        self.bar = ThinProgressBar()
        self.tiles, self.plots, self.journal = Tiles(), Plots(), Journal()
        self._pages = QStackedWidget(self)
        self.empty = EmptyState(
            "chart", "No run is open", "Start one under New run, or open an earlier one.", "Show all runs"
        )
        self.empty.asked.connect(self.runs_requested)
        self._pages.addWidget(self.empty)
        self._pages.addWidget(self._body())
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(self._pages)

    def _build_buttons(self) -> None:
        self.buttons = {
            "duplicate": IconButton("Duplicate", "copy"),
            "predictions": IconButton("Predictions", "target"),
            "checkpoint": IconButton(WORDS["checkpoint"], "save"),
            "pause": IconButton(WORDS["pause"], "pause"),
            "stop": IconButton(WORDS["stop"], "stop", "danger"),
            "resume": IconButton("Resume", "play", "primary"),
        }
        self.header.actions.addWidget(self.pill)
        for button in self.buttons.values():
            self.header.actions.addWidget(button)
        for kind in ASKED:
            self.buttons[kind].clicked.connect(lambda _=False, kind=kind: self._ask(kind))
        self.buttons["resume"].clicked.connect(self.resume)
        self.buttons["predictions"].clicked.connect(self._on_predictions)
        self.buttons["duplicate"].clicked.connect(self._on_duplicate)

    def _body(self) -> QWidget:
        body = QWidget()
        layout = page_layout(body)
        layout.addWidget(self.header)
        layout.addWidget(self.banner)
        layout.addWidget(self.tiles)
        layout.addLayout(self._progress())
        split = QSplitter(Qt.Orientation.Vertical)
        split.setChildrenCollapsible(False)
        split.setHandleWidth(14)
        split.addWidget(self.plots)
        split.addWidget(self.journal)
        split.setStretchFactor(0, 3)
        split.setStretchFactor(1, 1)
        split.setSizes([420, 170])
        self.journal.setMinimumHeight(120)
        layout.addWidget(split, 1)
        return body

    def _progress(self) -> QVBoxLayout:
        words = QHBoxLayout()
        words.addWidget(self.stage)
        words.addStretch(1)
        words.addWidget(self.time_left)
        column = QVBoxLayout()
        column.setSpacing(6)
        column.addLayout(words)
        column.addWidget(self.bar)
        return column

    # The run that is shown

    @property
    def path(self) -> Path | None:
        """The folder of the run that is shown."""
        return self.watcher.folder.path if self.watcher else None

    def show_run(self, path: str) -> None:
        """Show another run; showing the present one again changes nothing."""
        if self.watcher is not None and self.path == Path(path):
            self.watcher.look_now()
            return
        self._drop_watcher()
        self._begin_anew()
        self.watcher = watcher = RunWatcher(path, self)
        watcher.advanced.connect(self._mark_dirty)
        watcher.restarted.connect(self._begin_anew)
        watcher.logged.connect(self.journal.add_process_lines)
        watcher.outcome_changed.connect(self._on_outcome)
        watcher.caught_up.connect(self._mark_dirty)
        watcher.vanished.connect(self._on_vanished)
        self._pages.setCurrentIndex(1)
        self._timer.start()
        self._show_state()
        self._show_outcome()

    def _drop_watcher(self) -> None:
        if self.watcher is not None:
            self.watcher.stop()
            self.watcher.deleteLater()
            self.watcher = None

    def _begin_anew(self) -> None:
        self._asked, self._resuming = {}, False
        self.tiles.clear()
        self.plots.clear()
        self.journal.clear()
        self.banner.clear()

    def _mark_dirty(self) -> None:
        self._dirty = True

    def _refresh_if_needed(self) -> None:
        if self._dirty:
            self._dirty = False
            self._show_state()

    def _show_state(self) -> None:
        assert self.watcher is not None
        state = self.watcher.state
        self._dirty = self.plots.show_state(state)
        self._timer.setInterval(CATCH_UP_MS if self._dirty else REFRESH_MS)
        if self.watcher.is_caught_up:
            # While an old run is read its numbers would only flicker, and every text costs a layout.
            self.tiles.show_state(state, self.watcher.outcome)
            self.journal.show_state(state)
        self.header.set_title(state.name or self.watcher.folder.name)
        self.header.set_subtitle(_subtitle(self.watcher))
        self._forget_answered()
        self._show_progress()
        self._show_buttons()

    def _show_progress(self) -> None:
        assert self.watcher is not None
        state, outcome = self.watcher.state, self.watcher.outcome
        fraction = state.fraction if outcome.alive or state.fraction is not None else 0.0
        self.bar.set_fraction(
            fraction if self.watcher.is_caught_up else state.fraction, BARS.get(outcome.state, "accent")
        )
        _set(self.stage, _stage_words(self.watcher))
        left = state.eta_seconds if outcome.alive else None
        _set(self.time_left, f"{wording.duration(left)} left" if left is not None else "")

    # How it stands

    def _on_outcome(self, outcome: Outcome) -> None:
        self._resuming = self._resuming and not outcome.alive
        if not outcome.alive:
            self._asked.clear()
        self._show_outcome()
        self._show_state()

    def _show_outcome(self) -> None:
        assert self.watcher is not None
        outcome = self.watcher.outcome
        self.pill.set(outcome.title, PILLS.get(outcome.state, "neutral"))
        said = "\n".join(filter(None, [outcome.message, outcome.hint]))
        if outcome.state in ("failed", "lost") and said:
            self.banner.show_message("error" if outcome.state == "failed" else "warning", said)
            self.journal.show_page("Process log" if outcome.state == "failed" else "Journal")
        else:
            self.banner.clear()

    def _on_vanished(self, sentence: str) -> None:
        self.pill.set("Gone", "danger")
        self.banner.show_message("error", f"{sentence}. Other runs are listed under Runs.")
        for button in self.buttons.values():
            button.setVisible(False)
        self.message.emit("error", sentence)

    def _show_buttons(self) -> None:
        assert self.watcher is not None
        outcome = self.watcher.outcome
        for kind, doing in ASKED.items():
            button = self.buttons[kind]
            button.setVisible(outcome.alive)
            button.setEnabled(kind not in self._asked and "stop" not in self._asked)
            button.setText(doing if kind in self._asked else WORDS[kind])
        self.buttons["resume"].setVisible(outcome.resumable and self.watcher.is_caught_up)
        self.buttons["resume"].setEnabled(not self._resuming)
        self.buttons["resume"].setText("Resuming…" if self._resuming else "Resume")
        self.buttons["duplicate"].setVisible(not outcome.alive)
        self.buttons["predictions"].setVisible(bool(self.watcher.state.predictions))

    # What can be asked of it

    def _ask(self, kind: str) -> None:
        assert self.watcher is not None
        problem = self._context.jobs.request(self.watcher.folder.path, kind)
        if problem:
            self.message.emit("error", problem)
            return
        self._asked[kind] = len(self.watcher.state.checkpoints)
        self._show_buttons()

    def _forget_answered(self) -> None:
        # A checkpoint is answered when its request file is gone; stop and pause end with the run.
        assert self.watcher is not None
        if "checkpoint" in self._asked and not (self.watcher.folder.path / "checkpoint").exists():
            del self._asked["checkpoint"]
            if self.watcher.outcome.alive and self.watcher.state.checkpoints:
                self.message.emit("success", f"Checkpoint saved at step {max(self.watcher.state.checkpoints)}")

    def resume(self) -> None:
        """Continue the run from its last checkpoint."""
        if self.watcher is None:
            return
        self._resuming = True
        self._show_buttons()
        self._context.jobs.resume(self.watcher.folder.path, self._on_resumed, self._on_not_resumed)

    def _on_resumed(self, path: str) -> None:
        if self.watcher is not None and Path(path) == self.path:
            self.watcher.look_now()

    def _on_not_resumed(self, sentence: str) -> None:
        self._resuming = False
        self.message.emit("error", sentence)
        if self.watcher is not None:
            self._show_buttons()

    def _on_predictions(self) -> None:
        if self.path is not None:
            self.predictions_requested.emit(str(self.path))

    def _on_duplicate(self) -> None:
        if self.path is not None:
            self.duplicate_requested.emit(str(self.path))


def _subtitle(watcher: RunWatcher) -> str:
    state, data = watcher.state, watcher.state.training_data
    parts = [wording.name_of_path(state.model)] if state.model else []
    if data is not None:
        files = ", ".join(wording.name_of_path(file) for file in data.files[:2])
        parts.append(f"on {files}" if files else "")
        return f"{' '.join(filter(None, parts))} · {wording.count(data.rows, 'row')}"
    return " ".join(parts) or str(watcher.folder.path)


def _stage_words(watcher: RunWatcher) -> str:
    state, outcome = watcher.state, watcher.outcome
    if not watcher.is_caught_up:
        return "Reading the run…"
    if not outcome.alive:
        return outcome.title if outcome.state != "finished" else "Finished"
    if state.finished is not None or not state.stage:
        return outcome.title
    words = state.stage.capitalize()
    if state.stage == "training":
        return words
    if state.stage_total:
        return f"{words} · {wording.grouped(state.stage_done)} of {wording.grouped(state.stage_total)} {state.stage_unit}".rstrip()
    return f"{words}…"


def _set(shown: QLabel, text: str) -> None:
    if shown.text() != text:
        shown.setText(text)
