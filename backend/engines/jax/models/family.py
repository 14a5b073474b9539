"""A model family: the classes of one `model_type` by head, with the names used in its files."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from backend.contract.heads import IGNORE, Head
from backend.engines.jax.layers import UnsupportedModelError
from backend.engines.jax.sharding import Rules

Config = dict[str, Any]
"""config.json with the defaults of its class filled in."""
Arrays = dict[str, jax.Array]
"""A batch on the device (`backend.contract.heads`)."""

Build = Callable[[Config, int], nnx.Module]
"""A head from a configuration and a number of outputs."""


@dataclass(frozen=True)
class Family:
    """One file of `models`; the module's name is the `model_type`."""

    body: str
    """The attribute under which every head holds what the heads share; files of a bare body leave it out of names."""
    heads: dict[Head, tuple[str, Build]]
    """Head → architecture as config.json names it, and what builds it."""
    check: Callable[[Config], None] = field(default=lambda config: None)
    """Raises Unknown for a variant that the classes do not compute."""
    fixed: frozenset[str] = frozenset()
    """Names of the buffers in a file: they are never trained, and are initialised with zeros."""
    bodies: Mapping[Head, str] = field(default_factory=dict)
    """The attribute in heads that call it otherwise."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Other names under which a file may hold a parameter, or hold it twice; without the body's attribute."""
    words: str = ""
    """The table of tokens in the body, if nothing but the input's tokens is looked up in it, as `layers.word_ids`."""
    reads_packed_rows: bool = False
    """Whether its classes read rows that `packed_rows` has packed."""
    divided: Rules = field(default_factory=dict)
    """What tensor parallelism divides; empty where the family does not say."""

    def __post_init__(self) -> None:
        """Any number of classes per row are the outputs of the very module for one class."""
        if Head.SEQUENCE_CLASSIFICATION in self.heads:
            self.heads[Head.MULTI_LABEL_CLASSIFICATION] = self.heads[Head.SEQUENCE_CLASSIFICATION]


def refuse_unless(holds: bool, config: Config, what: str) -> None:
    """Raises UnsupportedModelError: an unknown variant is never treated as a similar one."""
    if not holds:
        raise UnsupportedModelError("does not support {what} of {config}", what=what, config=config["model_type"])


def shift_right(labels: jax.Array, start: int, padding: int) -> jax.Array:
    """The decoder's input for an answer: the start token, then all labels but the last. (batch, length)"""
    known = jnp.where(labels == IGNORE, padding, labels)
    return jnp.concatenate([jnp.full_like(known[:, :1], start), known[:, :-1]], axis=1)  # (batch, length)


def classifier_dropout(config: Config) -> float:
    """The dropout rate of decoders' token heads; 0.1 if the configuration has none."""
    return next(
        rate for rate in (config.get("classifier_dropout"), config.get("hidden_dropout"), 0.1) if rate is not None
    )


def first_token(x: jax.Array, arrays: Arrays) -> jax.Array:
    """(batch, length, width) → (rows, width): the first token of each row, packed or not."""
    return x.reshape(-1, x.shape[-1])[arrays["starts"]] if "starts" in arrays else x[:, 0]


def unpack_rows(x: jax.Array, arrays: Arrays) -> tuple[jax.Array, jax.Array]:
    """(batch, length, …) → (rows, length, …), packed or not, and which of them are tokens, (rows, length)."""
    if "starts" not in arrays:
        return x, arrays["attention_mask"] > 0
    places = jnp.arange(x.shape[1])  # (length,)
    own = x.reshape(-1, *x.shape[2:]).at[arrays["starts"][:, None] + places].get(mode="clip")  # (rows, length, …)
    return own, places < arrays["lengths"][:, None]


def last_token(x: jax.Array, arrays: Arrays) -> jax.Array:
    """(batch, length, width) → (batch, width): the last token that is not padding."""
    length = arrays["attention_mask"].shape[1]
    last = jnp.max(arrays["attention_mask"] * jnp.arange(length), axis=1)  # (batch,)
    return jnp.take_along_axis(x, last[:, None, None], axis=1)[:, 0]  # (batch, hidden_size)
