"""Owns how new weights are drawn: once, in numpy, from the seed and the parameter's Hugging Face name.

Heads, added vocabulary rows and models from scratch all come from here, so that every engine begins with the same
numbers. The rules are those of transformers' `PreTrainedModel._init_weights` and of its GPT-2 and T5 models.
"""

import hashlib
import math
from typing import Any

import numpy as np

_DEFAULT_STD = 0.02  # what transformers takes where a configuration names no initialiser
_PADDED = ("word_embeddings.weight", "embed_tokens.weight")
_PADDED_POSITIONS = {"roberta", "xlm-roberta", "camembert", "xlm-roberta-xl", "mpnet", "longformer"}


def draw(name: str, shape: tuple[int, ...], config: dict[str, Any], seed: int) -> np.ndarray:
    """New float32 values of one parameter. Rows do not depend on how many follow, so a longer table begins alike."""
    if len(shape) < 2:
        return np.full(shape, 1.0 if name.endswith("weight") else 0.0, dtype=np.float32)
    values = _generator(name, seed).standard_normal(shape, dtype=np.float32)
    values *= np.float32(standard_deviation(name, config))
    padding = config.get("pad_token_id")
    if isinstance(padding, int) and 0 <= padding < shape[0] and _has_padding_row(name, config):
        values[padding] = 0.0
    return values


def standard_deviation(name: str, config: dict[str, Any]) -> float:
    """The spread that the configuration's own initialiser gives to a matrix of that name."""
    if "initializer_factor" in config and "d_kv" in config:
        return _t5(name, config)
    std = _general(config)
    if config.get("model_type") == "gpt2" and name.endswith("c_proj.weight"):
        return std / math.sqrt(2 * config["n_layer"])  # residual paths, as the GPT-2 paper has it
    return std


def _general(config: dict[str, Any]) -> float:
    for key in ("initializer_range", "init_std", "initializer_factor"):
        if key in config:
            return config[key] or _DEFAULT_STD
    return _DEFAULT_STD


def _t5(name: str, config: dict[str, Any]) -> float:
    factor, width, key_width = config["initializer_factor"], config["d_model"], config["d_kv"]
    parts = name.split(".")
    layer = parts[-2] if len(parts) > 1 else name
    if layer in {"shared", "embed_tokens", "lm_head", "classifier"}:
        return factor
    if layer == "q":
        return factor * (width * key_width) ** -0.5
    if layer == "o":
        return factor * (config["num_heads"] * key_width) ** -0.5
    if layer == "wo":
        return factor * config["d_ff"] ** -0.5
    return factor * width**-0.5


def _has_padding_row(name: str, config: dict[str, Any]) -> bool:
    # T5 and GPT-2 embed padding like any other token; RoBERTa's positions count from the padding row on.
    if "d_kv" in config:
        return False
    if name.endswith("position_embeddings.weight"):
        return config.get("model_type") in _PADDED_POSITIONS
    return name.endswith(_PADDED)


def _generator(name: str, seed: int) -> np.random.Generator:
    key = hashlib.blake2b(f"{seed}/{name}".encode(), digest_size=16).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(key, "little")))
