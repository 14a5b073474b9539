"""AdamW whose state moves out of a GPU's memory when that is full."""

from typing import ClassVar

from backend.engines.torch.optimizers._bitsandbytes import Bitsandbytes


class PagedAdamW(Bitsandbytes):
    """AdamW in memory that CUDA moves between the GPU and the computer."""

    title = "AdamW, paged"
    description = "AdamW whose state moves to the computer's memory when the GPU's is full (bitsandbytes, NVIDIA only)."
    bits: ClassVar[int] = 32
    paged: ClassVar[bool] = True
    devices: ClassVar[tuple[str, ...]] = ("cuda",)


OPTIMIZER = PagedAdamW
