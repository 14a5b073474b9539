"""Derives the status of a run from its events, lock and exit record, and describes it in words."""

import signal
import time
from dataclasses import dataclass, replace

from app.core import formatting
from app.core.backend_messages import translate_message
from app.core.backend_words import capitalize
from app.core.i18n import tr
from app.core.runs.run_state import RunState
from backend.contract.run.fixes import RunFix, halve_batch
from backend.contract.run.folder import GROWTH_SECONDS, ExitRecord, Life, RunFolder

RESUMABLE = ("stopped", "paused", "interrupted", "failed", "lost")
ALIVE = ("queued", "starting", "running")
TITLES = {
    "queued": tr("Queued"),
    "starting": tr("Starting"),
    "running": tr("Training"),
    "finished": tr("Finished"),
    "stopped": tr("Stopped"),
    "paused": tr("Paused"),
    "interrupted": tr("Interrupted"),
    "failed": tr("Failed"),
    "lost": tr("Lost"),
}
KINDS = {
    "queued": "info",
    "starting": "info",
    "running": "accent",
    "finished": "success",
    "stopped": "neutral",
    "paused": "warning",
    "interrupted": "warning",
    "failed": "danger",
    "lost": "danger",
}
"""State → how good or bad it is, as pills and bars are coloured."""

NO_CURVES = tr("No curves: events.jsonl was deleted.")


@dataclass(frozen=True)
class RunStatus:
    """A run's status: one of RUN_STATES, with a sentence and a fix if there is something to say."""

    state: str
    message: str = ""
    hint: str = ""
    fix: RunFix | None = None
    """What helps, where a click can do it."""
    can_resume: bool = True
    """Whether going on could come to another end."""
    doubt: str = ""
    """Why a finished run is not a success."""
    lacks_events: bool = False
    """Whether its events were deleted, so that only the other files of its folder show how it ended."""
    job: str = ""
    """What its job on a cluster waits for; empty if the run does not wait, or waits in the queue of this computer."""

    @property
    def alive(self) -> bool:
        """Whether a process is running it."""
        return self.state in ALIVE

    @property
    def waits(self) -> bool:
        """Whether it is queued: it has a process, but computes nothing yet."""
        return self.state == "queued"

    @property
    def resumable(self) -> bool:
        """Whether `resume` may continue it."""
        return self.state in RESUMABLE and self.can_resume

    @property
    def title(self) -> str:
        """The display text of the state."""
        return TITLES.get(self.state, capitalize(self.state))

    @property
    def kind(self) -> str:
        """One of the kinds of a pill."""
        return kind_of(self.state, self.doubt)


@dataclass(frozen=True)
class RunResults:
    """What a run has so far."""

    can_try: bool = False
    """Whether there are weights to ask: the model, or a checkpoint."""
    has_predictions: bool = False
    has_model: bool = False
    are_weights_removed: bool = False
    """Whether there was a model, of which only what is small was kept, as of a trial that has lost."""


def results_of(folder: RunFolder, state: RunState, outcome: RunStatus) -> RunResults:
    """What a run has so far, from its events; from its folder only if they were deleted."""
    if outcome.lacks_events:
        has_model = folder.model.is_dir()
        return RunResults(has_model, bool(folder.prediction_names()), has_model)
    are_removed = state.has_model and folder.model.is_dir() and not any(folder.model.glob("*.safetensors"))
    has_model = state.has_model and not are_removed
    has_checkpoint = bool(folder.checkpoint_steps() if are_removed else state.checkpoints)
    return RunResults(has_model or has_checkpoint, bool(state.predictions), has_model, are_removed)


def kind_of(state: str, doubt: str = "") -> str:
    """The kind of a state, for the colour of pills; a finished run that learned nothing is not a success."""
    return "warning" if state == "finished" and doubt else KINDS.get(state, "neutral")


