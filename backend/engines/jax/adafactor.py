"""Owns Adafactor (Shazeer and Stern 2018) as transformers computes it: second moments kept as rows and columns."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

from backend.engines.jax.model import Parameters

State = dict[str, dict[str, jax.Array]]


class Adafactor:
    """A rule of `backend.engines.jax.optimizer`; `options` are the settings of the optimizer of that name."""

    def __init__(self, options: Any, decays: Mapping[str, float]) -> None:
        self._options, self._decays = options, decays

    def init(self, parameters: Parameters) -> State:
        """Steps taken and moments of every parameter."""
        return {name: self._first(value) for name, value in parameters.items()}

    def _first(self, value: jax.Array) -> dict[str, jax.Array]:
        state = {"step": jnp.int32(0)}
        if value.ndim >= 2:
            state["rows"], state["columns"] = (
                jnp.zeros(value.shape[:-1]),
                jnp.zeros(value.shape[:-2] + value.shape[-1:]),
            )
        else:
            state["squares"] = jnp.zeros(value.shape)
        if self._options.beta1 is not None:
            state["mean"] = jnp.zeros(value.shape)
        return state

    def step(
        self, parameters: Parameters, state: State, gradients: Parameters, rates: Mapping[str, jax.Array]
    ) -> tuple[Parameters, State]:
        """New parameters and state."""
        found = {
            name: self._moved(value, state[name], gradients[name], rates[name], self._decays[name])
            for name, value in parameters.items()
        }
        return {name: value for name, (value, _) in found.items()}, {name: own for name, (_, own) in found.items()}

    def _moved(
        self, value: jax.Array, state: dict[str, jax.Array], gradient: jax.Array, rate: jax.Array, decay: float
    ) -> tuple[jax.Array, dict[str, jax.Array]]:
        options, step = self._options, state["step"] + 1
        kept = 1.0 - step.astype(jnp.float32) ** options.decay_rate
        new = {"step": step}
        squares = jnp.square(gradient) + options.epsilon1
        if "rows" in state:
            new["rows"] = rows = kept * state["rows"] + (1.0 - kept) * squares.mean(-1)
            new["columns"] = columns = kept * state["columns"] + (1.0 - kept) * squares.mean(-2)
            by_row = jax.lax.rsqrt(rows / rows.mean(-1, keepdims=True))
            update = gradient * by_row[..., None] * jax.lax.rsqrt(columns)[..., None, :]
        else:
            new["squares"] = mean = kept * state["squares"] + (1.0 - kept) * squares
            update = gradient * jax.lax.rsqrt(mean)
        rate = self._rate(step, rate) * (
            jnp.maximum(options.epsilon2, _size(value)) if options.scale_parameter else 1.0
        )
        update = rate * update / jnp.maximum(_size(update) / options.clip_threshold, 1.0)
        if options.beta1 is not None:
            new["mean"] = update = options.beta1 * state["mean"] + (1.0 - options.beta1) * update
        return value * (1.0 - decay * rate) - update, new

    def _rate(self, step: jax.Array, rate: jax.Array) -> jax.Array:
        if not self._options.relative_step:
            return rate
        steps = step.astype(jnp.float32)
        return jnp.minimum(1e-6 * steps if self._options.warmup_init else 1e-2, jax.lax.rsqrt(steps))


def _size(values: jax.Array) -> jax.Array:
    """The root mean square."""
    return jnp.sqrt(jnp.square(values).mean())
