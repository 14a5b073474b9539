"""BART (Lewis et al. 2020), and the encoder-decoder that mBART and Marian share with it: layers, both stacks, heads."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from backend.contract.errors import InputError
from backend.contract.heads import IGNORE, Head
from backend.contract.messages import message
from backend.engines.jax.head_modules import HeadModules
from backend.engines.jax.layers import (
    DropoutKeys,
    Embedding,
    LayerNorm,
    Linear,
    activation,
    apply_layer,
    attend,
    attention_positions,
    cache_source,
    causal_answer_bias,
    dropout,
    extend_cache,
    join_heads,
    padding_bias,
    split_heads,
)
from backend.engines.jax.models.family import Arrays, Config, Family, refuse_unless, shift_right

_EPSILON = 1e-5
_OFFSET = 2
"""Rows of a table of positions that are never used, a custom of fairseq."""


@dataclass(frozen=True)
class Variant:
    """How a variant differs from BART."""

    norms_first: bool = False
    """Whether the parts of a layer read what is normalised, and a stack's result is too; else their sums are normalised."""
    learns_positions: bool = True
    """Whether positions are learnt and the sum of them and the tokens is normalised; else they are sinusoids."""
    begins_with_last: bool = False
    """Whether the decoder starts with the target's last token (a language) instead of a start token."""


class _Attention(nnx.Module):
    def __init__(self, config: Config, heads: int) -> None:
        width = config["d_model"]
        self.k_proj, self.v_proj, self.q_proj, self.out_proj = (Linear(width, width) for _ in range(4))
        self._heads, self._rate = heads, config["attention_dropout"]

    def __call__(
        self, x: jax.Array, seen: jax.Array, bias: jax.Array, noise: DropoutKeys | None, *, remembers: bool = False
    ) -> jax.Array:
        query = split_heads(self.q_proj(x), self._heads)  # (batch, heads, length, head_size)

        def project_source() -> tuple[jax.Array, jax.Array]:
            return split_heads(self.k_proj(seen), self._heads), split_heads(self.v_proj(seen), self._heads)

        key, value = (
            extend_cache(*project_source()) if remembers else cache_source(project_source)
        )  # each (batch, heads, keys, head_size)
        found = attend(
            query, key, value, bias, rate=self._rate, noise=noise, is_causal=remembers
        )  # (batch, heads, length, head_size)
        return self.out_proj(join_heads(found))  # (batch, length, hidden_size)


class _Layer(nnx.Module):
    """A layer of either stack; the decoder's also attends to the source."""

    def __init__(self, config: Config, side: str, variant: Variant) -> None:
        width, heads, inner = config["d_model"], config[f"{side}_attention_heads"], config[f"{side}_ffn_dim"]
        self._is_decoder, self._norms_first = side == "decoder", variant.norms_first
        self.self_attn, self.self_attn_layer_norm = _Attention(config, heads), LayerNorm(width, _EPSILON)
        if self._is_decoder:
            self.encoder_attn, self.encoder_attn_layer_norm = _Attention(config, heads), LayerNorm(width, _EPSILON)
        self.fc1, self.fc2 = Linear(width, inner), Linear(inner, width)
        self.final_layer_norm = LayerNorm(width, _EPSILON)
        self._activation = activation(config["activation_function"])
        self._rate, self._inner_rate = config["dropout"], config["activation_dropout"]

    def __call__(
        self, x: jax.Array, bias: jax.Array, source: jax.Array | None, source_bias: jax.Array, noise: DropoutKeys | None
    ) -> jax.Array:
        def attend_to_self(value: jax.Array) -> jax.Array:
            return self.self_attn(value, value, bias, noise, remembers=self._is_decoder)

        def feed_forward(value: jax.Array) -> jax.Array:
            inner = self._activation(self.fc1(value))  # (batch, length, intermediate_size)
            return self.fc2(dropout(inner, self._inner_rate, noise))  # (batch, length, hidden_size)

        x = self._add_residual(x, attend_to_self, self.self_attn_layer_norm, noise)
        if source is not None:
            x = self._add_residual(
                x, lambda value: self.encoder_attn(value, source, source_bias, noise), self.encoder_attn_layer_norm, noise
            )  # fmt: skip
        return self._add_residual(x, feed_forward, self.final_layer_norm, noise)

    def _add_residual(
        self, x: jax.Array, part: Callable[[jax.Array], jax.Array], norm: LayerNorm, noise: DropoutKeys | None
    ) -> jax.Array:
        """`x` plus the output of a sublayer."""
        if self._norms_first:
            return x + dropout(part(norm(x)), self._rate, noise)
        return norm(x + dropout(part(x), self._rate, noise))


