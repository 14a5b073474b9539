"""Recognises a full disk, an exceeded quota, or an exceeded file size limit."""

import errno
import re

from backend.contract.messages import message
from backend.contract.run.fixes import RunFix
from backend.training.failures.failure import Failure, FailureContext, chain, kinds

MESSAGE = message("the disk is full, so nothing more could be saved; earlier checkpoints are untouched")
HINT = message("Free up some space, or lower training.keep_checkpoints, then resume the run.")
_NUMBERS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

_WRITTEN_IN_PART = re.compile(r"\d+ requested and \d+ written")


def recognise(error: BaseException, context: FailureContext) -> Failure | None:
    """The system's OSError, and those of safetensors and numpy, which only mention it in the message."""
    if not any(map(_is_full, chain(error))):
        return None
    kept = context.setting("training.keep_checkpoints")
    changes = {"training.keep_checkpoints": 1} if kept and kept > 1 else {}
    return Failure(MESSAGE, HINT, RunFix(changes, resume=True))


def _is_full(error: BaseException) -> bool:
    if isinstance(error, OSError):
        return error.errno in _NUMBERS or (error.errno is None and _WRITTEN_IN_PART.fullmatch(str(error)) is not None)
    words = str(error).lower()
    return "SafetensorError" in kinds(error) and any(
        f"os error {number}" in words or f"code: {number}" in words for number in _NUMBERS
    )


FAILURE = recognise
