"""Recognises that PyTorch could not compile the model's layers."""

from backend.contract.errors import RunFailed
from backend.contract.run.fixes import RunFix
from backend.preflight.engine_choice import NEVER
from backend.training.failures.failure import Failure, FailureContext


def recognise(error: BaseException, context: FailureContext) -> Failure | None:
    """What the engine says, and the run without compiling."""
    if not isinstance(error, RunFailed) or error.code != "compilation_failed":
        return None
    return Failure(str(error), error.hint, RunFix({"hardware.compile": NEVER}, resume=context.can_resume))


FAILURE = recognise
