"""Trains a large word embedding on a CPU so that only rows that have ever occurred cost time.

A step touches a few hundred of tens of thousands of rows, yet a dense gradient is written, measured, clipped and
processed by AdamW as a whole: in a small encoder, two fifths of a step. Here the step's rows are a small parameter, and
AdamW then updates every row that has occurred since training started, because its moments are nonzero. Any other row has
zero moments, so AdamW only applies weight decay. Weight and moments stay whole, so files are the same as without this.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from optax import ScaleByAdamState

from backend.contract.heads import Head
from backend.contract.spec import TrainingSection
from backend.engines.engine import Batch
from backend.engines.jax.compilation import CompiledPrograms
from backend.engines.jax.model import Model, Parameters
from backend.engines.jax.optimizer import Optimizer, State

_WORTH_IT = 1 << 20
"""Elements below which a dense gradient costs less than the book-keeping."""
_LOOKED_UP, _OCCURRED = 512, 2048
"""The smallest numbers of rows; each larger one has four times as many, because a new number is a new compilation."""


class SparseEmbedding:
    """The embedding `name`, (words, width), whose weight and moments `optimizer` updates by rows; states are those of Optax's Adam."""

    def __init__(self, name: str, words: int, optimizer: Optimizer, programs: CompiledPrograms) -> None:
        self.name, self._optimizer, self._programs = name, optimizer, programs
        self._words = words
        self._note(np.empty(0, np.int64))
        self._update = jax.jit(self._compute_update, donate_argnums=(0, 1))

    def begin(self, arrays: Batch) -> np.ndarray:
        """The rows that a step looks up, (rows,); those beyond the last word are none.

        `arrays` gets the place of each token's row among them, with the shape of `input_ids`.
        """
        rows, places = np.unique(arrays["input_ids"], return_inverse=True)
        arrays["places"] = places.reshape(arrays["input_ids"].shape).astype(np.int32)
        if not self._has_occurred[rows].all():
            self._note(np.union1d(np.flatnonzero(self._has_occurred), rows))
        self._rows = self._fill_up(rows, _LOOKED_UP)
        return self._rows

    def look_up(self, weight: jax.Array, rows: jax.Array) -> jax.Array:
        """A step's rows, (rows, width); none is zeros."""
        return weight.at[rows].get(mode="fill", fill_value=0.0)

    def without(self, trained: Parameters, state: State) -> tuple[Parameters, State]:
        """Parameters and the optimizer's state without the embedding."""
        others = {name: value for name, value in trained.items() if name != self.name}
        return others, _only(state, list(others))

    def finish(
        self,
        weight: jax.Array,
        before: State,
        after: State,
        gradient: jax.Array,
        learning_rate: np.float32,
    ) -> tuple[jax.Array, State]:
        """The updated weight, and the optimizer's whole state: `after` is that of the other parameters.

        `gradient`, (rows, width), is that of the step's rows, clipped. `weight` and its moments in `before` are donated.
        """
        own = _only(before, [self.name])._replace(count=after.count)
        weight, own = self._programs.call(
            self._update, ("words", len(self._rows), len(self._occurred)), weight, own, self._has_occurred, self._occurred,
            np.searchsorted(self._occurred, self._rows).astype(np.int32), gradient, learning_rate,
        )  # fmt: skip
        return weight, ScaleByAdamState(own.count, {**after.mu, **own.mu}, {**after.nu, **own.nu})

    def _compute_update(
        self, weight: jax.Array, state: State, has_occurred: jax.Array, occurred: jax.Array, places: jax.Array,
        gradient: jax.Array, learning_rate: jax.Array,
    ) -> tuple[jax.Array, State]:  # fmt: skip
        def take(values: jax.Array) -> jax.Array:
            return self.look_up(values, occurred)  # (occurred, width)

        def put(values: jax.Array, new: jax.Array) -> jax.Array:
            return values.at[occurred].set(new, mode="drop")  # (words, width)

        dense = jnp.zeros((len(occurred), weight.shape[1])).at[places].set(gradient, mode="drop")  # (occurred, width)
        moments = ScaleByAdamState(state.count - 1, jax.tree.map(take, state.mu), jax.tree.map(take, state.nu))
        new, moments = self._optimizer.update({self.name: take(weight)}, moments, {self.name: dense}, learning_rate)
        decay = self._optimizer.decay(self.name, learning_rate)
        weight = jnp.where(has_occurred[:, None], weight, weight * decay)
        return put(weight, new[self.name]), ScaleByAdamState(
            state.count, jax.tree.map(put, state.mu, moments.mu), jax.tree.map(put, state.nu, moments.nu)
        )

    def restore(self, state: State) -> None:
        """Find in a restored state which rows have occurred."""
        self._note(
            np.flatnonzero(np.asarray(state.mu[self.name]).any(axis=1) | np.asarray(state.nu[self.name]).any(axis=1))
        )

    def _note(self, occurred: np.ndarray) -> None:
        """Which rows have occurred; new arrays, because a step that still runs may read the old ones."""
        self._has_occurred = np.zeros(self._words, dtype=bool)
        self._has_occurred[occurred] = True
        self._occurred = self._fill_up(occurred, _OCCURRED)

    def _fill_up(self, rows: np.ndarray, size: int) -> np.ndarray:
        """Add numbers beyond the last word, until there are `size` rows, or four times as many, and so on."""
        while size < len(rows):
            size *= 4
        size += (
            size == self._words
        )  # an embedding that is bound to as many rows as it has words would take them for all
        return np.concatenate([rows, np.full(size - len(rows), self._words)]).astype(np.int32)


def find_word_embedding(
    model: Model, config: Any, training: TrainingSection, head: Head, trained: Sequence[str]
) -> str:
    """The name of the word embedding, if training only its rows is correct and worthwhile; else "".

    It is correct where only input tokens are looked up, once: language models compute logits with it, and an
    encoder-decoder shares it between both sides.
    """
    if training.optimizer != "adamw" or head in (Head.CAUSAL_LM, Head.MASKED_LM) or config.is_encoder_decoder:
        return ""
    found = model.token_names & set(trained)
    return next((name for name in found if np.prod(model.shapes[name]) >= _WORTH_IT), "") if len(found) == 1 else ""


def _only(state: State, names: Sequence[str]) -> State:
    return ScaleByAdamState(
        state.count, {name: state.mu[name] for name in names}, {name: state.nu[name] for name in names}
    )
