"""A run's progress: a row of numbers, its stage, the time left, and a bar."""

import time

from PySide6.QtCore import QSize, Qt, QTimer, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QGridLayout, QLabel, QSizePolicy, QStackedWidget, QWidget

from app.core import formatting
from app.core.backend_messages import translate_message
from app.core.backend_words import capitalize, translate_word
from app.core.draft.section_words import folder_words
from app.core.i18n import tr, trn
from app.core.runs.run_spec import read_subject
from app.core.runs.run_state import RunState
from app.core.runs.run_status import NO_CURVES, RunStatus
from app.core.runs.series import Series
from app.services.run_watcher import RunWatcher
from app.widgets.boxes import hbox, vbox
from app.widgets.card import KpiTile, label
from app.widgets.icon_label import IconButton
from app.widgets.progress import ThinProgressBar
from app.widgets.text.elided_label import ElidedLabel
from backend.contract.metrics import beats_rule, deciding_metrics, is_at_chance

CAPTIONS = {
    "loss": tr("Training loss"),
    "evaluation_loss": tr("Evaluation loss"),
    "metric": tr("Metric"),
    "step": tr("Step"),
    "speed": tr("Rows/s"),
    "learning_rate": tr("Learning rate"),
    "memory": tr("Memory"),
    "eta": tr("Time left"),
}
WIDE = 1240
"""From this width on all tiles are in one row."""
AGING_MS = 5000
"""Between two looks at how old the memory reading is."""
FEW = 4
"""Tiles of one row where there is no room for two: the losses, the metric and the step."""
MOST_NAMED = 2
"""Files that the heading names; of more it says how many they are."""

REQUESTS = {
    "checkpoint": (tr("Checkpoint now"), tr("Saving…"), "save"),
    "pause": (tr("Pause"), tr("Pausing…"), "pause"),
    "stop": (tr("Stop"), tr("Stopping…"), "stop"),
}
"""Kind → words, words while it waits for the answer, icon."""
SHORT = "checkpoint"
"""The request that is an icon where there is little room."""
ROOM_FOR_TIME, ROOM_FOR_WORDS = 820, 730
"""Pixels of the row from which it shows the time left, and all buttons with their words."""
BARS = {"finished": "success", "failed": "danger", "lost": "danger", "paused": "warning", "interrupted": "warning"}
"""State → colour of the bar."""


class RunRequests(QWidget):
    """Buttons for a run that is training; hidden when it has ended."""

    requested = Signal(str)
    """A key of REQUESTS."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.waiting: dict[str, int] = {}
        """Kind of a request that was not answered yet → how many answers of its kind there were before."""
        self._is_narrow = self._waits = False
        self.buttons: dict[str, IconButton] = {}
        for kind, (words, doing, icon) in REQUESTS.items():
            button = self.buttons[kind] = IconButton(words, icon, "danger" if kind == "stop" else "")
            button.clicked.connect(lambda _=False, kind=kind: self.requested.emit(kind))
            button.make_room(doing)
            button.setEnabled(False)
        hbox(*self.buttons.values(), spacing=8, parent=self)
        self.hide()

    def show_usable(self, outcome: RunStatus) -> None:
        """Enable the requests that are possible now; a queued run can only be stopped."""
        self.setVisible(outcome.alive)
        self._waits = outcome.waits
        for kind, button in self.buttons.items():
            button.setEnabled(not self.waiting.keys() & {kind, "stop"} and (kind == "stop" or not outcome.waits))
            self._show_words(kind)

    def set_narrow(self, is_narrow: bool) -> None:
        """Show the first button as an icon if there is little room."""
        if is_narrow == self._is_narrow:
            return
        self._is_narrow = is_narrow
        self._show_words(SHORT)
        button, (words, doing, _) = self.buttons[SHORT], REQUESTS[SHORT]
        button.setMinimumWidth(0)
        if not is_narrow:
            button.make_room(words, doing)

    def _show_words(self, kind: str) -> None:
        """Set the button's text, its tooltip, and its name for a screen reader."""
        button, (words, doing, _) = self.buttons[kind], REQUESTS[kind]
        name = doing if kind in self.waiting else words
        is_icon = kind == SHORT and self._is_narrow and name == words
        button.setText("" if is_icon else name)
        button.setAccessibleName(name)
        hint = words if is_icon else ""
        waits = tr("Remove the run from the queue") if kind == "stop" else tr("The run is still queued.")
        button.setToolTip(waits if self._waits else hint)


