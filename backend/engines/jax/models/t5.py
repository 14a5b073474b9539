"""T5 (Raffel et al. 2020): an encoder-decoder with relative positions; mT5 differs only in its output."""

import math
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from backend.contract.heads import Head
from backend.engines.jax.head_modules import HeadModules
from backend.engines.jax.layers import (
    DropoutKeys,
    Embedding,
    Linear,
    RMSNorm,
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
from backend.engines.jax.models.family import Arrays, Config, Family, shift_right


class _Attention(nnx.Module):
    def __init__(self, config: Config, *, has_positions: bool, is_decoder: bool) -> None:
        width, heads = config["d_model"], config["num_heads"]
        inner = heads * config["d_kv"]
        self.q, self.k, self.v = (Linear(width, inner, bias=False) for _ in range(3))
        self.o = Linear(inner, width, bias=False)
        self._buckets = config["relative_attention_num_buckets"]
        self._farthest = config["relative_attention_max_distance"]
        self.relative_attention_bias = Embedding(self._buckets, heads) if has_positions else None
        self._heads, self._rate, self._is_decoder = heads, config["dropout_rate"], is_decoder

    def positions(self, queries: jax.Array, keys: jax.Array) -> jax.Array:
        """(1, heads, length, keys): the score bias for the distance between two tokens."""
        assert self.relative_attention_bias is not None
        distance = keys[None, :] - queries[:, None]  # (length, keys)
        found = self.relative_attention_bias(self._bucket(distance))  # (length, keys, heads)
        return found.transpose(2, 0, 1)[None]  # (1, heads, length, keys)

    def _bucket(self, distance: jax.Array) -> jax.Array:
        # Half of the buckets are for near tokens, one each; the other half grow with the logarithm of the distance.
        buckets, first = self._buckets, jnp.zeros_like(distance)
        if self._is_decoder:
            distance = -jnp.minimum(distance, 0)
        else:
            buckets //= 2
            first, distance = jnp.where(distance > 0, buckets, 0), jnp.abs(distance)
        near = buckets // 2
        steps = jnp.log(jnp.maximum(distance, 1).astype(jnp.float32) / near) / math.log(self._farthest / near)
        far = jnp.minimum(near + (steps * (buckets - near)).astype(jnp.int32), buckets - 1)
        return first + jnp.where(distance < near, distance, far)

    def __call__(self, x: jax.Array, seen: jax.Array, bias: jax.Array, noise: DropoutKeys | None) -> jax.Array:
        query = split_heads(self.q(x), self._heads)  # (batch, heads, length, head_size)

        def project_source() -> tuple[jax.Array, jax.Array]:
            return split_heads(self.k(seen), self._heads), split_heads(self.v(seen), self._heads)

        key, value = (
            extend_cache(*project_source()) if self._is_decoder and seen is x else cache_source(project_source)
        )  # each (batch, heads, keys, head_size)
        found = attend(
            query, key, value, bias, scale=1.0, rate=self._rate, noise=noise
        )  # (batch, heads, length, head_size)
        return self.o(join_heads(found))  # (batch, length, hidden_size)


class _SelfAttention(nnx.Module):
    def __init__(self, config: Config, *, has_positions: bool, is_decoder: bool) -> None:
        self.SelfAttention = _Attention(config, has_positions=has_positions, is_decoder=is_decoder)
        self.layer_norm = RMSNorm(config["d_model"], config["layer_norm_epsilon"])
        self._rate = config["dropout_rate"]

    def __call__(self, x: jax.Array, bias: jax.Array, noise: DropoutKeys | None) -> jax.Array:
        normed = self.layer_norm(x)
        return x + dropout(self.SelfAttention(normed, normed, bias, noise), self._rate, noise)


class _CrossAttention(nnx.Module):
    def __init__(self, config: Config) -> None:
        self.EncDecAttention = _Attention(config, has_positions=False, is_decoder=True)
        self.layer_norm = RMSNorm(config["d_model"], config["layer_norm_epsilon"])
        self._rate = config["dropout_rate"]

    def __call__(self, x: jax.Array, source: jax.Array, bias: jax.Array, noise: DropoutKeys | None) -> jax.Array:
        return x + dropout(self.EncDecAttention(self.layer_norm(x), source, bias, noise), self._rate, noise)


class _Dense(nnx.Module):
    def __init__(self, config: Config) -> None:
        width, inner = config["d_model"], config["d_ff"]
        self._is_gated, self._rate = config["is_gated_act"], config["dropout_rate"]
        if self._is_gated:
            self.wi_0, self.wi_1 = (Linear(width, inner, bias=False) for _ in range(2))
        else:
            self.wi = Linear(width, inner, bias=False)
        self.wo = Linear(inner, width, bias=False)
        self._activation = activation(config["dense_act_fn"])

    def __call__(self, x: jax.Array, noise: DropoutKeys | None) -> jax.Array:
        x = (
            self._activation(self.wi_0(x)) * self.wi_1(x) if self._is_gated else self._activation(self.wi(x))
        )  # (batch, length, intermediate_size)
        return self.wo(dropout(x, self._rate, noise))  # (batch, length, hidden_size)


class _FeedForward(nnx.Module):
    def __init__(self, config: Config) -> None:
        self.DenseReluDense = _Dense(config)
        self.layer_norm = RMSNorm(config["d_model"], config["layer_norm_epsilon"])
        self._rate = config["dropout_rate"]

    def __call__(self, x: jax.Array, noise: DropoutKeys | None) -> jax.Array:
        return x + dropout(self.DenseReluDense(self.layer_norm(x), noise), self._rate, noise)


class _Block(nnx.Module):
    def __init__(self, config: Config, *, has_positions: bool, is_decoder: bool) -> None:
        attention = _SelfAttention(config, has_positions=has_positions, is_decoder=is_decoder)
        across = [_CrossAttention(config)] if is_decoder else []
        self.layer: Any = nnx.List([attention, *across, _FeedForward(config)])

    def __call__(
        self,
        x: jax.Array,
        bias: jax.Array,
        source: jax.Array | None,
        source_hidden: jax.Array | None,
        noise: DropoutKeys | None,
    ) -> jax.Array:
        x = self.layer[0](x, bias, noise)
        if source is not None:
            x = self.layer[1](x, source, source_hidden, noise)
        return self.layer[-1](x, noise)


class _Stack(nnx.Module):
    def __init__(self, config: Config, *, is_decoder: bool) -> None:
        count = config["num_decoder_layers"] if is_decoder else config["num_layers"]
        self.block: Any = nnx.List(
            [_Block(config, has_positions=number == 0, is_decoder=is_decoder) for number in range(count)]
        )
        self.final_layer_norm = RMSNorm(config["d_model"], config["layer_norm_epsilon"])
        self._rate, self._is_decoder = config["dropout_rate"], is_decoder

    def __call__(
        self,
        x: jax.Array,
        hidden: jax.Array,
        noise: DropoutKeys | None,
        source: jax.Array | None = None,
        source_hidden: jax.Array | None = None,
    ) -> jax.Array:
        """`hidden` and `source_hidden` are added to scores: `NEVER` at masked positions."""
        x = dropout(x, self._rate, noise)
        queries = keys = jnp.arange(x.shape[1])  # (length,)
        if self._is_decoder:
            queries, keys, _ = attention_positions(queries[None])  # (length,), (keys,)
        bias = hidden + self.block[0].layer[0].SelfAttention.positions(
            queries, keys
        )  # (batch or 1, heads, length, keys)
        for block in self.block:
            x = apply_layer(block, x, bias, source, source_hidden, noise)
        return dropout(self.final_layer_norm(x), self._rate, noise)


class Reader(nnx.Module):
    """One token embedding and the encoder."""

    def __init__(self, config: Config) -> None:
        self.shared = Embedding(config["vocab_size"], config["d_model"])
        self.encoder = _Stack(config, is_decoder=False)

    def __call__(self, arrays: Arrays, noise: DropoutKeys | None) -> jax.Array:
        return self.encoder(self.shared(arrays["input_ids"]), padding_bias(arrays["attention_mask"]), noise)


class Body(nnx.Module):
    """One token embedding for both sides, encoder and decoder."""

    def __init__(self, config: Config) -> None:
        self.shared = Embedding(config["vocab_size"], config["d_model"])
        self.encoder = _Stack(config, is_decoder=False)
        self.decoder = _Stack(config, is_decoder=True)
        self._start, self._padding = config["decoder_start_token_id"], config["pad_token_id"]

    def __call__(self, arrays: Arrays, noise: DropoutKeys | None) -> jax.Array:
        """A text read as its own answer, (batch, length, hidden_size)."""
        return self.answers(arrays["input_ids"], arrays, noise)

    def answers(self, labels: jax.Array, arrays: Arrays, noise: DropoutKeys | None) -> jax.Array:
        """The decoder's output before each of the answer's tokens, (batch, answer, hidden_size)."""
        given = shift_right(labels, self._start, self._padding)  # (batch, answer)
        return self.decode(given, self.read(arrays, noise), arrays["attention_mask"], noise)

    def read(self, arrays: Arrays, noise: DropoutKeys | None) -> jax.Array:
        """The source as the decoder sees it, (batch, length, hidden_size)."""
        return self.encoder(self.shared(arrays["input_ids"]), padding_bias(arrays["attention_mask"]), noise)

    def decode(
        self, given: jax.Array, source: jax.Array, attention_mask: jax.Array, noise: DropoutKeys | None
    ) -> jax.Array:
        """The decoder's output after each of its input tokens, (batch, answer, hidden_size)."""
        return self.decoder(self.shared(given), causal_answer_bias(given), noise, source, padding_bias(attention_mask))


class ForAnswers(Body):
    """The seq2seq head: `hidden` for every answer token, and `vocabulary` for the selected ones."""

    def __init__(self, config: Config, outputs: int) -> None:
        super().__init__(config)
        width = config["d_model"]
        self.lm_head = None if config["tie_word_embeddings"] else Linear(width, config["vocab_size"], bias=False)
        self._scale = width**-0.5 if config.get("scale_decoder_outputs") else 1.0

    def hidden(self, arrays: Arrays, noise: DropoutKeys | None) -> jax.Array:
        return self.answers(arrays["labels"], arrays, noise)  # (batch, answer, hidden_size)

    def vocabulary(self, x: jax.Array) -> jax.Array:
        x = x * self._scale  # (targets, hidden_size)
        return self.shared.scores(x) if self.lm_head is None else self.lm_head(x)  # (targets, vocabulary)


class ForSpans(Body):
    """Scores of every token as the start and as the end of an answer, (batch, length, 2)."""

    def __init__(self, config: Config, outputs: int) -> None:
        super().__init__(config)
        self.qa_outputs = Linear(config["d_model"], outputs)

    def __call__(self, arrays: Arrays, noise: DropoutKeys | None) -> jax.Array:
        return self.qa_outputs(super().__call__(arrays, noise))  # (batch, length, 2)


_BODY = "transformer"
_ALIASES: dict[str, str] = dict.fromkeys(
    ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight"), "shared.weight"
)
_WHOLE, _READERS = HeadModules(_BODY, Body, "d_model"), HeadModules(_BODY, Reader, "d_model")


def family(architecture: str) -> Family:
    """The family of T5 and mT5."""
    of_text = f"{architecture}ForSequenceClassification", _WHOLE.logits_of_last_end()
    of_tokens = _READERS.logits_of_tokens("classifier", lambda config: config["classifier_dropout"])
    return Family(
        body="",
        bodies=dict.fromkeys(
            (
                Head.SEQUENCE_CLASSIFICATION,
                Head.MULTI_LABEL_CLASSIFICATION,
                Head.SEQUENCE_REGRESSION,
                Head.TOKEN_CLASSIFICATION,
            ),
            _BODY,
        ),
        aliases=_ALIASES,
        heads={
            Head.SEQ2SEQ_LM: (f"{architecture}ForConditionalGeneration", ForAnswers),
            Head.SEQUENCE_CLASSIFICATION: of_text,
            Head.SEQUENCE_REGRESSION: of_text,
            Head.TOKEN_CLASSIFICATION: (f"{architecture}ForTokenClassification", of_tokens),
            Head.QUESTION_ANSWERING: (f"{architecture}ForQuestionAnswering", ForSpans),
        },
    )


FAMILY = family("T5")
