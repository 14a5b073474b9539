"""The out-of-memory message, the same for every engine."""

from backend.contract.errors import RunFailed

HINT = "make hardware.micro_batch_size smaller, or set training.gradient_checkpointing to true"


def shortage(*, on_accelerator: bool) -> RunFailed:
    """The failure with code `out_of_memory`."""
    where = "the accelerator" if on_accelerator else "this machine"
    return RunFailed(f"The memory of {where} is not enough for this batch; {HINT}", "out_of_memory", HINT)
