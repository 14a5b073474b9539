"""Owns what happens when memory runs out: one sentence that names the settings that help."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from backend.contract.errors import RunFailed

HINT = "make hardware.micro_batch_size smaller, or set training.gradient_checkpointing to true"
_PROCESSOR_SAYS = ("can't allocate memory", "not enough memory")


@contextmanager
def shortage_stated() -> Iterator[None]:
    """Turns running out of memory into RunFailed with code `out_of_memory`; other errors pass."""
    try:
        yield
    except (torch.OutOfMemoryError, MemoryError) as error:
        raise _failure(error) from error
    except RuntimeError as error:
        if any(words in str(error) for words in _PROCESSOR_SAYS):
            raise _failure(error) from error
        raise


def peak_mb(device: torch.device) -> float | None:
    """Most memory (10^6 bytes) that tensors took on an accelerator since loading; None on a processor."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 1e6
    if device.type == "mps":
        return torch.mps.driver_allocated_memory() / 1e6
    return None


def _failure(error: BaseException) -> RunFailed:
    where = "the accelerator" if isinstance(error, torch.OutOfMemoryError) else "this machine"
    return RunFailed(f"The memory of {where} is not enough for this batch; {HINT}", "out_of_memory", HINT)
