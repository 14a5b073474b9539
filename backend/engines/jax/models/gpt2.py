"""GPT-2 (Radford et al. 2019)."""

import jax
import jax.numpy as jnp
from flax import nnx

from backend.contract.heads import Head
from backend.engines.jax.head_modules import HeadModules
from backend.engines.jax.layers import (
    Conv1D,
    DropoutKeys,
    Embedding,
    LayerNorm,
    activation,
    apply_layer,
    attend,
    causal_bias,
    dropout,
    extend_cache,
    join_heads,
    positions_of,
    split_heads,
)
from backend.engines.jax.models.family import Arrays, Config, Family, classifier_dropout, refuse_unless


class _Attention(nnx.Module):
    def __init__(self, config: Config, number: int) -> None:
        width = config["n_embd"]
        self.c_attn = Conv1D(width, 3 * width)
        self.c_proj = Conv1D(width, width)
        self._heads, self._rate, self._after = config["n_head"], config["attn_pdrop"], config["resid_pdrop"]
        scale = (width // config["n_head"]) ** -0.5 if config["scale_attn_weights"] else 1.0
        self._scale = scale / (number + 1) if config["scale_attn_by_inverse_layer_idx"] else scale

    def __call__(self, x: jax.Array, bias: jax.Array, noise: DropoutKeys | None) -> jax.Array:
        parts = jnp.split(self.c_attn(x), 3, axis=-1)  # each (batch, length, hidden_size)
        query, key, value = (split_heads(part, self._heads) for part in parts)  # each (batch, heads, length, head_size)
        key, value = extend_cache(key, value)  # each (batch, heads, keys, head_size)
        found = attend(
            query, key, value, bias, scale=self._scale, rate=self._rate, noise=noise, is_causal=True
        )  # (batch, heads, length, head_size)
        return dropout(self.c_proj(join_heads(found)), self._after, noise)  # (batch, length, hidden_size)


class _Mlp(nnx.Module):
    def __init__(self, config: Config) -> None:
        width = config["n_embd"]
        inner = config["n_inner"] or 4 * width
        self.c_fc, self.c_proj = Conv1D(width, inner), Conv1D(inner, width)
        self._activation, self._rate = activation(config["activation_function"]), config["resid_pdrop"]

    def __call__(self, x: jax.Array, noise: DropoutKeys | None) -> jax.Array:
        x = self._activation(self.c_fc(x))  # (batch, length, intermediate_size)
        return dropout(self.c_proj(x), self._rate, noise)  # (batch, length, hidden_size)


class _Block(nnx.Module):
    def __init__(self, config: Config, number: int) -> None:
        epsilon = config["layer_norm_epsilon"]
        self.ln_1, self.ln_2 = (LayerNorm(config["n_embd"], epsilon) for _ in range(2))
        self.attn, self.mlp = _Attention(config, number), _Mlp(config)

    def __call__(self, x: jax.Array, bias: jax.Array, noise: DropoutKeys | None) -> jax.Array:
        x = x + self.attn(self.ln_1(x), bias, noise)
        return x + self.mlp(self.ln_2(x), noise)


class Body(nnx.Module):
    """Embeddings, blocks and the last norm."""

    def __init__(self, config: Config) -> None:
        self.wte = Embedding(config["vocab_size"], config["n_embd"])
        self.wpe = Embedding(config["n_positions"], config["n_embd"])
        self.h = nnx.List([_Block(config, number) for number in range(config["n_layer"])])
        self.ln_f = LayerNorm(config["n_embd"], config["layer_norm_epsilon"])
        self._rate = config["embd_pdrop"]

    def __call__(self, arrays: Arrays, noise: DropoutKeys | None) -> jax.Array:
        x = self.wte(arrays["input_ids"]) + self.wpe(positions_of(arrays))  # (batch, length, hidden_size)
        x = dropout(x, self._rate, noise)
        bias = causal_bias(arrays)  # (batch, 1, length, keys)
        for block in self.h:
            x = apply_layer(block, x, bias, noise)
        return self.ln_f(x)


def check(config: Config) -> None:
    """Raises InputError for a variant that no class here supports."""
    refuse_unless(not config.get("add_cross_attention"), config, "cross-attention")


_DIVIDED = {
    "c_attn.weight": 1, "c_attn.bias": 0, "attn.c_proj.weight": 0, "c_fc.weight": 1, "c_fc.bias": 0,
    "mlp.c_proj.weight": 0, "wte.weight": 0, "lm_head.weight": 0,
}  # fmt: skip
"""Its matrices are (inputs, outputs)."""
_TOPS = HeadModules("transformer", Body, "n_embd")
FAMILY = Family(
    body="transformer",
    check=check,
    divided=_DIVIDED,
    heads={
        Head.CAUSAL_LM: ("GPT2LMHeadModel", _TOPS.next_token(lambda body: body.wte)),
        Head.SEQUENCE_CLASSIFICATION: ("GPT2ForSequenceClassification", _TOPS.logits_of_last_token("score")),
        Head.SEQUENCE_REGRESSION: ("GPT2ForSequenceClassification", _TOPS.logits_of_last_token("score")),
        Head.TOKEN_CLASSIFICATION: (
            "GPT2ForTokenClassification",
            _TOPS.logits_of_tokens("classifier", classifier_dropout),
        ),
        Head.QUESTION_ANSWERING: ("GPT2ForQuestionAnswering", _TOPS.logits_of_tokens("qa_outputs")),
    },
)
