"""Owns the line that says how far a run is: its stage, the time left, and a bar."""

from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from app.core import formatting
from app.core.backend_words import begun, said
from app.core.i18n import tr
from app.core.runs.run_state import RunState
from app.core.runs.run_status import Outcome
from app.widgets.card import label
from app.widgets.progress_bar import ThinProgressBar

BARS = {"finished": "success", "failed": "danger", "lost": "danger", "paused": "warning", "interrupted": "warning"}
"""State → colour of the bar."""


class Progress(QWidget):
    """Words above a thin bar."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.stage, self.time_left = label("", "muted"), label("", "muted")
        self.bar = ThinProgressBar()
        words = QHBoxLayout()
        words.addWidget(self.stage)
        words.addStretch(1)
        words.addWidget(self.time_left)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        column.addLayout(words)
        column.addWidget(self.bar)

    def show_state(self, state: RunState, outcome: Outcome, is_caught_up: bool) -> None:
        """Take over what has changed."""
        fraction = state.fraction
        if is_caught_up and (outcome.waits or not outcome.alive):
            fraction = state.fraction_of_steps or float(outcome.lacks_events and outcome.state == "finished")
        self.bar.set_fraction(fraction, "warning" if outcome.doubt else BARS.get(outcome.state, "accent"))
        if not is_caught_up:
            _set(self.stage, tr("Reading the run…"))
        elif not outcome.waits:  # what it waits for is said by `show_waiting`
            _set(self.stage, stage_words(state, outcome))
        # That it is finished stands at the page's head already.
        self.stage.setHidden(is_caught_up and outcome.state == "finished")
        self.time_left.setHidden(self.stage.isHidden())
        left = state.eta_seconds if outcome.alive else None
        _set(self.time_left, tr("About {left} left", left=formatting.duration(left)) if left is not None else "")

    def show_waiting(self, words: str) -> None:
        """What a run in the queue waits for."""
        _set(self.stage, words)


def stage_words(state: RunState, outcome: Outcome) -> str:
    """`Training · step 120 of 600 · epoch 1.2 of 4`, or how the run ended and where."""
    if not outcome.alive or state.finished is not None:
        at = tr("at {step_words}", step_words=_step_words(state)) if state.step else ""
        return outcome.title if outcome.state == "finished" else " ".join(filter(None, [outcome.title, at]))
    if not state.stage:
        return f"{outcome.title}…"
    words = begun(said(state.stage))
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
        done, total = formatting.grouped(state.stage_done), formatting.grouped(state.stage_total)
        return tr(
            "{words} · {done} of {total} {stage_unit}",
            words=words,
            done=done,
            total=total,
            stage_unit=said(state.stage_unit),
        ).rstrip()
    return f"{words}…"


def _step_words(state: RunState) -> str:
    total = tr(" of {total_steps}", total_steps=formatting.grouped(state.total_steps)) if state.total_steps else ""
    epochs = (
        tr(" · epoch {epoch:.1f} of {epochs}", epoch=state.epoch, epochs=formatting.epochs(state.plan.epochs))
        if state.plan
        else ""
    )
    return tr("step {step}{total}{epochs}", step=formatting.grouped(state.step), total=total, epochs=epochs)


def _set(shown: QLabel, text: str) -> None:
    # An equal text would lay out the page all the same.
    if shown.text() != text:
        shown.setText(text)
