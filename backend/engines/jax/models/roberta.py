"""RoBERTa (Liu et al. 2019): BERT's layers, with positions offset by the padding row and different heads."""

import jax
import jax.numpy as jnp
from flax import nnx

from backend.contract.heads import Head
from backend.contract.messages import message
from backend.engines.jax.head_modules import HeadModules
from backend.engines.jax.layers import DropoutKeys, Embedding, LayerNorm, Linear, activation, dropout, word_ids
from backend.engines.jax.models.bert import Encoder, head_dropout
from backend.engines.jax.models.family import Arrays, Config, Family, refuse_unless


class _Embeddings(nnx.Module):
    def __init__(self, config: Config) -> None:
        width = config["hidden_size"]
        self.word_embeddings = Embedding(config["vocab_size"], width)
        self.position_embeddings = Embedding(config["max_position_embeddings"], width)
        self.token_type_embeddings = Embedding(config["type_vocab_size"], width)
        self.LayerNorm = LayerNorm(width, config["layer_norm_eps"])
        self._rate, self._padding = config["hidden_dropout_prob"], config["pad_token_id"]

    def __call__(self, arrays: Arrays, noise: DropoutKeys | None) -> jax.Array:
        ids = arrays["input_ids"]
        positions = self._positions(ids, arrays.get("position"))  # (batch, length)
        kinds = arrays.get("token_type_ids", jnp.zeros_like(ids))
        x = self.word_embeddings(word_ids(arrays)) + self.token_type_embeddings(kinds)  # (batch, length, hidden_size)
        x = x + self.position_embeddings(positions)
        return dropout(self.LayerNorm(x), self._rate, noise)

    def _positions(self, ids: jax.Array, position: jax.Array | None) -> jax.Array:
        """Counted over what is not the padding token, in each packed row by itself. (batch, length)"""
        is_token = (ids != self._padding).astype(jnp.int32)  # (batch, length)
        count = jnp.cumsum(is_token, axis=1)  # (batch, length)
        if position is not None:
            first = jnp.arange(ids.shape[1]) - position  # (batch, length)
            count -= jnp.take_along_axis(count - is_token, first, axis=1)
        return count * is_token + self._padding


class Body(nnx.Module):
    """Embeddings and layers."""

    def __init__(self, config: Config) -> None:
        self.embeddings = _Embeddings(config)
        self.encoder = Encoder(config)

    def __call__(self, arrays: Arrays, noise: DropoutKeys | None, *, first_only: bool = False) -> jax.Array:
        """(batch, length, hidden_size), or of the first tokens alone (rows, hidden_size)."""
        return self.encoder(self.embeddings(arrays, noise), arrays, noise, first_only=first_only)


class _Pooler(nnx.Module):
    def __init__(self, config: Config) -> None:
        self.dense = Linear(config["hidden_size"], config["hidden_size"])


class _PooledBody(Body):
    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.pooler = _Pooler(config)


class _Classifier(nnx.Module):
    def __init__(self, config: Config, outputs: int) -> None:
        self.dense = Linear(config["hidden_size"], config["hidden_size"])
        self.out_proj = Linear(config["hidden_size"], outputs)
        self._rate = head_dropout(config)

    def __call__(self, x: jax.Array, noise: DropoutKeys | None) -> jax.Array:
        x = jnp.tanh(self.dense(dropout(x, self._rate, noise)))  # (rows, hidden_size)
        return self.out_proj(dropout(x, self._rate, noise))  # (rows, outputs)


class ForSequence(nnx.Module):
    """Logits of a whole text."""

    def __init__(self, config: Config, outputs: int) -> None:
        self.roberta = Body(config)
        self.classifier = _Classifier(config, outputs)

    def __call__(self, arrays: Arrays, noise: DropoutKeys | None) -> jax.Array:
        return self.classifier(self.roberta(arrays, noise, first_only=True), noise)  # (rows, outputs)


class ForChoices(nnx.Module):
    """The score of one choice: the only head that reads a text through a pooler."""

    def __init__(self, config: Config, outputs: int) -> None:
        self.roberta = _PooledBody(config)
        self.classifier = Linear(config["hidden_size"], outputs)
        self._rate = config["hidden_dropout_prob"]

    def __call__(self, arrays: Arrays, noise: DropoutKeys | None) -> jax.Array:
        x = self.roberta(arrays, noise, first_only=True)  # (batch · choices, hidden_size)
        pooled = jnp.tanh(self.roberta.pooler.dense(x))  # (batch · choices, hidden_size)
        return self.classifier(dropout(pooled, self._rate, noise))  # (batch · choices, 1)


class _LanguageHead(nnx.Module):
    def __init__(self, config: Config) -> None:
        self.dense = Linear(config["hidden_size"], config["hidden_size"])
        self.layer_norm = LayerNorm(config["hidden_size"], config["layer_norm_eps"])
        self.bias = nnx.Param(jnp.zeros((config["vocab_size"],)))
        self._activation = activation("gelu")

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.layer_norm(self._activation(self.dense(x)))


class ForMaskedWords(nnx.Module):
    """The token behind a mask: `hidden` for every token, and `vocabulary` for the selected ones."""

    def __init__(self, config: Config, outputs: int) -> None:
        self.roberta = Body(config)
        self.lm_head = _LanguageHead(config)

    def hidden(self, arrays: Arrays, noise: DropoutKeys | None) -> jax.Array:
        return self.roberta(arrays, noise)  # (batch, length, hidden_size)

    def vocabulary(self, x: jax.Array) -> jax.Array:
        x = self.roberta.embeddings.word_embeddings.scores(self.lm_head(x))  # (targets, vocabulary)
        return x + self.lm_head.bias[...].astype(x.dtype)


def check(config: Config) -> None:
    """Raises InputError for a variant that no class here supports."""
    refuse_unless(config.get("position_embedding_type") in (None, "absolute"), config, message("relative positions"))
    refuse_unless(not config.get("is_decoder"), config, message("its use as a decoder"))
    refuse_unless(config.get("tie_word_embeddings", True), config, message("a separate output layer"))


_TOPS = HeadModules("roberta", Body, "hidden_size")


def family(architecture: str) -> Family:
    """The family of RoBERTa and of models that differ only by name."""
    return Family(
        body="roberta",
        words="embeddings.word_embeddings",
        reads_packed_rows=True,
        check=check,
        heads={
            Head.SEQUENCE_CLASSIFICATION: (f"{architecture}ForSequenceClassification", ForSequence),
            Head.SEQUENCE_REGRESSION: (f"{architecture}ForSequenceClassification", ForSequence),
            Head.TOKEN_CLASSIFICATION: (
                f"{architecture}ForTokenClassification",
                _TOPS.logits_of_tokens("classifier", head_dropout),
            ),
            Head.QUESTION_ANSWERING: (f"{architecture}ForQuestionAnswering", _TOPS.logits_of_tokens("qa_outputs")),
            Head.MULTIPLE_CHOICE: (f"{architecture}ForMultipleChoice", ForChoices),
            Head.MASKED_LM: (f"{architecture}ForMaskedLM", ForMaskedWords),
        },
    )


FAMILY = family("Roberta")
