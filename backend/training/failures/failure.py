"""What a failure is, its context, and how an exception becomes an event; each file beside it recognises one kind."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from backend import registry
from backend.contract.errors import InputError, LibraryPanic, RunFailed, describe_system_error
from backend.contract.messages import message
from backend.contract.redaction import redact
from backend.contract.run.event_summary import landmarks
from backend.contract.run.events import AnyEvent, PlanMade, RunFinished, RunResumed, RunStarted, StageStarted
from backend.contract.run.fixes import RunFix
from backend.contract.run.folder import RunFolder
from backend.contract.spec import RunSpec
from backend.models.config import longest_sequence
from backend.models.inspection import read_config
from backend.models.location import CONVERT_OPTION
from backend.preflight.checks import locate_model
from backend.preflight.resolve import read_run
from backend.training.checkpoints import Checkpoints

UNKNOWN = "unknown"
UNKNOWN_HINT = message("See the log for details; burnish report {run} writes a report that you can send to others.")


@dataclass(frozen=True)
class Failure:
    """The explanation of a failure: a sentence, the fix in words, and the fix as data."""

    message: str
    hint: str = ""
    mend: RunFix | None = None


class FailureContext:
    """The state of a run when it failed. Unreadable values are None: they must not hide the failure itself."""

    def __init__(self, folder: RunFolder, spec: RunSpec | None = None) -> None:
        self.folder, self._known_spec = folder, spec

    def setting(self, key: str) -> Any:
        """The value at a dotted key of the complete spec, or None."""
        found: Any = self.spec.model_dump(mode="json") if self.spec else {}
        for name in key.split("."):
            found = found.get(name) if isinstance(found, dict) else None
        return found

    @cached_property
    def spec(self) -> RunSpec | None:
        """The complete spec of the attempt, or read from the file if the failure came earlier."""
        try:
            return self._known_spec or read_run(self.folder)
        except (InputError, OSError):
            return None

    @cached_property
    def plan(self) -> PlanMade | None:
        """The plan of the current attempt; None before its data was ready."""
        plans = [event for event in self._events if isinstance(event, PlanMade)]
        return plans[-1] if plans else None

    @cached_property
    def precision(self) -> str:
        """The current attempt's precision, because the setting may be automatic; empty before it started."""
        begun = [event for event in self._events if isinstance(event, RunStarted | RunResumed)]
        return begun[-1].precision if begun else ""

    @cached_property
    def stage(self) -> str:
        """What the current attempt was doing; compiling counts as the stage that needed it."""
        stages = [event.stage for event in self._events if isinstance(event, StageStarted)]
        return next((stage for stage in reversed(stages) if stage != "compiling"), "")

    @cached_property
    def _events(self) -> list[AnyEvent]:
        """The current attempt's events, with almost no steps: there may be no memory for all of them."""
        found = landmarks(self.folder.events)
        begun = [number for number, event in enumerate(found) if isinstance(event, RunStarted | RunResumed)]
        return found[begun[-1] :] if begun else []

    @cached_property
    def can_resume(self) -> bool:
        """Whether there is a checkpoint to continue from."""
        try:
            return Checkpoints(self.folder).latest() is not None
        except OSError:
            return False

    @cached_property
    def model(self) -> Path | None:
        """The model's folder, if it is on this computer."""
        try:
            return locate_model(self.spec, local_only=True).folder if self.spec else None
        except (InputError, OSError):
            return None

    @cached_property
    def is_convertible(self) -> bool:
        """Whether the model is here with old-format weights whose conversion has not been approved."""
        try:
            return self.spec is not None and not locate_model(self.spec, local_only=True)
        except InputError as refusal:
            return CONVERT_OPTION in str(refusal)

    @cached_property
    def positions(self) -> int | None:
        """The model's maximum positions in tokens; None if unlimited, or if it is not here."""
        try:
            config = read_config(self.model) if self.model else {}
        except (InputError, OSError):
            return None
        return longest_sequence({**config, **(self.setting("model.config") or {})})

    @property
    def longest(self) -> int | None:
        """The most tokens that a row of the run may have."""
        return self.setting("task.max_length") or self.positions


class Recogniser(Protocol):
    """Each file of this folder exports one as FAILURE."""

    def __call__(self, error: BaseException, context: FailureContext) -> Failure | None:
        """The failure, or None if the exception is of another kind."""
        ...


def failure_event(error: BaseException, step: int, context: FailureContext) -> RunFinished:
    """The final event for an exception: a sentence, a stable code, and a fix if one is known."""
    code, failure = recognise_failure(error, context) or _recognise(error, context)
    field, line = (error.field, error.line) if isinstance(error, InputError) else (None, None)
    return RunFinished(
        time=time.time(),
        state="failed",
        step=step,
        message=redact(failure.message),
        code=code,
        hint=redact(failure.hint),
        mend=failure.mend,
        field=field or "",
        line=line or 0,
    )


def unknown_failure_event(error: BaseException, step: int, context: FailureContext) -> RunFinished:
    """The final event if even explaining the failure fails, for example without memory; reads nothing of the run."""
    code, failure = _unknown(error, context)
    return RunFinished(
        time=time.time(), state="failed", step=step, message=redact(failure.message), code=code, hint=failure.hint
    )


def recognise_failure(error: BaseException, context: FailureContext) -> tuple[str, Failure] | None:
    """The code and message from the first recogniser that matches the exception; the code is its file name."""
    for name in registry.names("failure"):
        recognise: Recogniser = registry.find("failure", name, "failure")
        if failure := recognise(error, context):
            return name, failure
    return None


def _recognise(error: BaseException, context: FailureContext) -> tuple[str, Failure]:
    if isinstance(error, RunFailed):
        return error.code, Failure(str(error), error.hint)
    if isinstance(error, InputError):
        return "input", Failure(
            str(error), message("Change {field} and start again.", field=error.field) if error.field else ""
        )
    if isinstance(error, LibraryPanic):
        return "input", Failure(describe_system_error(error) or str(error))
    return _unknown(error, context)


def _unknown(error: BaseException, context: FailureContext) -> tuple[str, Failure]:
    first = next(iter(str(error).splitlines()), message("no details"))
    sentence = message("unexpected {class_name}: {first}", class_name=type(error).__name__, first=first)
    return UNKNOWN, Failure(sentence, message(UNKNOWN_HINT, run=context.folder.name))


def chain(error: BaseException) -> Iterator[BaseException]:
    """The exception and its causes, newest first; also those hidden by `from None`."""
    seen: set[int] = set()
    following: BaseException | None = error
    while following is not None and id(following) not in seen:
        seen.add(id(following))
        yield following
        following = following.__cause__ or following.__context__


def kinds(error: BaseException) -> set[str]:
    """The names of an exception's classes, to recognise a library's exception without importing it."""
    return {kind.__name__ for kind in type(error).__mro__}