class RunProgress(QWidget):
    """A caption above a thin bar, with the run's buttons beside it; its height never changes."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.stage, self.time_left = ElidedLabel("", "muted"), label("", "muted")
        self.bar = ThinProgressBar()
        self.requests = RunRequests()
        words = hbox((self.stage, 1), self.time_left)
        hbox((vbox(words, self.bar, spacing=6), 1), self.requests, spacing=16, parent=self)
        self.setFixedHeight(self.requests.sizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Leave the stage its room: the time left stands above and below too."""
        super().resizeEvent(event)
        self.time_left.setVisible(event.size().width() >= ROOM_FOR_TIME)
        self.requests.set_narrow(event.size().width() < ROOM_FOR_WORDS)

    def show_state(self, state: RunState, outcome: RunStatus, is_caught_up: bool) -> None:
        """Show the changed values."""
        fraction = state.fraction
        if is_caught_up and (outcome.waits or not outcome.alive):
            fraction = state.fraction_of_steps or float(outcome.lacks_events and outcome.state == "finished")
        self.bar.set_fraction(fraction, "warning" if outcome.doubt else BARS.get(outcome.state, "accent"))
        if not is_caught_up:
            _set(self.stage, tr("Loading the run…"))
        elif not outcome.waits:  # what it waits for is said by `show_waiting`
            _set(self.stage, stage_words(state, outcome))
        left = state.eta_seconds if outcome.alive else None
        _set(self.time_left, tr("About {left} left", left=formatting.duration(left)) if left is not None else "")

    def show_waiting(self, words: str) -> None:
        """Show what a queued run is waiting for."""
        _set(self.stage, words)


def stage_words(state: RunState, outcome: RunStatus) -> str:
    """`Training · step 120 of 600 · epoch 1.2 of 4`, or how and where the run ended."""
    if not outcome.alive or state.finished is not None:
        at = tr("at {step_words}", step_words=_step_words(state)) if state.step else ""
        ended = outcome.title if outcome.state == "finished" else " ".join(filter(None, [outcome.title, at]))
        saved = tr("saved model {origin}", origin=origin) if (origin := state.model_origin) else ""
        return " · ".join(filter(None, [ended, saved]))
    if not state.stage:
        return f"{outcome.title}…"
    words = capitalize(translate_word(state.stage))
    if state.stage == "training":
        return f"{words} · {_step_words(state)}"
    if state.stage_total and state.stage_unit == "bytes":
        done, total = formatting.megabytes(state.stage_done / 1e6), formatting.megabytes(state.stage_total / 1e6)
        return (
            tr("Downloading the model · {done} of {total}", done=done, total=total)
            if state.stage == "finding model"
            else tr("{words} · {done} of {total}", words=words, done=done, total=total)
        )
    if state.stage_total:
        done, total = formatting.group_digits(state.stage_done), formatting.group_digits(state.stage_total)
        return tr(
            "{words} · {done} of {total} {stage_unit}",
            words=words,
            done=done,
            total=total,
            stage_unit=translate_word(state.stage_unit),
        ).rstrip()
    return f"{words}…"


def _step_words(state: RunState) -> str:
    total = tr(" of {total_steps}", total_steps=formatting.group_digits(state.total_steps)) if state.total_steps else ""
    epochs = (
        tr(" · epoch {epoch:.1f} of {epochs}", epoch=state.epoch, epochs=formatting.epochs(state.plan.epochs))
        if state.plan
        else ""
    )
    return tr("step {step}{total}{epochs}", step=formatting.group_digits(state.step), total=total, epochs=epochs)


def _set(label: QLabel, text: str) -> None:
    # An equal text would lay out the page all the same.
    if label.text() != text:
        label.setText(text)


