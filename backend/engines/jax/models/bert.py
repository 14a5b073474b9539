"""BERT (Devlin et al. 2019), whose architecture MiniLM and many sentence encoders share."""

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
    dropout,
    join_heads,
    row_bias,
    split_heads,
    word_ids,
)
from backend.engines.jax.models.family import Arrays, Config, Family, first_token, refuse_unless


class _Embeddings(nnx.Module):
    def __init__(self, config: Config) -> None:
        width = config["hidden_size"]
        self.word_embeddings = Embedding(config["vocab_size"], width)
        self.position_embeddings = Embedding(config["max_position_embeddings"], width)
        self.token_type_embeddings = Embedding(config["type_vocab_size"], width)
        self.LayerNorm = LayerNorm(width, config["layer_norm_eps"])
        self._rate = config["hidden_dropout_prob"]

    def __call__(self, arrays: Arrays, noise: DropoutKeys | None) -> jax.Array:
        ids = arrays["input_ids"]
        kinds = arrays.get("token_type_ids", jnp.zeros_like(ids))
        positions = arrays.get("position", jnp.arange(ids.shape[1])[None])  # (batch or 1, length)
        x = self.word_embeddings(word_ids(arrays)) + self.token_type_embeddings(kinds)  # (batch, length, hidden_size)
        x = x + self.position_embeddings(positions)
        return dropout(self.LayerNorm(x), self._rate, noise)


class _SelfAttention(nnx.Module):
    def __init__(self, config: Config) -> None:
        width = config["hidden_size"]
        self.query, self.key, self.value = (Linear(width, width) for _ in range(3))
        self._heads, self._rate = config["num_attention_heads"], config["attention_probs_dropout_prob"]

    def __call__(self, x: jax.Array, bias: jax.Array, noise: DropoutKeys | None) -> jax.Array:
        query, key, value = (
            split_heads(layer(x), self._heads) for layer in (self.query, self.key, self.value)
        )  # each (batch, heads, length, head_size)
        found = attend(query, key, value, bias, rate=self._rate, noise=noise)  # (batch, heads, length, head_size)
        return join_heads(found)  # (batch, length, hidden_size)


class _Output(nnx.Module):
    """The end of both halves of a layer: a linear map, dropout, and the norm of the residual sum."""

    def __init__(self, config: Config, inputs: int) -> None:
        self.dense = Linear(inputs, config["hidden_size"])
        self.LayerNorm = LayerNorm(config["hidden_size"], config["layer_norm_eps"])
        self._rate = config["hidden_dropout_prob"]

    def __call__(self, x: jax.Array, before: jax.Array, noise: DropoutKeys | None) -> jax.Array:
        x = self.dense(x)  # (batch, length, hidden_size)
        return self.LayerNorm(dropout(x, self._rate, noise) + before)


class _Attention(nnx.Module):
    def __init__(self, config: Config) -> None:
        self.self = _SelfAttention(config)
        self.output = _Output(config, config["hidden_size"])

    def __call__(
        self, x: jax.Array, bias: jax.Array, noise: DropoutKeys | None, first_of: Arrays | None = None
    ) -> jax.Array:
        found = self.self(x, bias, noise)  # (batch, length, hidden_size)
        if first_of is not None:
            found, x = first_token(found, first_of), first_token(x, first_of)  # (rows, hidden_size)
        return self.output(found, x, noise)


class _Intermediate(nnx.Module):
    def __init__(self, config: Config) -> None:
        self.dense = Linear(config["hidden_size"], config["intermediate_size"])
        self._activation = activation(config["hidden_act"])

    def __call__(self, x: jax.Array) -> jax.Array:
        return self._activation(self.dense(x))  # (batch, length, intermediate_size)


class _Layer(nnx.Module):
    def __init__(self, config: Config) -> None:
        self.attention = _Attention(config)
        self.intermediate = _Intermediate(config)
        self.output = _Output(config, config["intermediate_size"])

    def __call__(
        self, x: jax.Array, bias: jax.Array, noise: DropoutKeys | None, first_of: Arrays | None = None
    ) -> jax.Array:
        """With a batch as `first_of`, only the first token of each of its rows, (rows, hidden_size)."""
        x = self.attention(x, bias, noise, first_of)
        return self.output(self.intermediate(x), x, noise)


class Encoder(nnx.Module):
    """The stack of layers, which RoBERTa shares."""

    def __init__(self, config: Config) -> None:
        self.layer = nnx.List([_Layer(config) for _ in range(config["num_hidden_layers"])])

    def __call__(
        self, x: jax.Array, arrays: Arrays, noise: DropoutKeys | None, *, first_only: bool = False
    ) -> jax.Array:
        """(batch, length, hidden_size), or of the first tokens alone (rows, hidden_size)."""
        bias = row_bias(arrays)  # (batch, 1, 1 or length, length)
        *layers, last = self.layer
        for layer in layers:
            x = apply_layer(layer, x, bias, noise)
        return apply_layer(last, x, bias, noise, arrays if first_only else None)


