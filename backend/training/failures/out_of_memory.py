"""Recognises out-of-memory errors, on the computer or an accelerator, as engines and libraries report them."""

import errno

from backend.contract.errors import RunFailed
from backend.contract.messages import message
from backend.contract.run.events import PlanMade
from backend.contract.run.fixes import RunFix, find_memory_fix
from backend.engines.out_of_memory import ACCELERATOR_SAYS, PROCESSOR_SAYS
from backend.training.failures.failure import Failure, FailureContext, chain, kinds

MESSAGE = message("the computer ran out of memory")
ON_ACCELERATOR = message("the accelerator ran out of memory")
HINT = message("Lower hardware.micro_batch_size or task.max_length, or turn on training.gradient_checkpointing.")
OF_EVALUATION = message("Lower evaluation.batch_size or task.max_length.")
BEFORE_TRAINING = message("Set data.max_rows to use fewer rows, or close other programs.")
_TWICE = "training.gradient_checkpointing"


def recognise(error: BaseException, context: FailureContext) -> Failure | None:
    """torch's OutOfMemoryError and its allocator's RuntimeError, XLA's RESOURCE_EXHAUSTED, MemoryError, ENOMEM."""
    message = next(filter(None, map(_message, chain(error))), "")
    if not message:
        return None
    if context.plan is None:
        return Failure(message, BEFORE_TRAINING)
    if context.stage in ("evaluating", "predicting"):
        return Failure(message, OF_EVALUATION, _halve_evaluation_batch(context, context.plan))
    settings = {_TWICE: context.setting(_TWICE)}
    fix = find_memory_fix(settings, context.plan.micro_batch_size, context.longest, can_resume=context.can_resume)
    return Failure(message, HINT, fix)


def _halve_evaluation_batch(context: FailureContext, plan: PlanMade) -> RunFix | None:
    """Halve the evaluation batch size; of the fixes for training only shorter texts help here."""
    rows = context.setting("evaluation.batch_size") or plan.evaluation_batch_size
    if rows > 1:
        return RunFix({"evaluation.batch_size": rows // 2}, resume=context.can_resume)
    return find_memory_fix({_TWICE: True}, None, context.longest, can_resume=context.can_resume)


def _message(error: BaseException) -> str:
    if isinstance(error, RunFailed) and error.code == "out_of_memory":
        return str(error)
    names, words = kinds(error), str(error)
    if "OutOfMemoryError" in names:
        return ON_ACCELERATOR
    if "JaxRuntimeError" in names and "RESOURCE_EXHAUSTED" in words:
        return MESSAGE
    if isinstance(error, RuntimeError) and any(each in words for each in ACCELERATOR_SAYS):
        return ON_ACCELERATOR
    said_so = isinstance(error, RuntimeError) and any(each in words for each in PROCESSOR_SAYS)
    refused = isinstance(error, OSError) and error.errno == errno.ENOMEM
    return MESSAGE if said_so or refused or isinstance(error, MemoryError) else ""


FAILURE = recognise
