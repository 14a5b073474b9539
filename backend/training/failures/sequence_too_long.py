"""Recognises rows that are longer than the model's positions."""

from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.contract.run.fixes import RunFix
from backend.training.failures.failure import Failure, FailureContext, chain

_BEYOND_TABLE = "index out of range in self"
_BEYOND_BUFFER = ("expanded size of the tensor", "must match the size of tensor", "must match the existing size")


def recognise(error: BaseException, context: FailureContext) -> Failure | None:
    """The check before training; torch's IndexError from an embedding and RuntimeError from a position buffer."""
    longest, positions = context.setting("task.max_length"), context.positions
    if longest is None or positions is None or longest <= positions:
        return None  # then the same exception means something else, for example a vocabulary that does not fit
    if not any(map(_is_too_long, chain(error))):
        return None
    return Failure(
        message(
            "task.max_length: {longest} tokens are more than the {positions} positions of this model",
            longest=longest,
            positions=positions,
        ),
        message("Set task.max_length to {positions} or less; longer rows are truncated.", positions=positions),
        RunFix({"task.max_length": positions}),
    )


def _is_too_long(error: BaseException) -> bool:
    if isinstance(error, InputError):
        return error.field == "task.max_length"
    if isinstance(error, IndexError):
        return _BEYOND_TABLE in str(error)
    return isinstance(error, RuntimeError) and any(words in str(error) for words in _BEYOND_BUFFER)


FAILURE = recognise
