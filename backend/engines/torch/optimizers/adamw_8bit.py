"""AdamW with moments in 8 bits."""

from backend.engines.torch.optimizers._bitsandbytes import Bitsandbytes


class AdamW8bit(Bitsandbytes):
    """AdamW with a quarter of its state."""

    title = "AdamW, 8-bit"
    description = "AdamW whose state takes a quarter of the memory (bitsandbytes). On a CPU its steps take longer."


OPTIMIZER = AdamW8bit
