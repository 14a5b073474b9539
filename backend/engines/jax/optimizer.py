"""One optimizer step with torch's numbers: weight decay, learning rates, clipping by the global norm."""

from collections.abc import Mapping
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
import optax

from backend import registry
from backend.contract.errors import InputError
from backend.contract.spec import TrainingSection, validate
from backend.engines.jax.model import Parameters

State = Any

AdafactorState = dict[str, dict[str, jax.Array]]
_CLIPPING_EPSILON = 1e-6  # torch adds it to the norm


class UpdateRule(Protocol):
    """How gradients update parameters. `rates` are this step's learning rates, one per parameter."""

    def init(self, parameters: Parameters) -> State: ...

    def step(
        self, parameters: Parameters, state: State, gradients: Parameters, rates: Mapping[str, jax.Array]
    ) -> tuple[Parameters, State]: ...


class Optimizer:
    """The spec's optimizer. The loop sets the learning rate of each step; no defaults are inherited.

    `undecayed` are the names without weight decay, `rates` the learning rate multiplier of each name.
    """

    def __init__(self, training: TrainingSection, undecayed: frozenset[str], rates: Mapping[str, float]) -> None:
        self._limit, self._rates = training.max_gradient_norm, rates
        kind = registry.find("optimizer", training.optimizer, "training.optimizer")
        options = validate(kind.Settings, training.optimizer_options, "training.optimizer_options")
        self._decays = {name: 0.0 if name in undecayed else training.weight_decay for name in rates}
        self._rule = _rule(training, options, self._decays)

    def init(self, parameters: Parameters) -> State:
        """The initial state of the parameters."""
        return self._rule.init(parameters)

    def clip(self, gradients: Parameters) -> tuple[Parameters, jax.Array]:
        """The clipped gradients, and their norm before."""
        norm = optax.tree.norm(gradients)
        if self._limit is not None:
            scale = 1.0 / jnp.maximum((norm + _CLIPPING_EPSILON) / self._limit, 1.0)
            gradients = {name: value * scale for name, value in gradients.items()}
        return gradients, norm

    def decay_factor(self, name: str, learning_rate: np.float32) -> np.float32:
        """What decoupled weight decay multiplies a parameter by, in float32 as in the step."""
        rate = learning_rate * np.float32(self._rates[name])
        return np.float32(1.0) - rate * np.float32(self._decays[name])

    def step(
        self, parameters: Parameters, state: State, gradients: Parameters, learning_rate: jax.Array
    ) -> tuple[Parameters, State]:
        """New parameters and state, from clipped gradients."""
        rates = {name: learning_rate * self._rates[name] for name in parameters}
        return self._rule.step(parameters, state, gradients, rates)


def _rule(training: TrainingSection, options: Any, decays: Mapping[str, float]) -> UpdateRule:
    match training.optimizer:
        case "adamw" | "adam" as name:
            direction = optax.scale_by_adam(training.adam_beta1, training.adam_beta2, training.adam_epsilon)
            return _OptaxRule(direction, decays, coupled=name == "adam")
        case "sgd":
            direction = optax.trace(options.momentum, options.nesterov) if options.momentum else optax.identity()
            return _OptaxRule(direction, decays, coupled=True)
        case "lion":
            return _OptaxRule(optax.scale_by_lion(options.beta1, options.beta2), decays, coupled=False)
        case "adafactor":
            return Adafactor(options, decays)
    raise InputError(
        "training.optimizer: the JAX engine does not support {optimizer}; choose adamw, adam, "
        "adafactor, sgd or lion, or use PyTorch",
        "training.optimizer",
        optimizer=repr(training.optimizer),
    )


class _OptaxRule:
    """An Optax update; weight decay is part of the gradient (`coupled`) or separate from it."""

    def __init__(self, direction: optax.GradientTransformation, decays: Mapping[str, float], *, coupled: bool) -> None:
        self._direction, self._decays, self._coupled = direction, decays, coupled

    def init(self, parameters: Parameters) -> State:
        return self._direction.init(parameters)

    def step(
        self, parameters: Parameters, state: State, gradients: Parameters, rates: Mapping[str, jax.Array]
    ) -> tuple[Parameters, State]:
        if self._coupled:
            gradients = {name: value + self._decays[name] * parameters[name] for name, value in gradients.items()}
        found: tuple[Any, State] = self._direction.update(gradients, state, parameters)
        updates, state = found
        return {
            name: self._update_parameter(name, value, updates[name], rates[name]) for name, value in parameters.items()
        }, state

    def _update_parameter(self, name: str, value: jax.Array, update: jax.Array, rate: jax.Array) -> jax.Array:
        decay = 0.0 if self._coupled else self._decays[name]
        return value * (1.0 - rate * decay) - rate * update


class Adafactor:
    """Adafactor as transformers computes it (Shazeer and Stern 2018): second moments are stored as rows and columns."""

    def __init__(self, options: Any, decays: Mapping[str, float]) -> None:
        self._options, self._decays = options, decays

    def init(self, parameters: Parameters) -> AdafactorState:
        """The step count and the moments of every parameter."""
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
        self, parameters: Parameters, state: AdafactorState, gradients: Parameters, rates: Mapping[str, jax.Array]
    ) -> tuple[Parameters, AdafactorState]:
        """New parameters and state."""
        found = {
            name: self._update_parameter(value, state[name], gradients[name], rates[name], self._decays[name])
            for name, value in parameters.items()
        }
        return {name: value for name, (value, _) in found.items()}, {name: own for name, (_, own) in found.items()}

    def _update_parameter(
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
