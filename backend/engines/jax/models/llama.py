"""Llama (Touvron et al. 2023), and the decoders that follow it by what their configuration switches."""

from dataclasses import dataclass

import jax
from flax import nnx

from backend.contract.heads import Head
from backend.contract.messages import message
from backend.engines.jax.head_modules import HeadModules
from backend.engines.jax.layers import (
    DropoutKeys,
    Embedding,
    Linear,
    RMSNorm,
    activation,
    apply_layer,
    attend,
    causal_bias,
    extend_cache,
    join_heads,
    positions_of,
    split_heads,
)
from backend.engines.jax.models.family import Arrays, Config, Family, classifier_dropout, refuse_unless
from backend.engines.jax.rotary import Rotary


@dataclass(frozen=True)
class Variant:
    """How a decoder differs from Llama."""

    architecture: str
    has_query_bias: bool | None = None
    """Of query, key and value; None does as the configuration's `attention_bias` says, for the output too."""
    norms_heads: bool = False
    """Whether queries and keys are normalised, head by head."""
    body_of_spans: str = "transformer"
    """What the head that answers questions calls the body."""
    has_window: bool = False
    """Whether every layer sees `sliding_window` tokens; else a list of `layer_types` says which do."""


class _Attention(nnx.Module):
    def __init__(self, config: Config, variant: Variant) -> None:
        width, heads, shared = config["hidden_size"], config["num_attention_heads"], config["num_key_value_heads"]
        size = config.get("head_dim") or width // heads
        has_bias = bool(config.get("attention_bias"))
        bias = has_bias if variant.has_query_bias is None else variant.has_query_bias
        self.q_proj = Linear(width, heads * size, bias=bias)
        self.k_proj = Linear(width, shared * size, bias=bias)
        self.v_proj = Linear(width, shared * size, bias=bias)
        self.o_proj = Linear(heads * size, width, bias=has_bias and variant.has_query_bias is None)
        if variant.norms_heads:
            self.q_norm, self.k_norm = (RMSNorm(size, config["rms_norm_eps"]) for _ in range(2))
        self._norms, self._heads, self._shared = variant.norms_heads, heads, shared
        self._rate = config["attention_dropout"]

    def __call__(
        self, x: jax.Array, bias: jax.Array, rotary: Rotary, positions: jax.Array, noise: DropoutKeys | None
    ) -> jax.Array:
        query = split_heads(self.q_proj(x), self._heads)  # (batch, heads, length, head_size)
        key, value = (
            split_heads(layer(x), self._shared) for layer in (self.k_proj, self.v_proj)
        )  # each (batch, kv_heads, length, head_size)
        if self._norms:
            query, key = self.q_norm(query).astype(value.dtype), self.k_norm(key).astype(value.dtype)
        query = rotary.rotate(query, positions)
        key, value = extend_cache(rotary.rotate(key, positions), value)  # each (batch, kv_heads, keys, head_size)
        found = attend(
            query, key, value, bias, rate=self._rate, noise=noise, is_causal=True
        )  # (batch, heads, length, head_size)
        return self.o_proj(join_heads(found))  # (batch, length, hidden_size)


class _Mlp(nnx.Module):
    def __init__(self, config: Config) -> None:
        width, inner, bias = config["hidden_size"], config["intermediate_size"], bool(config.get("mlp_bias"))
        self.gate_proj, self.up_proj = (Linear(width, inner, bias=bias) for _ in range(2))
        self.down_proj = Linear(inner, width, bias=bias)
        self._activation = activation(config["hidden_act"])

    def __call__(self, x: jax.Array) -> jax.Array:
        x = self._activation(self.gate_proj(x)) * self.up_proj(x)  # (batch, length, intermediate_size)
        return self.down_proj(x)  # (batch, length, hidden_size)


