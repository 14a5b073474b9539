"""The out-of-memory message, the same for every engine."""

from backend.contract.errors import RunFailed
from backend.contract.messages import message

HINT = message("lower hardware.micro_batch_size, or set training.gradient_checkpointing to true")

PROCESSOR_SAYS = ("can't allocate memory", "not enough memory", "Unable to allocate")
"""What a RuntimeError says if the computer has no memory left."""
ACCELERATOR_SAYS = (
    "MPS backend out of memory", "CUDA error: out of memory", "HIP error: out of memory", "CUBLAS_STATUS_ALLOC_FAILED",
    "Cuda failure 2 'out of memory'",
)  # fmt: skip
"""The same of an accelerator: Apple's, pinned memory, CUDA itself and its libraries, NCCL the last, raise no OutOfMemoryError."""


def out_of_memory(*, on_accelerator: bool) -> RunFailed:
    """The failure with code `out_of_memory`."""
    return RunFailed(
        message("The accelerator does not have enough memory for this batch; {hint}", hint=HINT)
        if on_accelerator
        else message("This machine does not have enough memory for this batch; {hint}", hint=HINT),
        "out_of_memory",
        hint=HINT,
    )
