"""Draws new weights: once, in numpy, from the seed and the parameter's Hugging Face name.

Heads, rows of added tokens, adapters and models from scratch all come from here, so that every engine starts with the
same numbers. The rules are those of transformers' `_init_weights`, the general one and those of its architectures.
"""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from backend.contract.messages import join, message, plural
from backend.data.fingerprint import generator

_DEFAULT_STD = 0.02  # transformers' default if a configuration has no initialiser range
_PADDED = ("word_embeddings.weight", "embed_tokens.weight", "shared.weight", "transformer.embeddings.weight")
_PADDED_POSITIONS = {"roberta", "xlm-roberta", "camembert", "xlm-roberta-xl", "mpnet", "longformer"}
_CENTRED_AT_ZERO = {
    "gemma", "gemma2", "gemma3_text", "recurrent_gemma", "t5gemma", "vaultgemma", "qwen3_next",
}  # fmt: skip
"""Architectures whose normalisation multiplies by 1 + weight."""
_KNOWN = {
    "weight", "bias", "q_bias", "v_bias", "gate_up_proj", "down_proj",
    "q", "k", "v", "o", "r", "r_r_bias", "r_s_bias", "r_w_bias", "seg_embed", "mask_emb",
}  # fmt: skip


def is_known(name: str) -> bool:
    """Whether there is a rule for a parameter of that name; state-space models have other kinds of parameters."""
    return name.rpartition(".")[2] in _KNOWN


def draw(name: str, shape: tuple[int, ...], config: dict[str, Any], seed: int) -> np.ndarray:
    """New float32 values of one parameter. Rows do not depend on how many follow, so a longer table starts the same."""
    if len(shape) < 2:
        return np.full(shape, _constant(name, config), dtype=np.float32)
    if name.endswith("position_embeddings.weight") and _has_sinusoids(config):
        return _sinusoids(shape)
    values = _standard_normal(shape, name, seed, config.get("initializer_cutoff_factor"))
    values *= np.float32(standard_deviation(name, config))
    padding = config.get("pad_index", config.get("pad_token_id"))
    if isinstance(padding, int) and 0 <= padding < shape[0] and _has_padding_row(name, padding, config):
        values[padding] = 0.0
    return values


def standard_deviation(name: str, config: dict[str, Any]) -> float:
    """The standard deviation with which the configuration initialises a matrix of that name."""
    if "initializer_factor" in config and "d_kv" in config:
        return _t5(name, config)
    if "initializer_cutoff_factor" in config:
        return _modernbert(name, config)
    if "embed_init_std" in config and name.endswith("embeddings.weight"):
        return config["embed_init_std"]
    std = _configured_std(config)
    if config.get("model_type") == "gpt2" and name.endswith("c_proj.weight"):
        return std / math.sqrt(2 * config["n_layer"])  # residual paths, as the GPT-2 paper has it
    return std


def _constant(name: str, config: dict[str, Any]) -> float:
    if not name.endswith("weight"):
        return 0.0
    return 0.0 if config.get("model_type") in _CENTRED_AT_ZERO else 1.0


def _configured_std(config: dict[str, Any]) -> float:
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


def _modernbert(name: str, config: dict[str, Any]) -> float:
    std = config["initializer_range"]
    if name == "classifier.weight":
        return config["hidden_size"] ** -0.5
    if name.endswith("Wo.weight") or name in {"head.dense.weight", "decoder.weight"}:
        return std / math.sqrt(2 * config["num_hidden_layers"])
    return std


def _has_padding_row(name: str, padding: int, config: dict[str, Any]) -> bool:
    # T5 and GPT-2 embed padding like any other token; RoBERTa's positions count from the padding row on.
    ends = config.get("eos_token_id")
    if "d_kv" in config or padding in (ends if isinstance(ends, list) else [ends]):
        return False
    if name.endswith("position_embeddings.weight"):
        return config.get("model_type") in _PADDED_POSITIONS
    tied_head = name == "lm_head.decoder.weight" and config.get("tie_word_embeddings", True)
    return name.endswith(_PADDED) or tied_head


def _has_sinusoids(config: dict[str, Any]) -> bool:
    return bool(
        config.get("sinusoidal_pos_embds") or config.get("sinusoidal_embeddings")
    )  # DistilBERT's and XLM's words


