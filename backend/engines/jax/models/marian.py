"""Owns Marian (Junczys-Dowmunt et al. 2018): the first Transformer, normalised after its layers, with sinusoidal positions."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from backend.contract.heads import Head
from backend.engines.jax.layers import (
    Embedding,
    LayerNorm,
    Linear,
    Noise,
    activation,
    attend,
    causal_answer,
    dropout,
    hidden_padding,
    join_heads,
    places,
    remembered,
    split_heads,
    through,
)
from backend.engines.jax.models.family import Arrays, Config, Family, moved, refuse_unless

_EPSILON = 1e-5


class _Attention(nnx.Module):
    def __init__(self, config: Config, heads: int) -> None:
        width = config["d_model"]
        self.k_proj, self.v_proj, self.q_proj, self.out_proj = (Linear(width, width) for _ in range(4))
        self._heads, self._rate = heads, config["attention_dropout"]

    def __call__(
        self, x: jax.Array, seen: jax.Array, bias: jax.Array, noise: Noise | None, *, remembers: bool = False
    ) -> jax.Array:
        query = split_heads(self.q_proj(x), self._heads)
        key, value = (split_heads(layer(seen), self._heads) for layer in (self.k_proj, self.v_proj))
        if remembers:
            key, value = remembered(key, value)
        return self.out_proj(join_heads(attend(query, key, value, bias, rate=self._rate, noise=noise)))


class _FeedForward(nnx.Module):
    """The second half of both kinds of layers, whose parameters stand in the layer itself."""

    def __init__(self, config: Config, inner: int) -> None:
        width = config["d_model"]
        self.fc1, self.fc2 = Linear(width, inner), Linear(inner, width)
        self.final_layer_norm = LayerNorm(width, _EPSILON)
        self._activation = activation(config["activation_function"])
        self._rate, self._inner_rate = config["dropout"], config["activation_dropout"]

    def fed(self, x: jax.Array, noise: Noise | None) -> jax.Array:
        found = self.fc2(dropout(self._activation(self.fc1(x)), self._inner_rate, noise))
        return self.final_layer_norm(x + dropout(found, self._rate, noise))


class _EncoderLayer(_FeedForward):
    def __init__(self, config: Config) -> None:
        super().__init__(config, config["encoder_ffn_dim"])
        self.self_attn = _Attention(config, config["encoder_attention_heads"])
        self.self_attn_layer_norm = LayerNorm(config["d_model"], _EPSILON)

    def __call__(self, x: jax.Array, bias: jax.Array, noise: Noise | None) -> jax.Array:
        x = self.self_attn_layer_norm(x + dropout(self.self_attn(x, x, bias, noise), self._rate, noise))
        return self.fed(x, noise)


class _DecoderLayer(_FeedForward):
    def __init__(self, config: Config) -> None:
        super().__init__(config, config["decoder_ffn_dim"])
        heads = config["decoder_attention_heads"]
        self.self_attn, self.encoder_attn = _Attention(config, heads), _Attention(config, heads)
        self.self_attn_layer_norm = LayerNorm(config["d_model"], _EPSILON)
        self.encoder_attn_layer_norm = LayerNorm(config["d_model"], _EPSILON)

    def __call__(
        self, x: jax.Array, bias: jax.Array, source: jax.Array, source_bias: jax.Array, noise: Noise | None
    ) -> jax.Array:
        own = self.self_attn(x, x, bias, noise, remembers=True)
        x = self.self_attn_layer_norm(x + dropout(own, self._rate, noise))
        across = self.encoder_attn(x, source, source_bias, noise)
        return self.fed(self.encoder_attn_layer_norm(x + dropout(across, self._rate, noise)), noise)


class _Encoder(nnx.Module):
    def __init__(self, config: Config) -> None:
        self.layers = nnx.List([_EncoderLayer(config) for _ in range(config["encoder_layers"])])


class _Decoder(nnx.Module):
    def __init__(self, config: Config) -> None:
        self.layers = nnx.List([_DecoderLayer(config) for _ in range(config["decoder_layers"])])


class Body(nnx.Module):
    """One table of tokens for both sides, encoder and decoder."""

    def __init__(self, config: Config) -> None:
        width = config["d_model"]
        padding, end = config["pad_token_id"], config["eos_token_id"]  # an end token must be learnt
        self.shared = Embedding(config["vocab_size"], width, padding if padding != end else None)
        self.encoder, self.decoder = _Encoder(config), _Decoder(config)
        self._scale = math.sqrt(width) if config["scale_embedding"] else 1.0
        self._rate, self._width, self._longest = config["dropout"], width, config["max_position_embeddings"]

    def _embedded(self, ids: jax.Array, positions: jax.Array, noise: Noise | None) -> jax.Array:
        sinusoids = jnp.asarray(_sinusoids(self._longest, self._width))
        return dropout(self.shared(ids) * self._scale + sinusoids[positions], self._rate, noise)

    def read(self, ids: jax.Array, attention_mask: jax.Array, noise: Noise | None) -> jax.Array:
        """The source as the decoder sees it."""
        x, bias = self._embedded(ids, jnp.arange(ids.shape[1]), noise), hidden_padding(attention_mask)
        for layer in self.encoder.layers:
            x = through(layer, x, bias, noise)
        return x

    def answered(
        self, given: jax.Array, source: jax.Array, attention_mask: jax.Array, noise: Noise | None
    ) -> jax.Array:
        """What stands after each of the answer's tokens."""
        x = self._embedded(given, places(given)[0], noise)
        bias, source_bias = causal_answer(given), hidden_padding(attention_mask)
        for layer in self.decoder.layers:
            x = through(layer, x, bias, source, source_bias, noise)
        return x


