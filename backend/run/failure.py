"""Owns the words for an end that nobody wished: which event an exception becomes."""

import errno
import time

from backend.contract.errors import InputError, RunFailed
from backend.contract.events import RunFinished
from backend.contract.redaction import redacted


def failed(error: BaseException, step: int) -> RunFinished:
    """The final event for an exception: a sentence, a stable code, and the setting that helps where one is known."""
    message, code, hint = _explained(error)
    return RunFinished(time=time.time(), state="failed", step=step, message=redacted(message), code=code, hint=hint)


def _explained(error: BaseException) -> tuple[str, str, str]:
    if isinstance(error, RunFailed):
        return str(error), error.code, error.hint
    if isinstance(error, InputError):
        return str(error), "input", f"Change {error.field} and start again." if error.field else ""
    if isinstance(error, MemoryError):
        return OUT_OF_MEMORY, "out_of_memory", OUT_OF_MEMORY_HINT
    if _is_disk_full(error):
        return DISK_FULL, "disk_full", DISK_FULL_HINT
    return f"unexpected {type(error).__name__}: {_first_line(error)}", "unknown", "The log has the details."


def _is_disk_full(error: BaseException) -> bool:
    """No room, over the quota, or over the limit on a file's size; safetensors tells the number in its words only."""
    numbers = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    if isinstance(error, OSError):
        return error.errno in numbers
    return type(error).__name__ == "SafetensorError" and any(
        f"os error {number}" in str(error).lower() or f"code: {number}" in str(error) for number in numbers
    )


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), "no further words")


OUT_OF_MEMORY = "the computer's memory is used up"
OUT_OF_MEMORY_HINT = "Lower hardware.micro_batch_size or task.max_length, or switch on training.gradient_checkpointing."
DISK_FULL = "the disk is full, so nothing more could be saved; earlier checkpoints are untouched"
DISK_FULL_HINT = "Make room, or lower training.keep_checkpoints, then resume the run."
