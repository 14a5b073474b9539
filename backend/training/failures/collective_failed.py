"""Recognises that the processes of a run waited for one another in vain: a step takes too long, or one of them hangs."""

from backend.contract.errors import RunFailed
from backend.contract.run.fixes import RunFix
from backend.training.failures.failure import Failure, FailureContext

_SETTING = "hardware.collective_timeout"
_LONGEST_SECONDS = 86_400


def recognise(error: BaseException, context: FailureContext) -> Failure | None:
    """What the engine says, with twice the time to wait."""
    if not isinstance(error, RunFailed) or error.code != "collective_failed":
        return None
    seconds = context.setting(_SETTING)
    longer = isinstance(seconds, int) and 2 * seconds <= _LONGEST_SECONDS
    return Failure(
        str(error), error.hint, RunFix({_SETTING: 2 * seconds}, resume=context.can_resume) if longer else None
    )


FAILURE = recognise
