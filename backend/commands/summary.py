"""Owns one run in a line: its state, last numbers and a person's notes, read from its events but for most steps."""

import math
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

import msgspec

from backend.commands.queue_words import waits_for
from backend.contract.run import events
from backend.contract.run.event_summary import TOO_LONG, landmarks
from backend.contract.run.folder import RunFolder
from backend.contract.run.notes import read_notes

E = TypeVar("E")
_ATTEMPTS = (events.RunStarted, events.RunResumed)
MISSING = "its events.jsonl is missing; burnish resume continues it from its checkpoint"
NO_CURVES = "its curves are missing, because its events.jsonl was deleted"


class Summary(msgspec.Struct, frozen=True):
    """What `burnish runs --json` prints of a run."""

    name: str
    run: str
    state: str
    task: str = ""
    model: str = ""
    step: int = 0
    total_steps: int = 0
    started: float | None = None
    metrics: dict[str, float | None] = {}
    message: str = ""
    data: str = ""
    seconds: float | None = None
    """How long a process carried it; the time between two attempts does not count."""
    note: str = ""
    tags: tuple[str, ...] = ()
    queued: float | None = None
    """When it joined the queue in which it waits."""


def summary(folder: RunFolder) -> Summary:
    """The run's line; a folder with unreadable events gets one too."""
    found, notes = landmarks(folder.events), read_notes(folder)
    first = _last(found, events.RunStarted)
    plan = _last(found, events.PlanMade)
    state, message = _state(folder, found)
    cut = next((event.message for event in found if isinstance(event, events.Warned) and event.code == TOO_LONG), "")
    return Summary(
        name=folder.name,
        run=str(folder.path),
        state=state,
        task=first.task if first else "",
        model=first.model if first else "",
        step=_step(found),
        total_steps=plan.total_steps if plan else 0,
        started=first.time if first else None,
        metrics=_metrics(found),
        message="; ".join(filter(None, [message, cut])),
        data=_data(found),
        seconds=_seconds(found),
        note=notes.note,
        tags=notes.tags,
        queued=folder.queued_since() if state == "queued" else None,
    )


def _data(found: list[events.AnyEvent]) -> str:
    loaded = [event for event in found if isinstance(event, events.DataLoaded) and event.split == "train"]
    return ", ".join(Path(file).name for file in loaded[-1].files[:2]) if loaded else ""


def _seconds(found: list[events.AnyEvent]) -> float | None:
    if not found:
        return None
    idle = sum(
        max(0.0, after.time - before.time) for before, after in pairwise(found) if isinstance(after, events.RunResumed)
    )
    return max(0.0, found[-1].time - found[0].time - idle)


def _state(folder: RunFolder, found: list[events.AnyEvent]) -> tuple[str, str]:
    finished, life = last_end(found), folder.life()
    if life == "alive" and folder.queued.exists():
        return "queued", waits_for(folder)
    if life == "lost" and folder.queued.exists():
        return "lost", "its process was killed, or the computer went down, while it waited in the queue"
    if life == "alive":
        return ("running" if _last(found, events.PlanMade) else "starting"), ""
    if (record := folder.exit_record()) and record.state:
        return record.state, record.message or "it was removed from the queue before it started"
    attempt = max((event.attempt for event in found if isinstance(event, _ATTEMPTS)), default=0)
    if finished and not folder.has_later_attempt(attempt, finished.time):
        return finished.state, finished.message
    if record := folder.exit_record():
        unsaid = "the run ended without saying how" if folder.events.exists() else MISSING
        ended_well = (
            record.returncode == 0 and not folder.events.exists()
        )  # paused, stopped or finished: the events knew
        if ended_well and not record.message and folder.has_results():
            return "finished", NO_CURVES
        return "lost" if ended_well else "failed", record.message or unsaid
    return "lost", "nobody has started it" if life == "new" else "its process was killed or the computer went down"


def last_end(found: list[events.AnyEvent]) -> events.RunFinished | None:
    """How the last attempt ended, if it said so itself."""
    marks = (*_ATTEMPTS, events.RunFinished)
    last = next((event for event in reversed(found) if isinstance(event, marks)), None)
    return last if isinstance(last, events.RunFinished) else None


def _step(found: list[events.AnyEvent]) -> int:
    for event in reversed(found):
        if isinstance(event, events.StepFinished | events.RunFinished):
            return event.step
        if isinstance(event, events.RunResumed):
            return event.from_step
    return 0


def _metrics(found: list[events.AnyEvent]) -> dict[str, float | None]:
    from_step = math.inf  # what is later than the step of a resume that follows it is void
    for event in reversed(found):
        match event:
            case events.RunResumed():
                from_step = min(from_step, event.from_step)
            case events.RunFinished() | events.EvaluationFinished(split="validation"):
                if event.metrics and event.step <= from_step:
                    return event.metrics
    return {}


def _last(found: list[events.AnyEvent], kind: type[E]) -> E | None:
    return next((event for event in reversed(found) if isinstance(event, kind)), None)
