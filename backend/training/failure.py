"""Owns the words for an end that nobody wished: which event an exception becomes, and what helps."""

import time

from backend import registry
from backend.contract.errors import InputError, LibraryPanic, RunFailed, plain_reason
from backend.contract.redaction import redacted
from backend.contract.run.events import RunFinished
from backend.training.failure_context import Situation
from backend.training.failures.failure import Failure, Recogniser

UNKNOWN = "unknown"
UNKNOWN_HINT = "The log has the details; burnish report {run} gives what to send to whoever may know."


def failed(error: BaseException, step: int, situation: Situation) -> RunFinished:
    """The final event for an exception: a sentence, a stable code, and what helps where that is known."""
    code, failure = recognised(error, situation) or _own(error, situation)
    return RunFinished(
        time=time.time(),
        state="failed",
        step=step,
        message=redacted(failure.message),
        code=code,
        hint=redacted(failure.hint),
        mend=failure.mend,
    )


def unrecognised(error: BaseException, step: int, situation: Situation) -> RunFinished:
    """The final event where even telling what happened fails, for example without memory; it looks at nothing of the run."""
    code, failure = _unknown(error, situation)
    return RunFinished(
        time=time.time(), state="failed", step=step, message=redacted(failure.message), code=code, hint=failure.hint
    )


def recognised(error: BaseException, situation: Situation) -> tuple[str, Failure] | None:
    """The code and words of the first recogniser that knows the exception; a code is the recogniser's file name."""
    for name in registry.names("failure"):
        recognise: Recogniser = registry.find("failure", name, "failure")
        if failure := recognise(error, situation):
            return name, failure
    return None


def _own(error: BaseException, situation: Situation) -> tuple[str, Failure]:
    if isinstance(error, RunFailed):
        return error.code, Failure(str(error), error.hint)
    if isinstance(error, InputError):
        return "input", Failure(str(error), f"Change {error.field} and start again." if error.field else "")
    if isinstance(error, LibraryPanic):
        return "input", Failure(plain_reason(error) or str(error))
    return _unknown(error, situation)


def _unknown(error: BaseException, situation: Situation) -> tuple[str, Failure]:
    first = next(iter(str(error).splitlines()), "no further words")
    sentence = f"unexpected {type(error).__name__}: {first}"
    return UNKNOWN, Failure(sentence, UNKNOWN_HINT.format(run=situation.folder.name))