class ProgressTiles(QStackedWidget):
    """Eight numbers, in one row or two; until there is one, a sentence in a place of the same size."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        # A hidden page tells no one that it grew: with the line below from the start, it keeps its height.
        self.tiles = {key: KpiTile(caption, sub="\u00a0") for key, caption in CAPTIONS.items()}
        self.nothing = label("", "muted")
        self.nothing.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._numbers = QWidget()
        for page in (self.nothing, self._numbers):
            self.addWidget(page)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self._grid = QGridLayout(self._numbers)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setSpacing(12)
        self._columns = 0
        self._is_low = self._is_alive = False
        self._state: RunState | None = None
        self._aging = QTimer(self, interval=AGING_MS)
        self._aging.timeout.connect(self._show_memory)
        self._arrange(FEW)

    def clear(self) -> None:
        """Show nothing: there is no run, or it has not been read yet."""
        self.nothing.clear()
        self.setCurrentWidget(self.nothing)
        self._state = None
        self._aging.stop()
        for tile in self.tiles.values():
            tile.set_value("–", " ")

    def show_state(self, state: RunState, outcome: RunStatus) -> None:
        """Show the changed values; unchanged text costs nothing."""
        has_numbers = bool(state.series or state.metric_series)
        self.setCurrentWidget(self._numbers if has_numbers else self.nothing)
        _set(self.nothing, "" if has_numbers else _words_without_numbers(outcome))
        self._show_losses(state)
        self._show_metric(state)
        total = (
            tr("of {total_steps}", total_steps=formatting.group_digits(state.total_steps))
            if state.total_steps
            else "\u00a0"
        )
        epochs = (
            tr(" · epoch {epoch:.1f}/{epochs}", epoch=state.epoch, epochs=formatting.epochs(state.plan.epochs))
            if state.plan
            else ""
        )
        self.tiles["step"].set_value(formatting.group_digits(state.step), total + epochs)
        tokens = tr("{tokens_per_second} tokens/s", tokens_per_second=formatting.rate(state.pace.tokens_per_second))
        self.tiles["speed"].set_value(formatting.rate(state.pace.rows_per_second), tokens)
        self.tiles["speed"].setToolTip(_left_out(state))
        rate = state.series.get("learning_rate")
        norm = state.series.get("gradient_norm")
        steepness = tr("gradient norm {last}", last=formatting.number(norm.last, 2)) if norm else "\u00a0"
        self.tiles["learning_rate"].set_value(formatting.scientific(rate.last if rate else None), steepness)
        self._state, self._is_alive = state, outcome.alive
        self._show_memory()
        self._aging.start()
        self._show_time(state, outcome)

    def _show_losses(self, state: RunState) -> None:
        loss = state.series.get("loss")
        mean = (
            tr("recent average {recent_mean}", recent_mean=formatting.number(_recent_mean(loss))) if loss else "\u00a0"
        )
        self.tiles["loss"].set_value(formatting.number(loss.last if loss else None), mean)
        evaluated = state.metric_series.get("loss")
        where = (
            tr("at step {xs}", xs=formatting.group_digits(int(evaluated.xs[-1])))
            if evaluated
            else tr("not evaluated yet")
        )
        self.tiles["evaluation_loss"].set_value(formatting.number(evaluated.last if evaluated else None), where)

    def _show_metric(self, state: RunState) -> None:
        name, tile = _metric_beside_loss(state), self.tiles["metric"]
        tile.set_caption(_caption_of(name, state))
        tile.setToolTip("\n".join(_metric_hints(name, state)))
        if not name:
            tile.set_value("–", "\u00a0")
            return
        best, trivial = state.best_of(name), state.plan.trivial if state.plan else {}
        if best is not None and (state.at_chance or is_at_chance({name: best[1]}, trivial)):
            of_rule = trivial.get(name) if name in deciding_metrics(trivial) else None  # a mean of metrics has none
            sub = (
                tr("no better than without a model ({value})", value=formatting.number(of_rule))
                if of_rule is not None
                else tr("no better than without a model")
            )
            tile.set_value(formatting.number(state.last_metric(name)), sub)
            return
        tile.set_value(formatting.number(state.last_metric(name)), _best_words(name, best, state))

    def _show_memory(self) -> None:
        """Show the latest reading; one of a living run that is no longer new says how old it is, as when it hangs."""
        assert self._state is not None
        state, memory = self._state, self._state.memory
        parts = [state.device, state.precision]
        value: float | None = None
        if memory is not None:
            if self._is_alive:
                parts.insert(0, formatting.reading_age(memory.time, time.time()))
            value = memory.memory_mb
            if memory.device_memory_mb is not None:
                value = memory.device_memory_mb
                if memory.processes > 1:
                    parts.insert(0, tr("first of {count} accelerators", count=memory.processes))
                parts.append(tr("{memory_mb} RAM", memory_mb=formatting.megabytes(memory.memory_mb)))
            if memory.processes > 1:
                parts.append(trn("{count} process", "{count} processes", memory.processes))
        self.tiles["memory"].set_value(formatting.megabytes(value), " · ".join(filter(None, parts)) or "\u00a0")

    def _show_time(self, state: RunState, outcome: RunStatus) -> None:
        tile, spent = self.tiles["eta"], state.seconds_spent
        if outcome.alive:
            tile.set_caption(tr("Time left"))
            tile.set_value(
                formatting.duration(state.eta_seconds), tr("{spent} elapsed", spent=formatting.duration(spent))
            )
        else:
            tile.set_caption(tr("Duration"))
            tile.set_value(
                formatting.duration(spent), tr("started {started}", started=formatting.moment(state.started))
            )

    def minimumSizeHint(self) -> QSize:
        """The width of a few tiles: one row of all would keep a window that becomes narrow from arranging them anew."""
        hint = super().minimumSizeHint()
        return QSize(hint.width() * FEW // max(FEW, self._columns), hint.height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Use one row if it fits."""
        super().resizeEvent(event)
        self._arrange(len(self.tiles) if event.size().width() >= WIDE else FEW)

    def set_low(self, is_low: bool) -> None:
        """Set whether the page is too low for a second row."""
        if is_low != self._is_low:
            self._is_low = is_low
            self._show_rows()

    def _show_rows(self) -> None:
        for number, tile in enumerate(self.tiles.values()):
            tile.setVisible(number < self._columns or not self._is_low)
        self.updateGeometry()  # the numbers do not tell while the sentence stands in their place

    def _arrange(self, columns: int) -> None:
        if columns == self._columns:
            return
        self._columns = columns
        for number, tile in enumerate(self.tiles.values()):
            self._grid.addWidget(tile, number // columns, number % columns)
        for column in range(8):
            self._grid.setColumnStretch(column, 1 if column < columns else 0)
        self._show_rows()


def _words_without_numbers(outcome: RunStatus) -> str:
    if outcome.lacks_events:
        return NO_CURVES
    if outcome.alive:
        return tr("Loss, speed and memory appear here after the first step.")
    return tr("The run ended before its first step.")


def _left_out(state: RunState) -> str:
    """What the speed excludes, for an engine that compiles."""
    if not state.compilations:
        return ""
    programs, seconds = (
        trn("{count} program", "{count} programs", state.compilations),
        formatting.duration(state.compiling_seconds),
    )
    return tr("Excludes compile time: {programs}, {seconds}", programs=programs, seconds=seconds)


def _caption_of(name: str, state: RunState) -> str:
    """The metric's title, and beside it what a rule without a model reaches."""
    if not name:
        return tr("Metric")
    title, rule = formatting.metric_title(name), state.trivial.get(name)
    return title if rule is None else tr("{title} · {rule} without a model", title=title, rule=formatting.number(rule))


def _metric_hints(name: str, state: RunState) -> list[str]:
    interval, rule = state.intervals.get(name), state.trivial.get(name)
    hints = []
    if interval is not None:
        hints.append(tr("In parentheses: the 95 % confidence interval of the saved model."))
    beats = beats_rule(interval, rule, state.greater_is_better(name))
    if beats is not None and rule is not None:
        value = formatting.number(rule)
        hints.append(
            tr("All of it is better than a rule without a model ({value}).", value=value)
            if beats
            else tr("It may be no better than a rule without a model ({value}).", value=value)
        )
    elif rule is not None:
        hints.append(tr("A rule without a model reaches {value}.", value=formatting.number(rule)))
    return hints


def _best_words(name: str, best: tuple[int, float] | None, state: RunState) -> str:
    """A metric's best value and its step; of a finished run the saved model's, which has an interval."""
    interval = state.intervals.get(name)
    if interval is not None and state.finished is not None:
        return tr("model {value}", value=formatting.sure_number(state.finished.metrics.get(name), interval))
    if best is None:
        return "\u00a0"
    return tr("best {best} · step {step}", best=formatting.number(best[1]), step=formatting.group_digits(best[0]))


def _recent_mean(series: Series, points: int = 20) -> float:
    """The mean of the last points, because single steps are noisy."""
    last = series.ys[-points:]
    return sum(last) / len(last)


def _metric_beside_loss(state: RunState) -> str:
    """The deciding metric; if that is the loss, which has a tile of its own, the first other one, such as perplexity."""
    if state.main_metric not in ("", "loss"):
        return state.main_metric
    return next((name for name in state.metric_names if "/" not in name), "")


# What the run is about


def title_of(watcher: RunWatcher) -> str:
    """The run's name."""
    if watcher.state.name or not watcher.is_caught_up:
        return watcher.state.name or watcher.folder.name
    return read_subject(watcher.folder).title


def subtitle_of(watcher: RunWatcher) -> str:
    """Its model and data, and where it runs if that is not here."""
    remote = watcher.folder.remote_run()
    place = tr("runs on {machine}", machine=remote.machine) if remote is not None else ""
    job = watcher.folder.job_record() if remote is not None and watcher.outcome.alive else None
    words = translate_message(job.describe_running()) if job is not None and not watcher.outcome.waits else ""
    return " · ".join(filter(None, (_describe_subject(watcher), place, words)))


def _describe_subject(watcher: RunWatcher) -> str:
    state, data = watcher.state, watcher.state.training_data
    if watcher.is_caught_up and not state.name:  # it waits in the queue, or was removed from it
        subject = read_subject(watcher.folder)
        files = tr("on {files}", files=subject.data) if subject.data else ""
        words = " ".join(filter(None, [formatting.name_of_path(subject.model), files]))
        return words or str(watcher.folder.path)
    parts = [formatting.name_of_path(state.model)] if state.model else []
    if data is not None:
        names = ", ".join(map(formatting.name_of_path, data.files))
        count = len(data.files)
        files = folder_words(read_subject(watcher.folder).train_path, count) if count > MOST_NAMED else names
        parts.append(tr("on {files}", files=files) if files else "")
        return f"{' '.join(filter(None, parts))} · {trn('{count} row', '{count} rows', data.rows)}"
    return " ".join(parts) or str(watcher.folder.path)