def look_at(folder: RunFolder, state: RunState, now: float | None = None) -> RunStatus:
    """The status of the run in `folder`, given its events."""
    life, record = folder.life(now), folder.exit_record()
    if life == "alive" and record is None and folder.waits():
        job = folder.pending_job()
        return RunStatus("queued", job=capitalize(translate_message(job.describe_waiting())) if job else "")
    end = state.finished
    has_not_spoken = end is not None and folder.has_later_attempt(state.attempt, end.time)
    if life == "alive" and record is None and has_not_spoken:
        return RunStatus("starting")
    if life == "lost" and folder.queued.exists():
        return RunStatus(
            "lost", tr("The run was lost while it was in the queue."), tr("Resume to put it back in the queue.")
        )
    if _has_lost_its_events(folder, state, record):
        if folder.has_results():
            return RunStatus("finished", NO_CURVES, lacks_events=True)
        words = tr("The run's events.jsonl is missing.")
        return RunStatus("lost", words, tr("Resume to continue from the last checkpoint."), lacks_events=True)
    age = (now or time.time()) - _modified_at(folder) if life == "new" else 0.0
    if has_not_spoken and (record is None or not record.state):
        state = replace(state, finished=None)
    return derive(state, life, record, age)


def _has_lost_its_events(folder: RunFolder, state: RunState, record: ExitRecord | None) -> bool:
    """Whether nothing records how a successful run ended: it may be paused, stopped or finished."""
    if record is None or record.has_failed or record.state or record.message:
        return False
    return state.finished is None and not folder.events.exists() and not folder.is_carried()


def _modified_at(folder: RunFolder) -> float:
    try:
        return folder.spec.stat().st_mtime
    except OSError:
        return 0.0


def derive(state: RunState, life: Life, record: ExitRecord | None, age_seconds: float = 0.0) -> RunStatus:
    """The status from events, life and exit record; `age_seconds` is how long a run without a process has waited."""
    if record is not None and record.state:
        return _status_without_event(record, state)
    if life == "alive":
        # Between its last event and its exit a finished run is still carried by a process.
        return _status_of_end(state) if state.finished is not None else RunStatus(state.state)
    if state.finished is not None:
        return _status_of_end(state)
    if life == "ended" and record is not None:
        return RunStatus("failed", _exit_words(record), _again(state), _fix_for_kill(record, state))
    if life == "new" and age_seconds < GROWTH_SECONDS:
        return RunStatus("starting")
    if life == "new":
        return RunStatus("lost", tr("This run was never started."), tr("Resume to start it."))
    return RunStatus(
        "lost",
        tr("The run ended unexpectedly: its process was killed, or the computer shut down."),
        tr("Resume to continue from the last checkpoint."),
    )


def _status_of_end(state: RunState) -> RunStatus:
    end = state.finished
    assert end is not None
    can_resume = end.can_go_on(has_checkpoint=bool(state.checkpoints))
    hint = _again(state) if end.state == "interrupted" else end.hint
    return RunStatus(end.state, end.message, hint, end.mend, can_resume)


def _status_without_event(record: ExitRecord, state: RunState) -> RunStatus:
    """The status of an attempt that was stopped before there was an engine to write an event."""
    can_resume = state.finished is None or _status_of_end(state).can_resume
    if record.state != "interrupted":
        return RunStatus(record.state, tr("It was removed from the queue before it started."), can_resume=can_resume)
    if record.message:
        return RunStatus(record.state, _exit_words(record), _again(state), can_resume=can_resume)
    words = tr("The run was interrupted while it was in the queue.")
    return RunStatus(record.state, words, tr("Resume to put it back in the queue."), can_resume=can_resume)


def _again(state: RunState) -> str:
    return (
        tr("Resume to continue from the last checkpoint.")
        if state.checkpoints
        else tr("Resume to restart it from scratch.")
    )


def _fix_for_kill(record: ExitRecord, state: RunState) -> RunFix | None:
    """A fix for a kill without an event, as when memory runs out. It is unknown if more than smaller batches helps."""
    plan = state.plan if state.planned_attempt == state.attempt == record.attempt else None
    if (
        record.killed_by not in ("", "memory")
        or plan is None
        or state.stage != "training"
        or _signal_name(-record.returncode) != "SIGKILL"
    ):
        return None
    return halve_batch(plan.micro_batch_size, can_resume=bool(state.checkpoints))


def _exit_words(record: ExitRecord) -> str:
    if record.message:
        return f"{formatting.sentence(translate_message(record.message).rstrip('.'))}."
    if record.returncode >= 0:
        return tr(
            "The training process exited with code {returncode} before the run finished.",
            returncode=record.returncode,
        )
    number = -record.returncode
    name = _signal_name(number)
    if name == "SIGKILL":
        return tr("The training process was killed (SIGKILL), most likely because the system ran out of memory.")
    return tr("The training process was terminated by signal {number} ({name}).", number=number, name=name)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"
