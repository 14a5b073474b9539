"""The formats in which weights that are not trained may be held, and how much memory each takes."""

from collections.abc import Collection, Iterable, Mapping
from math import prod
from typing import Literal

from backend.adapters.lora import is_embedding
from backend.contract.spec import ModelSection
from backend.models.weights import Weights

Format = Literal["float32", "bfloat16", "int8", "nf4"]

FORMATS: tuple[Format, ...] = ("float32", "bfloat16", "int8", "nf4")
QUANTIZED: tuple[Format, ...] = ("int8", "nf4")
"""Those for which bitsandbytes is needed; only the matrices of linear layers are held in them."""
QUANTIZER = "bitsandbytes"
"""The package that quantizes weights."""
_BYTES: dict[Format, float] = {"float32": 4.0, "bfloat16": 2.0, "int8": 1.0, "nf4": 0.516}
"""Per weight. nf4: 4 bits, for 64 weights a scale in 8 bits, for 256 scales one in float32 (Dettmers et al. 2023)."""
_OUTPUTS = {"lm_head", "embed_out", "output_projection"}
_SCALED = {
    "bart", "bigbird_pegasus", "biogpt", "blenderbot", "gemma", "gemma2", "gemma3", "gemma3_text", "gemma3n_text", "gemma4_text",
    "m2m_100", "mbart", "nllb-moe", "pegasus_x", "plbart", "xglm",
}  # fmt: skip
"""Families whose word embedding is a layer of their own, which scales it: it stays float32, and a tied output layer too."""
_EXACT = {"wo"}
"""A layer of T5 and its relatives that transformers keeps in float32."""


def frozen_format(model: ModelSection, stored: Weights, precision: str, *, trains_all: bool) -> Format:
    """The format in which a run, or an inference, holds the weights that it does not train.

    `auto` is bfloat16 if the file is in bfloat16 and the run computes in it: then no number changes.
    """
    if trains_all or model.initialise == "from_config":
        return "float32"
    if model.weights != "auto":
        return model.weights
    is_bfloat16 = precision == "bfloat16" and stored.dtype == "BF16"
    return "bfloat16" if is_bfloat16 and not has_experts(stored.shapes) else "float32"


def has_experts(names: Iterable[str]) -> bool:
    """Whether these are parameters of a mixture of experts, which are not linear layers and stay float32."""
    return any("experts" in name.split(".") for name in names)


def frozen_bytes(
    shapes: Mapping[str, tuple[int, ...]], frozen: Collection[str], kind: Format, model_type: str = ""
) -> float:
    """Bytes of these parameters in this format; vectors stay float32, embeddings and outputs are never quantized."""

    def format_of(name: str) -> Format:
        if keeps_embedding(model_type) and is_embedding(name):
            return "float32"
        return _format_of(name, shapes[name], kind)

    return sum(prod(shapes[name]) * _BYTES[format_of(name)] for name in frozen)


def keeps_embedding(model_type: str) -> bool:
    """Whether the word embedding, and an output layer that is tied to it, is float32 whatever the format."""
    return model_type in _SCALED


def _format_of(name: str, shape: tuple[int, ...], kind: Format) -> Format:
    if len(shape) < 2 or not _EXACT.isdisjoint(name.split(".")):
        return "float32"
    is_linear = not is_embedding(name) and _OUTPUTS.isdisjoint(name.split("."))
    return kind if kind not in QUANTIZED or is_linear else "bfloat16"
