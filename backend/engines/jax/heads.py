"""Every head of the contract in JAX: what the device receives of a batch, the summed loss, and the outputs."""

from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from backend.contract.heads import IGNORE, TOP_TOKENS, Head, HeadFacts
from backend.engines.engine import Batch
from backend.engines.jax.layers import NEVER, DropoutKeys
from backend.engines.jax.models.family import Arrays, unpack_rows

_INPUTS = ("input_ids", "attention_mask", "token_type_ids", "segment", "position", "starts", "lengths")
_TARGETS_TOGETHER = 128
"""Targets of language models are counted in multiples of this, for a new number of them is a new compilation."""


class JaxHead(Protocol):
    """One head of `backend.contract.heads`. Filler rows have no label, so they do not count."""

    def __init__(self, facts: HeadFacts, label_smoothing: float) -> None: ...

    def arrays(self, batch: Batch) -> Batch:
        """What the device receives, int32 and float32, with the shapes of the batch."""
        ...

    def loss(self, model: Any, arrays: Arrays, noise: DropoutKeys | None) -> jax.Array:
        """Summed over targets, float32."""
        ...

    def outputs(self, model: Any, arrays: Arrays) -> Arrays:
        """Raw outputs, which `read` turns into the outputs of the contract."""
        ...

    def read(self, outputs: Batch, batch: Batch) -> Batch:
        """The outputs of the contract, numpy; filler rows hold zeros."""
        ...


class _Direct:
    """A head whose module's result is its output."""

    targets: tuple[str, ...] = ("labels",)

    def __init__(self, facts: HeadFacts, label_smoothing: float) -> None:
        self._smoothing = label_smoothing
        self._weights = None if facts.class_weights is None else jnp.asarray(facts.class_weights, jnp.float32)

    def arrays(self, batch: Batch) -> Batch:
        return {name: _to_32_bits(batch[name]) for name in (*_INPUTS, *self.targets) if name in batch}

    def loss(self, model: Any, arrays: Arrays, noise: DropoutKeys | None) -> jax.Array:
        logits = model(arrays, noise).astype(jnp.float32)  # (batch, labels) or (batch, length, labels)
        return cross_entropy(logits, arrays["labels"], self._smoothing, self._weights).sum()

    def outputs(self, model: Any, arrays: Arrays) -> Arrays:
        return {"logits": model(arrays, None).astype(jnp.float32)}

    def read(self, outputs: Batch, batch: Batch) -> Batch:
        return {name: _zero_filler(values, batch) for name, values in outputs.items()}


class SequenceClassification(_Direct):
    """One of several classes per row."""


class TokenClassification(_Direct):
    """One of several classes per token."""


class MultiLabelClassification(_Direct):
    """Any number of classes per row."""

    targets = ("has_label",)

    def loss(self, model: Any, arrays: Arrays, noise: DropoutKeys | None) -> jax.Array:
        logits, wanted = model(arrays, noise).astype(jnp.float32), arrays["has_label"]  # each (batch, labels)
        known = ~jnp.isnan(wanted)
        wanted = jnp.where(known, wanted, 0.0) * (1 - self._smoothing) + self._smoothing / 2
        present, absent = -jax.nn.log_sigmoid(logits), -jax.nn.log_sigmoid(-logits)
        present = present if self._weights is None else present * self._weights
        return jnp.where(known, wanted * present + (1 - wanted) * absent, 0.0).sum()


class SequenceRegression(_Direct):
    """One number per row; a NaN label is unknown."""

    def loss(self, model: Any, arrays: Arrays, noise: DropoutKeys | None) -> jax.Array:
        found, wanted = model(arrays, noise).astype(jnp.float32)[:, 0], arrays["labels"]  # each (batch,)
        known = ~jnp.isnan(wanted)
        return jnp.where(known, jnp.square(found - jnp.where(known, wanted, 0.0)), 0.0).sum()

    def outputs(self, model: Any, arrays: Arrays) -> Arrays:
        return {"logits": model(arrays, None).astype(jnp.float32)[:, 0]}  # (batch,)


