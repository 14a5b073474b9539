"""DistilBERT (Sanh et al. 2019): BERT without token types and pooler."""

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

_EPSILON = 1e-12


class _Embeddings(nnx.Module):
    def __init__(self, config: Config) -> None:
        self.word_embeddings = Embedding(config["vocab_size"], config["dim"])
        self.position_embeddings = Embedding(config["max_position_embeddings"], config["dim"])
        self.LayerNorm = LayerNorm(config["dim"], _EPSILON)
        self._rate = config["dropout"]

    def __call__(self, arrays: Arrays, noise: DropoutKeys | None) -> jax.Array:
        ids = word_ids(arrays)
        positions = arrays.get("position", jnp.arange(ids.shape[1])[None])  # (batch or 1, length)
        x = self.word_embeddings(ids) + self.position_embeddings(positions)  # (batch, length, hidden_size)
        return dropout(self.LayerNorm(x), self._rate, noise)


class _Attention(nnx.Module):
    def __init__(self, config: Config) -> None:
        self.q_lin, self.k_lin, self.v_lin, self.out_lin = (Linear(config["dim"], config["dim"]) for _ in range(4))
        self._heads, self._rate = config["n_heads"], config["attention_dropout"]

    def __call__(self, x: jax.Array, bias: jax.Array, noise: DropoutKeys | None, first_of: Arrays | None) -> jax.Array:
        query, key, value = (
            split_heads(layer(x), self._heads) for layer in (self.q_lin, self.k_lin, self.v_lin)
        )  # each (batch, heads, length, head_size)
        found = attend(query, key, value, bias, rate=self._rate, noise=noise)  # (batch, heads, length, head_size)
        found = join_heads(found)  # (batch, length, hidden_size)
        return self.out_lin(found if first_of is None else first_token(found, first_of))  # (…, hidden_size)


class _FeedForward(nnx.Module):
    def __init__(self, config: Config) -> None:
        self.lin1 = Linear(config["dim"], config["hidden_dim"])
        self.lin2 = Linear(config["hidden_dim"], config["dim"])
        self._activation, self._rate = activation(config["activation"]), config["dropout"]

    def __call__(self, x: jax.Array, noise: DropoutKeys | None) -> jax.Array:
        x = self._activation(self.lin1(x))  # (batch, length, intermediate_size)
        return dropout(self.lin2(x), self._rate, noise)  # (batch, length, hidden_size)


class _Layer(nnx.Module):
    def __init__(self, config: Config) -> None:
        self.attention, self.ffn = _Attention(config), _FeedForward(config)
        self.sa_layer_norm, self.output_layer_norm = (LayerNorm(config["dim"], _EPSILON) for _ in range(2))

    def __call__(
        self, x: jax.Array, bias: jax.Array, noise: DropoutKeys | None, first_of: Arrays | None = None
    ) -> jax.Array:
        """With a batch as `first_of`, only the first token of each of its rows, (rows, hidden_size)."""
        found = self.attention(x, bias, noise, first_of)  # (…, hidden_size)
        x = self.sa_layer_norm(found + (x if first_of is None else first_token(x, first_of)))
        return self.output_layer_norm(self.ffn(x, noise) + x)


class _Layers(nnx.Module):
    def __init__(self, config: Config) -> None:
        self.layer = nnx.List([_Layer(config) for _ in range(config["n_layers"])])


class Body(nnx.Module):
    """Embeddings and layers."""

    def __init__(self, config: Config) -> None:
        self.embeddings = _Embeddings(config)
        self.transformer = _Layers(config)

    def __call__(self, arrays: Arrays, noise: DropoutKeys | None, *, first_only: bool = False) -> jax.Array:
        """(batch, length, hidden_size), or of the first tokens alone (rows, hidden_size)."""
        x = self.embeddings(arrays, noise)  # (batch, length, hidden_size)
        bias = row_bias(arrays)  # (batch, 1, 1 or length, length)
        *layers, last = self.transformer.layer
        for layer in layers:
            x = apply_layer(layer, x, bias, noise)
        return apply_layer(last, x, bias, noise, arrays if first_only else None)


class ForSequence(nnx.Module):
    """Logits of a whole text."""

    def __init__(self, config: Config, outputs: int) -> None:
        self.distilbert = Body(config)
        self.pre_classifier = Linear(config["dim"], config["dim"])
        self.classifier = Linear(config["dim"], outputs)
        self._rate = config["seq_classif_dropout"]

    def __call__(self, arrays: Arrays, noise: DropoutKeys | None) -> jax.Array:
        x = self.distilbert(arrays, noise, first_only=True)  # (rows, hidden_size)
        x = jax.nn.relu(self.pre_classifier(x))  # (rows, hidden_size)
        return self.classifier(dropout(x, self._rate, noise))  # (rows, outputs)


class ForMaskedWords(nnx.Module):
    """The token behind a mask: `hidden` for every token, and `vocabulary` for the selected ones."""

    def __init__(self, config: Config, outputs: int) -> None:
        self.distilbert = Body(config)
        self.vocab_transform = Linear(config["dim"], config["dim"])
        self.vocab_layer_norm = LayerNorm(config["dim"], _EPSILON)
        self.vocab_projector = _Projector(config)
        self._activation = activation(config["activation"])

    def hidden(self, arrays: Arrays, noise: DropoutKeys | None) -> jax.Array:
        return self.distilbert(arrays, noise)  # (batch, length, hidden_size)

    def vocabulary(self, x: jax.Array) -> jax.Array:
        x = self.vocab_layer_norm(self._activation(self.vocab_transform(x)))
        x = self.distilbert.embeddings.word_embeddings.scores(x)  # (targets, vocabulary)
        return x + self.vocab_projector.bias[...].astype(x.dtype)


class _Projector(nnx.Module):
    """The output projection, whose weight is the embedding's."""

    def __init__(self, config: Config) -> None:
        self.bias = nnx.Param(jnp.zeros((config["vocab_size"],)))


def check(config: Config) -> None:
    """Raises InputError for a variant that no class here supports."""
    refuse_unless(config.get("tie_word_embeddings", True), config, message("a separate output layer"))


_TOPS = HeadModules("distilbert", Body, "dim")
FAMILY = Family(
    body="distilbert",
    words="embeddings.word_embeddings",
    reads_packed_rows=True,
    check=check,
    heads={
        Head.SEQUENCE_CLASSIFICATION: ("DistilBertForSequenceClassification", ForSequence),
        Head.SEQUENCE_REGRESSION: ("DistilBertForSequenceClassification", ForSequence),
        Head.TOKEN_CLASSIFICATION: (
            "DistilBertForTokenClassification",
            _TOPS.logits_of_tokens("classifier", lambda config: config["dropout"]),
        ),
        Head.QUESTION_ANSWERING: (
            "DistilBertForQuestionAnswering",
            _TOPS.logits_of_tokens("qa_outputs", lambda config: config["qa_dropout"]),
        ),
        Head.MULTIPLE_CHOICE: ("DistilBertForMultipleChoice", ForSequence),
        Head.MASKED_LM: ("DistilBertForMaskedLM", ForMaskedWords),
    },
)