def _sinusoids(shape: tuple[int, ...]) -> np.ndarray:
    # Vaswani et al. 2017, sines and cosines in turn. (positions, width)
    angles = np.arange(shape[0])[:, None] / 10000.0 ** (2 * (np.arange(shape[1]) // 2) / shape[1])
    angles[:, 0::2], angles[:, 1::2] = np.sin(angles[:, 0::2]), np.cos(angles[:, 1::2])
    return angles.astype(np.float32)


def _standard_normal(shape: tuple[int, ...], name: str, seed: int, cutoff: float | None) -> np.ndarray:
    generator = _generator(name, seed)
    values = generator.standard_normal(shape, dtype=np.float32)
    if cutoff is None:
        return values
    # What lies beyond the cut is drawn again, each time for the whole table, so that rows keep their own numbers.
    for attempt in range(1, 100):
        beyond = np.abs(values) > cutoff
        if not beyond.any():
            break
        values[beyond] = _generator(f"{name}/{attempt}", seed).standard_normal(shape, dtype=np.float32)[beyond]
    return values


def _generator(name: str, seed: int) -> np.random.Generator:
    key = hashlib.blake2b(f"{seed}/{name}".encode(), digest_size=16).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(key, "little")))


@dataclass(frozen=True)
class NewTokens:
    """Tokens added to a vocabulary, and the pieces that each replaces."""

    pieces: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """Id of an added token → ids of the pieces that it replaces. Without pieces a row begins as any new weight does."""
    known: int | None = None
    """How many ids the model was trained with. Later ones have no trained row, even where the table has rows to spare
    (mT5's has 12); None if unknown; then every row of the table counts as trained."""

    def count_trained(self, rows: int) -> int:
        """How many of a table's rows were trained."""
        return rows if self.known is None else min(rows, self.known)

    def tokens_in_spare_rows(self, rows: int) -> list[int]:
        """Added tokens that fit in the spare rows of a table with this many rows."""
        return [token for token in self.pieces if self.count_trained(rows) <= token < rows]

    def means(self, before: int, after: int) -> dict[int, list[int]]:
        """Row → the rows whose mean initialises it, in a table that grows from `before` to `after`."""
        trained = self.count_trained(before)
        found = {
            token: [piece for piece in pieces if 0 <= piece < trained]
            for token, pieces in self.pieces.items()
            if trained <= token < after
        }
        return {token: pieces for token, pieces in found.items() if pieces}

    def describe(self, before: int, after: int) -> str:
        """What happens to a table that grows from `before` to `after`, for people; empty if nothing does."""
        spare, means = len(self.tokens_in_spare_rows(before)), len(self.means(before, after))
        parts = (
            [message("{after} added to the vocabulary of {before}", after=_rows(after - before), before=before)]
            if after > before
            else []
        )
        if spare:
            parts.append(
                message(
                    "{spare} in the vocabulary of {before} were unused and are now taken by added tokens",
                    spare=_rows(spare),
                    before=before,
                )
            )
        if parts and means:
            parts.append(message("{means} initialized to the mean of the pieces that they replace", means=_rows(means)))
        return join("; ", parts)


def resize_embedding(
    name: str, stored: np.ndarray, rows: int, config: Mapping[str, Any], seed: int, new: NewTokens
) -> np.ndarray:
    """Resize the table or bias `stored`, (rows before, …), to at least `rows`; `name` is its Hugging Face name.

    A row that is not a mean of others keeps its stored value; rows beyond the stored ones are drawn like new weights.
    """
    before = len(stored)
    values = draw(name, (rows, *stored.shape[1:]), dict(config), seed) if rows > before else stored.copy()
    values[:before] = stored
    for token, pieces in new.means(before, rows).items():
        values[token] = stored[pieces].mean(axis=0, dtype=np.float64)
    return values


def _rows(number: int) -> str:
    return plural("{count} row", "{count} rows", number)


def draw_uniform(name: str, shape: tuple[int, ...], bound: float, seed: int) -> np.ndarray:
    """New float32 values of an adapter matrix between -bound and bound; `name` is the parameter's name in PEFT."""
    return generator("adapter", seed, name).uniform(-bound, bound, shape).astype(np.float32)


def draw_normal(name: str, shape: tuple[int, ...], seed: int) -> np.ndarray:
    """New float32 values of an adapter matrix with standard deviation 1; `name` is the parameter's name in PEFT."""
    return generator("adapter", seed, name).standard_normal(shape, dtype=np.float32)
