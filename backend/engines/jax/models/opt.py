"""OPT (Zhang et al. 2022), including the post-norm 350m variant with narrower embeddings."""

import jax
import jax.numpy as jnp
from flax import nnx

from backend.contract.heads import Head
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
    causal_bias,
    dropout,
    extend_cache,
    join_heads,
    positions_of,
    split_heads,
)
from backend.engines.jax.models.family import Arrays, Config, Family, refuse_unless

_EPSILON = 1e-5
_OFFSET = 2
"""The first two rows of the position table are used for padding only."""


class _Attention(nnx.Module):
    def __init__(self, config: Config) -> None:
        width, bias = config["hidden_size"], config["enable_bias"]
        self.k_proj, self.v_proj, self.q_proj, self.out_proj = (Linear(width, width, bias=bias) for _ in range(4))
        self._heads, self._rate = config["num_attention_heads"], config["attention_dropout"]

    def __call__(self, x: jax.Array, bias: jax.Array, noise: DropoutKeys | None) -> jax.Array:
        query, key, value = (
            split_heads(layer(x), self._heads) for layer in (self.q_proj, self.k_proj, self.v_proj)
        )  # each (batch, heads, length, head_size)
        key, value = extend_cache(key, value)  # each (batch, heads, keys, head_size)
        found = attend(
            query, key, value, bias, rate=self._rate, noise=noise, is_causal=True
        )  # (batch, heads, length, head_size)
        return self.out_proj(join_heads(found))  # (batch, length, hidden_size)


class _Layer(nnx.Module):
    def __init__(self, config: Config) -> None:
        width, bias = config["hidden_size"], config["enable_bias"]
        self.self_attn = _Attention(config)
        self.self_attn_layer_norm, self.final_layer_norm = (LayerNorm(width, _EPSILON) for _ in range(2))
        self.fc1, self.fc2 = Linear(width, config["ffn_dim"], bias=bias), Linear(config["ffn_dim"], width, bias=bias)
        self._activation, self._rate = activation(config["activation_function"]), config["dropout"]
        self._norm_first = config["do_layer_norm_before"]

    def __call__(self, x: jax.Array, bias: jax.Array, noise: DropoutKeys | None) -> jax.Array:
        seen = self.self_attn_layer_norm(x) if self._norm_first else x
        x = x + dropout(self.self_attn(seen, bias, noise), self._rate, noise)
        x = x if self._norm_first else self.self_attn_layer_norm(x)
        seen = self.final_layer_norm(x) if self._norm_first else x
        inner = self._activation(self.fc1(seen))  # (batch, length, intermediate_size)
        x = x + dropout(self.fc2(inner), self._rate, noise)  # (batch, length, hidden_size)
        return x if self._norm_first else self.final_layer_norm(x)


class _Decoder(nnx.Module):
    def __init__(self, config: Config) -> None:
        width, narrow = config["hidden_size"], config["word_embed_proj_dim"]
        self.embed_tokens = Embedding(config["vocab_size"], narrow)
        self.embed_positions = Embedding(config["max_position_embeddings"] + _OFFSET, width)
        self.project_in = Linear(narrow, width, bias=False) if narrow != width else None
        self.project_out = Linear(width, narrow, bias=False) if narrow != width else None
        has_norm = config["do_layer_norm_before"] and not config.get("_remove_final_layer_norm")
        self.final_layer_norm = LayerNorm(width, _EPSILON) if has_norm else None
        self.layers = nnx.List([_Layer(config) for _ in range(config["num_hidden_layers"])])

    def __call__(self, arrays: Arrays, noise: DropoutKeys | None) -> jax.Array:
        x = self.embed_tokens(arrays["input_ids"])  # (batch, length, embedding_size)
        x = x if self.project_in is None else self.project_in(x)  # (batch, length, hidden_size)
        positions = jnp.where(arrays["attention_mask"] > 0, positions_of(arrays), -1)  # (batch, length)
        x = x + self.embed_positions(positions + _OFFSET)
        bias = causal_bias(arrays)  # (batch, 1, length, keys)
        for layer in self.layers:
            x = apply_layer(layer, x, bias, noise)
        x = x if self.final_layer_norm is None else self.final_layer_norm(x)
        return x if self.project_out is None else self.project_out(x)  # (batch, length, embedding_size)


class Body(nnx.Module):
    """Only the decoder."""

    def __init__(self, config: Config) -> None:
        self.decoder = _Decoder(config)

    def __call__(self, arrays: Arrays, noise: DropoutKeys | None) -> jax.Array:
        return self.decoder(arrays, noise)


def check(config: Config) -> None:
    """Raises InputError for a variant that no class here supports."""
    refuse_unless(config.get("layer_norm_elementwise_affine", True), config, message("layer norms without weights"))
    refuse_unless(not config.get("layerdrop"), config, message("layer dropout"))


_TOPS = HeadModules("model", Body, "word_embed_proj_dim")
FAMILY = Family(
    body="model",
    check=check,
    heads={
        Head.CAUSAL_LM: ("OPTForCausalLM", _TOPS.next_token(lambda body: body.decoder.embed_tokens)),
        Head.SEQUENCE_CLASSIFICATION: ("OPTForSequenceClassification", _TOPS.logits_of_last_token("score")),
        Head.SEQUENCE_REGRESSION: ("OPTForSequenceClassification", _TOPS.logits_of_last_token("score")),
        Head.QUESTION_ANSWERING: ("OPTForQuestionAnswering", _TOPS.logits_of_tokens("qa_outputs")),
    },
)