class _Stack(nnx.Module):
    """Encoder or decoder: positions, layers, and the final norm if there is one."""

    def __init__(self, config: Config, side: str, variant: Variant) -> None:
        width, longest = config["d_model"], config["max_position_embeddings"]
        learns = variant.learns_positions
        self.embed_positions = Embedding(longest + _OFFSET, width) if learns else None
        self.layernorm_embedding = LayerNorm(width, _EPSILON) if learns else None
        self.layers = nnx.List([_Layer(config, side, variant) for _ in range(config[f"{side}_layers"])])
        self.layer_norm = LayerNorm(width, _EPSILON) if variant.norms_first else None
        self._rate, self._width, self._longest = config["dropout"], width, longest

    def __call__(
        self,
        x: jax.Array,
        positions: jax.Array,
        bias: jax.Array,
        noise: DropoutKeys | None,
        source: jax.Array | None = None,
        source_bias: jax.Array | None = None,
    ) -> jax.Array:
        """Tokens (batch, length, hidden_size) at positions (length,); the biases are added to scores."""
        x = dropout(self._add_positions(x, positions), self._rate, noise)
        for layer in self.layers:
            x = apply_layer(layer, x, bias, source, source_bias, noise)
        return x if self.layer_norm is None else self.layer_norm(x)

    def _add_positions(self, x: jax.Array, positions: jax.Array) -> jax.Array:
        if self.embed_positions is None or self.layernorm_embedding is None:
            return x + jnp.asarray(_sinusoids(self._longest, self._width))[positions]
        return self.layernorm_embedding(x + self.embed_positions(positions + _OFFSET))


class Body(nnx.Module):
    """One token embedding for both sides, encoder and decoder."""

    def __init__(self, config: Config, variant: Variant) -> None:
        width = config["d_model"]
        padding, end = config["pad_token_id"], config["eos_token_id"]  # an end token must be learnt
        self.shared = Embedding(config["vocab_size"], width, padding if padding != end else None)
        self.encoder, self.decoder = (_Stack(config, side, variant) for side in ("encoder", "decoder"))
        self._scale = math.sqrt(width) if config["scale_embedding"] else 1.0
        self._start, self._padding = config["decoder_start_token_id"], padding
        self._begins_with_last = variant.begins_with_last

    def __call__(self, arrays: Arrays, noise: DropoutKeys | None) -> jax.Array:
        """A text read as its own answer, (batch, length, hidden_size)."""
        return self.answers(arrays["input_ids"], arrays, noise)

    def answers(self, labels: jax.Array, arrays: Arrays, noise: DropoutKeys | None) -> jax.Array:
        """The decoder's output before each of the answer's tokens, (batch, answer, hidden_size)."""
        mask = arrays["attention_mask"]
        return self.decode(self._shift_right(labels), self.read(arrays["input_ids"], mask, noise), mask, noise)

    def read(self, ids: jax.Array, attention_mask: jax.Array, noise: DropoutKeys | None) -> jax.Array:
        """The source as the decoder sees it."""
        x = self.shared(ids) * self._scale  # (batch, length, hidden_size)
        positions = jnp.arange(ids.shape[1])  # (length,)
        return self.encoder(x, positions, padding_bias(attention_mask), noise)

    def decode(
        self, given: jax.Array, source: jax.Array, attention_mask: jax.Array, noise: DropoutKeys | None
    ) -> jax.Array:
        """The decoder's output after each of its input tokens."""
        x = self.shared(given) * self._scale  # (batch, answer, hidden_size)
        positions = attention_positions(given)[0]  # (answer,)
        return self.decoder(x, positions, causal_answer_bias(given), noise, source, padding_bias(attention_mask))

    def _shift_right(self, labels: jax.Array) -> jax.Array:
        if not self._begins_with_last:
            return shift_right(labels, self._start, self._padding)
        known = jnp.where(labels == IGNORE, self._padding, labels)
        last = jnp.maximum((known != self._padding).sum(axis=1, keepdims=True) - 1, 0)  # (batch, 1)
        return jnp.concatenate([jnp.take_along_axis(known, last, axis=1), known[:, :-1]], axis=1)  # (batch, answer)


