"""The formats in which weights that are not trained may be held, and how much memory each takes."""

from collections.abc import Collection, Mapping
from math import prod
from typing import Literal

from backend.adapters.lora import is_embedding

Format = Literal["float32", "bfloat16", "int8", "nf4"]

FORMATS: tuple[Format, ...] = ("float32", "bfloat16", "int8", "nf4")
QUANTIZED: tuple[Format, ...] = ("int8", "nf4")
"""Those for which bitsandbytes is needed; only the matrices of linear layers are held in them."""
QUANTIZER = "bitsandbytes"
"""The package that does it."""
_BYTES: dict[Format, float] = {"float32": 4.0, "bfloat16": 2.0, "int8": 1.0, "nf4": 0.516}
"""Per weight. nf4: 4 bits, for 64 weights a scale in 8 bits, for 256 scales one in float32 (Dettmers et al. 2023)."""
_OUTPUTS = {"lm_head", "embed_out", "output_projection"}


def frozen_format(wanted: str, precision: str) -> Format:
    """The format of weights that are not trained: `auto` is bfloat16 where that is what they are computed with."""
    if wanted == "auto":
        return "bfloat16" if precision == "bfloat16" else "float32"
    return wanted  # type: ignore[return-value]


def frozen_bytes(shapes: Mapping[str, tuple[int, ...]], frozen: Collection[str], kind: Format) -> float:
    """Bytes of these parameters in this format; vectors stay float32, embeddings and outputs are never quantized."""
    return sum(prod(shapes[name]) * _BYTES[_held_as(name, shapes[name], kind)] for name in frozen)


def _held_as(name: str, shape: tuple[int, ...], kind: Format) -> Format:
    if len(shape) < 2:
        return "float32"
    is_linear = not is_embedding(name) and _OUTPUTS.isdisjoint(name.split("."))
    return kind if kind not in QUANTIZED or is_linear else "bfloat16"
