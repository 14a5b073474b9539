"""Trains a large table of tokens on a CPU so that only the rows of tokens that have ever occurred cost time.

A step meets a few hundred of tens of thousands of tokens, but clearing, measuring and applying a gradient of the whole table
took a third of a small model's step. Here tokens that occur get a place in a smaller table, which the optimizer's own rule
updates. AdamW only applies weight decay to all other rows: factors that are collected, and multiplied in one after another,
as the dense computation would, before anything reads the row. So the numbers do not depend on when that is, and a checkpoint
holds the whole table as ever.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from backend.engines.jax.compilation import CompiledPrograms
from backend.engines.jax.optimizer import Optimizer

LARGE = 1 << 20
"""Elements of a table from which on this is worthwhile."""
_SMALLEST = 1 << 13
"""Rows of the smaller table at first; it doubles, for each size is compiled."""
_ADMITTED = 1 << 8
"""Rows that are at least admitted together, for the same reason."""
_FACTORS = 16
"""Steps after which waiting rows are decayed."""

Table = tuple[jax.Array, ...]
"""Weights and both moments, (rows, width) each."""


@dataclass(frozen=True)
class StepRows:
    """The rows that a step looks up."""

    places: np.ndarray
    """Of every token among them, in the shape of the ids."""
    slots: np.ndarray
    """Where they are in the smaller table."""
    values: jax.Array
    """(rows, width)"""


class WordRows:
    """The table `name` of a model. `whole` and a state of the optimizer are out of date until `write_back`."""

    def __init__(self, name: str, optimizer: Optimizer, programs: CompiledPrograms) -> None:
        self.name, self._optimizer, self._programs = name, optimizer, programs
        self._admit = jax.jit(_admit, donate_argnums=0)
        self._take = jax.jit(_take)
        self._update = jax.jit(self._compute_update, donate_argnums=0)
        self._decay = jax.jit(_decay, donate_argnums=0)
        self._write_back = jax.jit(_write_back, donate_argnums=0)
        self._slots: np.ndarray | None = None

    def forget(self) -> None:
        """Start anew, from weights and moments that were restored."""
        self._slots = None

    def begin(self, whole: Table, input_ids: np.ndarray) -> StepRows:
        """Admit what a step looks up, and take it."""
        if self._slots is None:
            self._start(whole)
        assert self._slots is not None
        rows, places = np.unique(input_ids, return_inverse=True)
        self._admit_rows(whole, rows[self._slots[rows] < 0])
        # As many as there could be, so that their number depends on the batch's shape alone.
        slots = np.full(_power_of_two(input_ids.size), self._capacity, np.int32)
        slots[: len(rows)] = self._slots[rows]
        values = self._call(self._take, "take", (len(slots), self._capacity), self._own[0], slots)
        return StepRows(places.reshape(input_ids.shape).astype(np.int32), slots, values)

    def finish(
        self, whole: Table, step: StepRows, gradient: jax.Array, count: jax.Array, learning_rate: float
    ) -> Table:
        """Update every row that has occurred; `count` is of the optimizer's steps, this one included."""
        rate = np.float32(learning_rate)
        key = (len(step.slots), self._capacity)
        self._own = self._call(self._update, "update", key, self._own, gradient, step.slots, count, rate)
        factor = self._optimizer.decay_factor(self.name, rate)
        if factor != 1.0:
            self._factors.append(factor)
        if len(self._factors) < _FACTORS:
            return whole
        weight = self._call(self._decay, "decay", (), whole[0], self._take_factors())
        return weight, *whole[1:]

    def write_back(self, whole: Table) -> Table:
        """The whole table with its current values."""
        if self._slots is None or self._is_written:
            return whole
        self._is_written = True
        factors = self._take_factors()
        return self._call(self._write_back, "write back", self._capacity, whole, self._own, self._rows, factors)

    def _start(self, whole: Table) -> None:
        count, width = whole[0].shape
        self._slots = np.full(count, -1, np.int32)  # row → place in the smaller table
        self._capacity, self._occurred = min(_SMALLEST, count), 0
        self._rows = np.full(self._capacity, count, np.int32)  # place → row; no row where none has been admitted
        self._own: Table = tuple(jnp.zeros((self._capacity, width)) for _ in range(3))
        self._factors: list[np.float32] = []
        moved = [np.asarray(moment).any(axis=1) for moment in whole[1:]]
        self._admit_rows(whole, np.flatnonzero(moved[0] | moved[1]))

    def _admit_rows(self, whole: Table, new: np.ndarray) -> None:
        assert self._slots is not None
        self._is_written = False
        if not len(new):
            return
        first, self._occurred = self._occurred, self._occurred + len(new)
        while self._occurred > self._capacity:
            self._grow()
        places = np.arange(first, self._occurred, dtype=np.int32)
        self._slots[new], self._rows[places] = places, new
        room = max(_ADMITTED, _power_of_two(len(new)))
        rows, slots = np.zeros(room, np.int32), np.full(room, self._capacity, np.int32)
        rows[: len(new)], slots[: len(new)] = new, places
        factors = self._padded_factors()
        self._own = self._call(self._admit, "admit", (room, self._capacity), self._own, whole, rows, slots, factors)

    def _grow(self) -> None:
        assert self._slots is not None
        more = min(self._capacity, len(self._slots) - self._capacity)
        self._capacity += more
        self._rows = np.pad(self._rows, (0, more), constant_values=len(self._slots))
        self._own = tuple(jnp.pad(values, ((0, more), (0, 0))) for values in self._own)

    def _compute_update(
        self, own: Table, gradient: jax.Array, slots: jax.Array, count: jax.Array, learning_rate: jax.Array
    ) -> Table:
        weight, mean, square = own
        dense = jnp.zeros_like(weight).at[slots].set(gradient, mode="drop", unique_indices=True)
        state = optax.ScaleByAdamState(count=count - 1, mu={self.name: mean}, nu={self.name: square})
        new, state = self._optimizer.step({self.name: weight}, state, {self.name: dense}, learning_rate)
        return new[self.name], state.mu[self.name], state.nu[self.name]

    def _padded_factors(self) -> np.ndarray:
        return np.array([*self._factors, *[1.0] * (_FACTORS - len(self._factors))], np.float32)

    def _take_factors(self) -> np.ndarray:
        factors, self._factors = self._padded_factors(), []
        return factors

    def _call(self, function: Callable[..., Any], name: str, sizes: Any, *arguments: Any) -> Any:
        return self._programs.call(function, ("words", name, sizes), *arguments)