class QuestionAnswering(_Direct):
    """Scores of every token as the start and as the end of an answer."""

    targets = ("start_positions", "end_positions")

    def loss(self, model: Any, arrays: Arrays, noise: DropoutKeys | None) -> jax.Array:
        # Padding is not an answer; as in the torch engine it does not compete.
        scores, is_token = unpack_rows(model(arrays, noise).astype(jnp.float32), arrays)  # (batch, length, 2)
        scores += jnp.where(is_token, 0.0, NEVER)[..., None]
        starts = cross_entropy(scores[..., 0], arrays["start_positions"], 0.0)  # (batch,)
        return (starts + cross_entropy(scores[..., 1], arrays["end_positions"], 0.0)).sum() / 2

    def outputs(self, model: Any, arrays: Arrays) -> Arrays:
        scores = model(arrays, None).astype(jnp.float32)  # (batch, length, 2)
        return {"start_logits": scores[..., 0], "end_logits": scores[..., 1]}  # each (batch, length)


class MultipleChoice(_Direct):
    """One of a row's choices: each is read as a separate row."""

    def loss(self, model: Any, arrays: Arrays, noise: DropoutKeys | None) -> jax.Array:
        labels = arrays["labels"]  # (batch,)
        is_packed = "starts" in arrays  # which the choices are as rows of their own
        scores = model(arrays, noise).reshape(len(labels), -1) if is_packed else self._scores(model, arrays, noise)
        return cross_entropy(scores.astype(jnp.float32), labels, self._smoothing).sum()

    def outputs(self, model: Any, arrays: Arrays) -> Arrays:
        return {"logits": self._scores(model, arrays, None)}

    def _scores(self, model: Any, arrays: Arrays, noise: DropoutKeys | None) -> jax.Array:
        rows, choices, length = shape = arrays["input_ids"].shape
        flat = {
            name: values.reshape(rows * choices, length) for name, values in arrays.items() if values.shape == shape
        }  # each (batch · choices, length)
        scores = model(flat, noise).astype(jnp.float32)  # (batch · choices, 1)
        return scores.reshape(rows, choices)  # (batch, choices)