class _Pooler(nnx.Module):
    def __init__(self, config: Config) -> None:
        self.dense = Linear(config["hidden_size"], config["hidden_size"])

    def __call__(self, x: jax.Array) -> jax.Array:
        return jnp.tanh(self.dense(x))  # (rows, hidden_size)


class Body(nnx.Module):
    """Embeddings and layers, with a pooler if the head reads a whole text."""

    def __init__(self, config: Config, *, pooler: bool) -> None:
        self.embeddings = _Embeddings(config)
        self.encoder = Encoder(config)
        self.pooler = _Pooler(config) if pooler else None

    def __call__(self, arrays: Arrays, noise: DropoutKeys | None, *, first_only: bool = False) -> jax.Array:
        """(batch, length, hidden_size), or of the first tokens alone (rows, hidden_size)."""
        return self.encoder(self.embeddings(arrays, noise), arrays, noise, first_only=first_only)


def head_dropout(config: Config) -> float:
    """The dropout rate before a classifier."""
    own = config.get("classifier_dropout")
    return config["hidden_dropout_prob"] if own is None else own


class ForSequence(nnx.Module):
    """Logits of a whole text."""

    def __init__(self, config: Config, outputs: int) -> None:
        self.bert = Body(config, pooler=True)
        self.classifier = Linear(config["hidden_size"], outputs)
        self._rate = head_dropout(config)

    def __call__(self, arrays: Arrays, noise: DropoutKeys | None) -> jax.Array:
        assert self.bert.pooler is not None
        pooled = self.bert.pooler(self.bert(arrays, noise, first_only=True))  # (rows, hidden_size)
        return self.classifier(dropout(pooled, self._rate, noise))  # (rows, outputs)


class _Transform(nnx.Module):
    def __init__(self, config: Config) -> None:
        self.dense = Linear(config["hidden_size"], config["hidden_size"])
        self.LayerNorm = LayerNorm(config["hidden_size"], config["layer_norm_eps"])
        self._activation = activation(config["hidden_act"])

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.LayerNorm(self._activation(self.dense(x)))


class _Predictions(nnx.Module):
    def __init__(self, config: Config) -> None:
        self.transform = _Transform(config)
        self.bias = nnx.Param(jnp.zeros((config["vocab_size"],)))


class _Cls(nnx.Module):
    def __init__(self, config: Config) -> None:
        self.predictions = _Predictions(config)


class ForMaskedWords(nnx.Module):
    """The token behind a mask: `hidden` for every token, and `vocabulary` for the selected ones."""

    def __init__(self, config: Config, outputs: int) -> None:
        self.bert = Body(config, pooler=False)
        self.cls = _Cls(config)

    def hidden(self, arrays: Arrays, noise: DropoutKeys | None) -> jax.Array:
        return self.bert(arrays, noise)  # (batch, length, hidden_size)

    def vocabulary(self, x: jax.Array) -> jax.Array:
        predictions = self.cls.predictions
        x = self.bert.embeddings.word_embeddings.scores(predictions.transform(x))  # (targets, vocabulary)
        return x + predictions.bias[...].astype(x.dtype)


def check(config: Config) -> None:
    """Raises InputError for a variant that no class here supports."""
    refuse_unless(config.get("position_embedding_type") in (None, "absolute"), config, message("relative positions"))
    refuse_unless(not config.get("is_decoder"), config, message("its use as a decoder"))
    refuse_unless(config.get("tie_word_embeddings", True), config, message("a separate output layer"))


_TOPS = HeadModules("bert", lambda config: Body(config, pooler=False), "hidden_size")
FAMILY = Family(
    body="bert",
    words="embeddings.word_embeddings",
    reads_packed_rows=True,
    check=check,
    heads={
        Head.SEQUENCE_CLASSIFICATION: ("BertForSequenceClassification", ForSequence),
        Head.SEQUENCE_REGRESSION: ("BertForSequenceClassification", ForSequence),
        Head.TOKEN_CLASSIFICATION: ("BertForTokenClassification", _TOPS.logits_of_tokens("classifier", head_dropout)),
        Head.QUESTION_ANSWERING: ("BertForQuestionAnswering", _TOPS.logits_of_tokens("qa_outputs")),
        Head.MULTIPLE_CHOICE: ("BertForMultipleChoice", ForSequence),
        Head.MASKED_LM: ("BertForMaskedLM", ForMaskedWords),
    },
)