class ForAnswers(nnx.Module):
    """The tokens of an answer: `hidden` of every one, and `vocabulary` of those that are asked."""

    def __init__(self, config: Config, outputs: int) -> None:
        self.model = Body(config)
        self.final_logits_bias = nnx.Param(jnp.zeros((1, config["vocab_size"])))
        self._start, self._padding = config["decoder_start_token_id"], config["pad_token_id"]

    def read(self, arrays: Arrays, noise: Noise | None) -> jax.Array:
        return self.model.read(arrays["input_ids"], arrays["attention_mask"], noise)

    def answered(
        self, given: jax.Array, source: jax.Array, attention_mask: jax.Array, noise: Noise | None
    ) -> jax.Array:
        return self.model.answered(given, source, attention_mask, noise)

    def hidden(self, arrays: Arrays, noise: Noise | None) -> jax.Array:
        given = moved(arrays["labels"], self._start, self._padding)
        return self.answered(given, self.read(arrays, noise), arrays["attention_mask"], noise)

    def vocabulary(self, x: jax.Array) -> jax.Array:
        x = self.model.shared.scores(x)
        return x + self.final_logits_bias[...].astype(x.dtype)


def _sinusoids(longest: int, width: int) -> np.ndarray:
    """(positions, width): sines in the first half, cosines in the second."""
    angles = np.arange(longest)[:, None] / np.power(10000.0, 2 * (np.arange(width) // 2) / width)
    return np.concatenate([np.sin(angles[:, 0::2]), np.cos(angles[:, 1::2])], axis=1).astype(np.float32)


def check(config: Config) -> None:
    """Raises InputError for what no class here computes."""
    refuse_unless(config.get("share_encoder_decoder_embeddings", True), config, "two tables of tokens")
    refuse_unless(config.get("tie_word_embeddings", True), config, "an output layer of its own")
    refuse_unless(not config.get("encoder_layerdrop"), config, "the dropping of whole layers")
    refuse_unless(not config.get("decoder_layerdrop"), config, "the dropping of whole layers")


FAMILY = Family(
    body="model",
    check=check,
    fixed=frozenset({"final_logits_bias"}),
    heads={Head.SEQ2SEQ_LM: ("MarianMTModel", ForAnswers)},
)
