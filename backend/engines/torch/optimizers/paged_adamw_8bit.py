"""AdamW with moments in 8 bits that move out of a GPU's memory when that is full."""

from typing import ClassVar

from backend.engines.torch.optimizers._bitsandbytes import Bitsandbytes


class PagedAdamW8bit(Bitsandbytes):
    """AdamW with a quarter of its state, in memory that CUDA moves between the GPU and the computer."""

    title = "AdamW, paged, 8-bit"
    description = (
        "Both together: a quarter of AdamW's state, which moves to the computer's memory when the GPU's is full."
    )
    paged: ClassVar[bool] = True
    devices: ClassVar[tuple[str, ...]] = ("cuda",)


OPTIMIZER = PagedAdamW8bit
