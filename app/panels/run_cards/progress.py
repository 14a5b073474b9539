"""Owns the line that says how far a run is: its stage, the time left, and a bar."""

from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from app.core import wording
from app.core.outcome import Outcome
from app.core.run_state import RunState
from app.widgets.card import label
from app.widgets.progress_bar import ThinProgressBar

BARS = {"finished": "success", "failed": "danger", "lost": "danger", "paused": "warning"}
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
        if is_caught_up and not outcome.alive:
            fraction = state.fraction_of_steps or 0.0
        self.bar.set_fraction(fraction, BARS.get(outcome.state, "accent"))
        _set(self.stage, stage_words(state, outcome) if is_caught_up else "Reading the run…")
        left = state.eta_seconds if outcome.alive else None
        _set(self.time_left, f"About {wording.duration(left)} left" if left is not None else "")


def stage_words(state: RunState, outcome: Outcome) -> str:
    """`Training · step 120 of 600 · epoch 1.2 of 4`, or how the run ended and where."""
    if not outcome.alive or state.finished is not None:
        at = f"at {_step_words(state)}" if state.step else ""
        return outcome.title if outcome.state == "finished" else " ".join(filter(None, [outcome.title, at]))
    if not state.stage:
        return f"{outcome.title}…"
    words = state.stage.capitalize()
    if state.stage == "training":
        return f"{words} · {_step_words(state)}"
    if state.stage_total and state.stage_unit == "bytes":
        done, total = wording.megabytes(state.stage_done / 1e6), wording.megabytes(state.stage_total / 1e6)
        return (
            f"Downloading the model · {done} of {total}"
            if state.stage == "finding model"
            else f"{words} · {done} of {total}"
        )
    if state.stage_total:
        done, total = wording.grouped(state.stage_done), wording.grouped(state.stage_total)
        return f"{words} · {done} of {total} {state.stage_unit}".rstrip()
    return f"{words}…"


def _step_words(state: RunState) -> str:
    total = f" of {wording.grouped(state.total_steps)}" if state.total_steps else ""
    epochs = f" · epoch {state.epoch:.1f} of {wording.epochs(state.plan.epochs)}" if state.plan else ""
    return f"step {wording.grouped(state.step)}{total}{epochs}"


def _set(shown: QLabel, text: str) -> None:
    # An equal text would lay out the page all the same.
    if shown.text() != text:
        shown.setText(text)