class ForAnswers(nnx.Module):
    """The seq2seq head: `hidden` for every answer token, and `vocabulary` for the selected ones."""

    def __init__(self, config: Config, variant: Variant) -> None:
        self.model = Body(config, variant)
        self.final_logits_bias = nnx.Param(jnp.zeros((1, config["vocab_size"])))

    def read(self, arrays: Arrays, noise: DropoutKeys | None) -> jax.Array:
        return self.model.read(arrays["input_ids"], arrays["attention_mask"], noise)  # (batch, length, hidden_size)

    def decode(
        self, given: jax.Array, source: jax.Array, attention_mask: jax.Array, noise: DropoutKeys | None
    ) -> jax.Array:
        return self.model.decode(given, source, attention_mask, noise)

    def hidden(self, arrays: Arrays, noise: DropoutKeys | None) -> jax.Array:
        return self.model.answers(arrays["labels"], arrays, noise)  # (batch, answer, hidden_size)

    def vocabulary(self, x: jax.Array) -> jax.Array:
        x = self.model.shared.scores(x)  # (targets, vocabulary)
        return x + self.final_logits_bias[...].astype(x.dtype)


FIXED = frozenset({"final_logits_bias"})
ALIASES: dict[str, str] = dict.fromkeys(
    ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight"), "shared.weight"
)
"""Other names of the one table of tokens; files that were converted may have it under any of them."""


def check(config: Config, variant: Variant) -> None:
    """Raises InputError for a variant that no class here supports."""
    refuse_unless(config.get("tie_word_embeddings", True), config, message("a separate output layer"))
    refuse_unless(not config.get("encoder_layerdrop"), config, message("layer dropout"))
    refuse_unless(not config.get("decoder_layerdrop"), config, message("layer dropout"))
    if config.get("decoder_start_token_id") is None and not variant.begins_with_last:
        raise InputError(
            "model.name_or_path: this model does not specify which token its answers start with; set "
            "model.config.decoder_start_token_id",
            "model.config.decoder_start_token_id",
        )


def _sinusoids(longest: int, width: int) -> np.ndarray:
    """(positions, hidden_size): sines in the first half, cosines in the second."""
    angles = np.arange(longest)[:, None] / np.power(10000.0, 2 * (np.arange(width) // 2) / width)
    return np.concatenate([np.sin(angles[:, 0::2]), np.cos(angles[:, 1::2])], axis=1).astype(np.float32)


def family(architecture: str, variant: Variant) -> Family:
    """The family of BART and mBART."""
    tops = HeadModules("model", lambda config: Body(config, variant), "d_model")
    return Family(
        body="model",
        check=lambda config: check(config, variant),
        fixed=FIXED,
        aliases=ALIASES,
        heads={
            Head.SEQ2SEQ_LM: (
                f"{architecture}ForConditionalGeneration",
                lambda config, outputs: ForAnswers(config, variant),
            ),
            Head.SEQUENCE_CLASSIFICATION: (f"{architecture}ForSequenceClassification", tops.logits_of_last_end()),
            Head.SEQUENCE_REGRESSION: (f"{architecture}ForSequenceClassification", tops.logits_of_last_end()),
            Head.QUESTION_ANSWERING: (f"{architecture}ForQuestionAnswering", tops.logits_of_tokens("qa_outputs")),
        },
    )


FAMILY = family("Bart", Variant())