class _Language:
    """Vocabulary logits are computed only at targets, whose number is rounded up."""

    def __init__(self, facts: HeadFacts, label_smoothing: float) -> None:
        self._smoothing = label_smoothing

    def labels(self, batch: Batch) -> np.ndarray:
        """(batch, length): the label to predict at each position, -100 for none."""
        return batch["labels"]

    def arrays(self, batch: Batch) -> Batch:
        labels = self.labels(batch).reshape(-1)  # (batch · length,)
        places = np.flatnonzero(labels != IGNORE)
        count = -(-max(len(places), 1) // _TARGETS_TOGETHER) * _TARGETS_TOGETHER
        found = {name: _to_32_bits(batch[name]) for name in _INPUTS if name in batch}
        found["places"] = np.zeros(count, np.int32)
        found["targets"] = np.full(count, IGNORE, np.int32)
        found["places"][: len(places)], found["targets"][: len(places)] = places, labels[places]
        return found

    def loss(self, model: Any, arrays: Arrays, noise: DropoutKeys | None) -> jax.Array:
        return cross_entropy(self._logits(model, arrays, noise), arrays["targets"], self._smoothing).sum()

    def outputs(self, model: Any, arrays: Arrays) -> Arrays:
        logits = self._logits(model, arrays, None)  # (targets, vocabulary)
        losses = cross_entropy(logits, arrays["targets"], 0.0)  # (targets,)
        best, tokens = jax.lax.top_k(logits, TOP_TOKENS)  # each (targets, top)
        chances = jnp.exp(best - jax.nn.logsumexp(logits, axis=-1, keepdims=True))  # (targets, top)
        return {"token_loss": losses, "top_tokens": tokens, "top_probabilities": chances}

    def _logits(self, model: Any, arrays: Arrays, noise: DropoutKeys | None) -> jax.Array:
        hidden = model.hidden(arrays, noise)  # (batch, length, hidden_size)
        hidden = hidden.reshape(-1, hidden.shape[-1])[arrays["places"]]  # (targets, hidden_size)
        return model.vocabulary(hidden).astype(jnp.float32)  # (targets, vocabulary)

    def _scatter_to_tokens(self, values: np.ndarray, batch: Batch) -> np.ndarray:
        """One value per target → one per token."""
        labels = self.labels(batch)
        shape, places = labels.shape, np.flatnonzero(labels.reshape(-1) != IGNORE)
        spread = np.zeros((shape[0] * shape[1], *values.shape[1:]), values.dtype)  # (batch · length, …)
        spread[places] = values[: len(places)]
        return spread.reshape(*shape, *values.shape[1:])  # (batch, length, …)


class MaskedLanguage(_Language):
    """The token behind a mask."""

    def read(self, outputs: Batch, batch: Batch) -> Batch:
        return {name: self._scatter_to_tokens(values, batch) for name, values in outputs.items()}


class CausalLanguage(_Language):
    """The next token at each position."""

    def labels(self, batch: Batch) -> np.ndarray:
        known = batch["labels"] if "labels" in batch else np.where(batch["attention_mask"], batch["input_ids"], IGNORE)
        known = np.where(batch["row_valid"][:, None], known, IGNORE)
        return np.concatenate([known[:, 1:], np.full_like(known[:, :1], IGNORE)], axis=1)

    def read(self, outputs: Batch, batch: Batch) -> Batch:
        found = {"token_loss": outputs["token_loss"], "token_prediction": outputs["top_tokens"][:, 0]}
        placed = {name: self._scatter_to_tokens(values, batch) for name, values in found.items()}
        return {name: np.concatenate([values[:, :1] * 0, values[:, :-1]], axis=1) for name, values in placed.items()}


class SequenceToSequence(_Language):
    """The tokens of an answer; the model itself prepares the decoder's input."""

    def arrays(self, batch: Batch) -> Batch:
        return {**super().arrays(batch), "labels": _to_32_bits(batch["labels"])}

    def read(self, outputs: Batch, batch: Batch) -> Batch:
        found = {"token_loss": outputs["token_loss"], "token_prediction": outputs["top_tokens"][:, 0]}
        return {name: self._scatter_to_tokens(values, batch) for name, values in found.items()}


HEADS: dict[Head, type[JaxHead]] = {
    Head.CAUSAL_LM: CausalLanguage,
    Head.MASKED_LM: MaskedLanguage,
    Head.SEQUENCE_CLASSIFICATION: SequenceClassification,
    Head.MULTI_LABEL_CLASSIFICATION: MultiLabelClassification,
    Head.SEQUENCE_REGRESSION: SequenceRegression,
    Head.TOKEN_CLASSIFICATION: TokenClassification,
    Head.QUESTION_ANSWERING: QuestionAnswering,
    Head.MULTIPLE_CHOICE: MultipleChoice,
    Head.SEQ2SEQ_LM: SequenceToSequence,
}


def cross_entropy(
    logits: jax.Array, labels: jax.Array, smoothing: float, weights: jax.Array | None = None
) -> jax.Array:
    """Per label, 0 for -100 (or beyond the classes), with torch's smoothing and weights. (…, classes), (…) → (…)"""
    known = (labels >= 0) & (labels < logits.shape[-1])
    chosen = jnp.where(known, labels, 0)
    log_probabilities = logits - jax.nn.logsumexp(logits, axis=-1, keepdims=True)  # (…, classes)
    is_chosen = jnp.arange(logits.shape[-1]) == chosen[..., None]  # (…, classes)
    own = -jnp.where(is_chosen, log_probabilities, 0.0).sum(-1)  # (…); to look it up takes a scatter in the gradient
    own = own if weights is None else own * weights[chosen]
    if smoothing:
        every = -log_probabilities if weights is None else -log_probabilities * weights
        own = (1 - smoothing) * own + smoothing * every.mean(-1)
    return jnp.where(known, own, 0.0)


def _to_32_bits(values: np.ndarray) -> np.ndarray:
    return values.astype(np.float32 if np.issubdtype(values.dtype, np.floating) else np.int32)


def _zero_filler(values: np.ndarray, batch: Batch) -> np.ndarray:
    valid = batch["row_valid"].reshape(-1, *[1] * (values.ndim - 1))
    return np.where(valid, values, np.zeros((), values.dtype))