def without_words(state: Any, name: str) -> Any:
    """AdamW's state of all parameters but one."""
    mean, square = ({key: each for key, each in moments.items() if key != name} for moments in (state.mu, state.nu))
    return state._replace(mu=mean, nu=square)


def with_words(state: Any, name: str, mean: jax.Array, square: jax.Array) -> Any:
    """The state with that one's moments."""
    return state._replace(mu={**state.mu, name: mean}, nu={**state.nu, name: square})


def _decay(weight: jax.Array, factors: jax.Array) -> jax.Array:
    for number in range(_FACTORS):
        weight = weight * factors[number]
    return weight


def _admit(own: Table, whole: Table, rows: jax.Array, slots: jax.Array, factors: jax.Array) -> Table:
    weight, *moments = (values.at[rows].get(mode="clip") for values in whole)
    found = (_decay(weight, factors), *moments)
    return tuple(old.at[slots].set(new, mode="drop", unique_indices=True) for old, new in zip(own, found, strict=True))


def _take(weight: jax.Array, slots: jax.Array) -> jax.Array:
    return weight.at[slots].get(mode="clip")


def _write_back(whole: Table, own: Table, rows: jax.Array, factors: jax.Array) -> Table:
    found = (_decay(whole[0], factors), *whole[1:])
    return tuple(old.at[rows].set(new, mode="drop", unique_indices=True) for old, new in zip(found, own, strict=True))


def _power_of_two(count: int) -> int:
    return 1 << max(0, count - 1).bit_length()
