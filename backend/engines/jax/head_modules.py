"""Heads that differ between families only by name: layers on top of the body, and next-token logits."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from backend.contract.messages import message
from backend.engines.jax.layers import DropoutKeys, Embedding, Linear, dropout
from backend.engines.jax.models.family import Arrays, Build, Config, last_token, refuse_unless


@dataclass(frozen=True)
class HeadModules:
    """Builds the heads of one family."""

    attribute: str
    """Under which a head holds its body, as files name it."""
    body: Callable[[Config], Any]
    width: str
    """Key of the configuration: how wide is what the body gives."""

    def logits_of_last_token(self, layer: str) -> Build:
        """Logits of a whole text, (batch, outputs), from its last token by a layer without bias."""
        return lambda config, outputs: _Linear(
            self, config, layer, Linear(config[self.width], outputs, bias=False), last_token
        )

    def logits_of_tokens(self, layer: str, rate: Callable[[Config], float] = lambda config: 0.0) -> Build:
        """Logits of every token, (batch, length, outputs); `rate` is the dropout before the layer."""
        return lambda config, outputs: _Linear(
            self, config, layer, Linear(config[self.width], outputs), _every_token, rate(config)
        )

    def logits_of_last_end(self) -> Build:
        """Logits of a whole text, (batch, outputs), from its last end token, or its first token if there is none."""
        return lambda config, outputs: _LastTokenClassifier(self, config, outputs)

    def next_token(self, embedding: Callable[[Any], Embedding]) -> Build:
        """The next-token head: `hidden` for every token, `vocabulary` for selected ones, maybe by the `embedding`."""
        return lambda config, outputs: _NextTokenHead(self, config, embedding)


class _Linear(nnx.Module):
    def __init__(
        self,
        tops: HeadModules,
        config: Config,
        name: str,
        layer: Linear,
        read: Callable[[jax.Array, Arrays], jax.Array],
        rate: float = 0.0,
    ) -> None:
        setattr(self, tops.attribute, tops.body(config))
        setattr(self, name, layer)
        self._body, self._layer, self._read, self._rate = tops.attribute, name, read, rate

    def __call__(self, arrays: Arrays, noise: DropoutKeys | None) -> jax.Array:
        x = getattr(self, self._body)(arrays, noise)  # (batch, length, hidden_size)
        x = self._read(x, arrays)  # (batch, hidden_size) of the last token, or the same of every token
        return getattr(self, self._layer)(dropout(x, self._rate, noise))  # (…, outputs)


class _Classifier(nnx.Module):
    def __init__(self, width: int, outputs: int, rate: float) -> None:
        self.dense, self.out_proj = Linear(width, width), Linear(width, outputs)
        self._rate = rate

    def __call__(self, x: jax.Array, noise: DropoutKeys | None) -> jax.Array:
        x = jnp.tanh(self.dense(dropout(x, self._rate, noise)))
        return self.out_proj(dropout(x, self._rate, noise))  # (batch, outputs)


class _LastTokenClassifier(nnx.Module):
    def __init__(self, tops: HeadModules, config: Config, outputs: int) -> None:
        refuse_unless(isinstance(config["eos_token_id"], int), config, message("multiple end-of-text tokens"))
        setattr(self, tops.attribute, tops.body(config))
        self.classification_head = _Classifier(config[tops.width], outputs, config["classifier_dropout"])
        self._body, self._end = tops.attribute, config["eos_token_id"]

    def __call__(self, arrays: Arrays, noise: DropoutKeys | None) -> jax.Array:
        x = getattr(self, self._body)(arrays, noise)  # (batch, length, hidden_size)
        ids = arrays["input_ids"]  # (batch, length)
        last = jnp.max(jnp.where(ids == self._end, jnp.arange(ids.shape[1]), 0), axis=1)  # (batch,)
        x = jnp.take_along_axis(x, last[:, None, None], axis=1)[:, 0]  # (batch, hidden_size)
        return self.classification_head(x, noise)  # (batch, outputs)


class _NextTokenHead(nnx.Module):
    def __init__(self, tops: HeadModules, config: Config, embedding: Callable[[Any], Embedding]) -> None:
        setattr(self, tops.attribute, tops.body(config))
        tied = config["tie_word_embeddings"]
        self.lm_head = None if tied else Linear(config[tops.width], config["vocab_size"], bias=False)
        self._body, self._embedding = tops.attribute, embedding

    def hidden(self, arrays: Arrays, noise: DropoutKeys | None) -> jax.Array:
        return getattr(self, self._body)(arrays, noise)  # (batch, length, hidden_size)

    def vocabulary(self, x: jax.Array) -> jax.Array:
        if self.lm_head is None:
            return self._embedding(getattr(self, self._body)).scores(x)  # (targets, vocabulary)
        return self.lm_head(x)  # (targets, vocabulary)


def _every_token(x: jax.Array, arrays: Arrays) -> jax.Array:
    return x
