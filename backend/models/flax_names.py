"""Owns what the Flax models of transformers 4 called their parameters and how they shaped them, beside torch's names.

All of these families follow one rule: modules bear torch's names, a layer's `kernel` is torch's `weight` turned (GPT-2's
too, whose layers keep their kernel turned already), and the `scale` of a norm and the `embedding` of a table are its `weight`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

_FAMILIES = frozenset(
    {
        "bert",
        "roberta",
        "xlm-roberta",
        "distilbert",
        "gpt2",
        "opt",
        "llama",
        "mistral",
        "t5",
        "mt5",
        "marian",
        "bart",
        "mbart",
    }
)
_WEIGHTS = {"kernel", "scale", "embedding"}
_KEPT = {"weight", "bias", "final_logits_bias"}


def problem(model_type: str) -> str:
    """Why a family's Flax weights cannot be read, as the end of a sentence; nothing where they can."""
    if model_type in _FAMILIES:
        return ""
    return (
        f"flax_model.msgpack of the architecture {model_type or 'that config.json does not name'} cannot be converted "
        "here: save the model as safetensors with transformers 4 (from_pretrained with from_flax=True)"
    )


def as_torch_has_them(tree: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The tree of a Flax checkpoint as tensors under torch's names. ValueError for what no family here has."""
    tensors = {}
    for path, value in _leaves(tree.get("params", tree)):
        last = path[-1]
        if last not in _WEIGHTS | _KEPT:
            raise ValueError(f"{'/'.join(path)} is no parameter of a family that is known here")
        numbers = value if value.dtype in (np.float16, np.float32) else value.astype(np.float32)
        name = ".".join([*path[:-1], "weight" if last in _WEIGHTS else last])
        tensors[name] = np.ascontiguousarray(numbers.T if last == "kernel" else numbers)
    return tensors


def _leaves(tree: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], np.ndarray]]:
    for name, value in tree.items():
        path = (*above, str(name))
        if isinstance(value, Mapping):
            yield from _leaves(value, path)
        elif isinstance(value, np.ndarray):
            yield path, value
        else:
            raise ValueError(f"{'/'.join(path)} is no array")