class _Layer(nnx.Module):
    def __init__(self, config: Config, variant: Variant) -> None:
        self.self_attn, self.mlp = _Attention(config, variant), _Mlp(config)
        self.input_layernorm, self.post_attention_layernorm = (
            RMSNorm(config["hidden_size"], config["rms_norm_eps"]) for _ in range(2)
        )

    def __call__(
        self, x: jax.Array, bias: jax.Array, rotary: Rotary, positions: jax.Array, noise: DropoutKeys | None
    ) -> jax.Array:
        x = x + self.self_attn(self.input_layernorm(x), bias, rotary, positions, noise)
        return x + self.mlp(self.post_attention_layernorm(x))


class Body(nnx.Module):
    """Embedding, layers and the last norm."""

    def __init__(self, config: Config, variant: Variant) -> None:
        count = config["num_hidden_layers"]
        self.embed_tokens = Embedding(config["vocab_size"], config["hidden_size"])
        self.layers = nnx.List([_Layer(config, variant) for _ in range(count)])
        self.norm = RMSNorm(config["hidden_size"], config["rms_norm_eps"])
        self._rotary = Rotary(config, config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"])
        self._windows = tuple(_window(config, variant, number) for number in range(count))

    def __call__(self, arrays: Arrays, noise: DropoutKeys | None) -> jax.Array:
        x = self.embed_tokens(arrays["input_ids"])  # (batch, length, hidden_size)
        positions = positions_of(arrays)  # (batch, length)
        biases = {
            window: causal_bias(arrays, window) for window in sorted(set(self._windows), key=str)
        }  # each (batch, 1, length, keys)
        for layer, window in zip(self.layers, self._windows, strict=True):
            x = apply_layer(layer, x, biases[window], self._rotary, positions, noise)
        return self.norm(x)


def _window(config: Config, variant: Variant, number: int) -> int | None:
    if variant.has_window:
        return config.get("sliding_window")
    kinds = config.get("layer_types")
    return config["sliding_window"] if kinds and kinds[number] == "sliding_attention" else None


_OUTPUTS = ("q_proj", "k_proj", "v_proj", "gate_proj", "up_proj")
_DIVIDED = {
    **{f"{layer}.{part}": 0 for layer in _OUTPUTS for part in ("weight", "bias")},
    "o_proj.weight": 1, "down_proj.weight": 1, "embed_tokens.weight": 0, "lm_head.weight": 0,
}  # fmt: skip
"""Heads and inner units go to the devices of a group, which add up what they found (Shoeybi et al. 2019)."""


def family(variant: Variant) -> Family:
    """The heads of a decoder of this kind."""
    tops = HeadModules("model", lambda config: Body(config, variant), "hidden_size")
    tops_of_spans = HeadModules(variant.body_of_spans, lambda config: Body(config, variant), "hidden_size")
    name = variant.architecture
    return Family(
        body="model",
        bodies={Head.QUESTION_ANSWERING: variant.body_of_spans},
        check=check,
        divided=_DIVIDED,
        heads={
            Head.CAUSAL_LM: (f"{name}ForCausalLM", tops.next_token(lambda body: body.embed_tokens)),
            Head.SEQUENCE_CLASSIFICATION: (f"{name}ForSequenceClassification", tops.logits_of_last_token("score")),
            Head.SEQUENCE_REGRESSION: (f"{name}ForSequenceClassification", tops.logits_of_last_token("score")),
            Head.TOKEN_CLASSIFICATION: (
                f"{name}ForTokenClassification",
                tops.logits_of_tokens("score", classifier_dropout),
            ),
            Head.QUESTION_ANSWERING: (f"{name}ForQuestionAnswering", tops_of_spans.logits_of_tokens("qa_outputs")),
        },
    )


def check(config: Config) -> None:
    """Raises InputError for a variant that no class here supports."""
    kinds = set(config.get("layer_types") or [])
    refuse_unless(
        kinds <= {"full_attention", "sliding_attention"},
        config,
        message("the layer types {kinds}", kinds=", ".join(sorted(kinds))),
    )


FAMILY = family(Variant("Llama"))
