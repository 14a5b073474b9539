"""Recognises an accelerator that stopped working in the middle of a run: lost, too hot, or a kernel that failed."""

from backend.contract.messages import message
from backend.contract.run.fixes import RunFix
from backend.engines.out_of_memory import ACCELERATOR_SAYS
from backend.training.failures.failure import Failure, FailureContext, chain, kinds

_HINT = message(
    "The card may be loose or too hot, or its driver was updated; nvidia-smi or rocm-smi and the system's log tell. Restart "
    "the computer if the card does not come back, or train on another device."
)
_ASSERT_HINT = message(
    "A kernel met a value that must not occur, such as the number of a token or label that the model does not have. On the processor "
    "the same step names it."
)


def recognise(error: BaseException, context: FailureContext) -> Failure | None:
    """torch's AcceleratorError, and XLA's errors of CUDA."""
    found = next((str(each) for each in chain(error) if _is_of_accelerator(each)), "")
    if not found:
        return None
    said = message("the accelerator stopped working ({error})", error=found.splitlines()[0])
    if "device-side assert" in found:
        return Failure(said, _ASSERT_HINT, RunFix({"hardware.device": "cpu"}, resume=context.can_resume))
    return Failure(said, _HINT, RunFix(resume=context.can_resume))


def _is_of_accelerator(error: BaseException) -> bool:
    names, says = kinds(error), str(error)
    if any(words in says for words in ACCELERATOR_SAYS):  # memory that ran out is another kind
        return False
    return "AcceleratorError" in names or ("JaxRuntimeError" in names and "CUDA_ERROR" in says)


FAILURE = recognise
