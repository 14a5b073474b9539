"""AdamW of bitsandbytes, whose moments are in 8 bits, or in memory that a GPU takes back when it is short of it."""

from math import prod
from typing import Any, ClassVar

from backend.adapters.lora import is_embedding
from backend.contract.spec import Section, TrainingSection
from backend.engines.torch.optimizers.optimizer import Groups
from backend.engines.weight_formats import QUANTIZER

BITS_8 = 2 * (1 + 4 / 256) / 4
"""Numbers of 4 bytes for both moments of a weight: a byte each, and a float32 scale for every 256 weights."""
_SMALLEST = 4096
"""Weights of the smallest tensor whose moments are in 8 bits."""


class Settings(Section):
    """The optimizers of bitsandbytes have no options besides those of the `training` section."""


class Bitsandbytes:
    """AdamW (Loshchilov and Hutter 2019), as bitsandbytes computes it (Dettmers et al. 2022)."""

    Settings = Settings
    requires: ClassVar[str] = QUANTIZER
    bits: ClassVar[int] = 8
    paged: ClassVar[bool] = False
    devices: ClassVar[tuple[str, ...]] = ("cpu", "cuda", "xpu")

    @classmethod
    def state_per_weight(cls, options: Any) -> float:
        """Both moments."""
        return BITS_8 if cls.bits == 8 else 2.0

    @classmethod
    def state_of(cls, name: str, shape: tuple[int, ...], options: Any) -> float:
        """Both moments of one weight: those of small tensors and of embeddings are always float32."""
        return (2.0 if keeps_float32(name, shape) else cls.state_per_weight(options)) * prod(shape)

    @classmethod
    def make(cls, groups: Groups, training: TrainingSection, options: Any) -> Any:
        """Its AdamW with the betas and epsilon of the training section."""
        from backend.engines.torch.lean_imports import import_bitsandbytes  # torch takes seconds to import

        import_bitsandbytes()
        from backend.engines.torch.optimizers._quantized_state import QuantizedAdamW  # imports it in its own way

        return QuantizedAdamW(groups, training, bits=cls.bits, paged=cls.paged, keeps_float32=keeps_float32)


def keeps_float32(name: str, shape: tuple[int, ...]) -> bool:
    """Whether a weight's moments are always float32.

    The gradients of an embedding's rows differ so much that 8 bits make training unstable (Dettmers et al. 2022).
    """
    return prod(shape) < _SMALLEST or is_embedding(name)
