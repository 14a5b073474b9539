"""Owns one optimizer step in Optax with torch's numbers: what decays, at which rate, clipped by the global norm."""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import optax

from backend.contract.errors import InputError
from backend.contract.spec import TrainingSection
from backend.engines.jax.model import Parameters

State = Any
_CLIPPING_EPSILON = 1e-6  # torch adds it to the norm


class Optimizer:
    """The spec's optimizer. Learning rates come from the loop, a step each; nothing here inherits a default."""

    def __init__(self, training: TrainingSection, undecayed: frozenset[str], rates: Mapping[str, float]) -> None:
        if training.optimizer not in _MAKERS:
            raise InputError(
                f"training.optimizer: the JAX engine has no {training.optimizer!r}; it has {', '.join(sorted(_MAKERS))}",
                "training.optimizer",
            )
        self._training, self._rates = training, rates
        self._coupled, self._make = _MAKERS[training.optimizer]
        self._decay = {name: 0.0 if name in undecayed else training.weight_decay for name in rates}
        self._inner = self._make(training)

    def init(self, parameters: Parameters) -> State:
        """The state of parameters that have seen no gradient."""
        return self._inner.init(parameters)

    def step(
        self, parameters: Parameters, state: State, gradients: Parameters, learning_rate: jax.Array
    ) -> tuple[Parameters, State, jax.Array]:
        """New parameters and state, and the gradients' norm before clipping."""
        norm = optax.tree.norm(gradients)
        limit = self._training.max_gradient_norm
        if limit is not None:
            scale = 1.0 / jnp.maximum((norm + _CLIPPING_EPSILON) / limit, 1.0)
            gradients = {name: value * scale for name, value in gradients.items()}
        if self._coupled:
            gradients = {name: value + self._decay[name] * parameters[name] for name, value in gradients.items()}
        found: tuple[Any, State] = self._inner.update(gradients, state, parameters)
        updates, state = found
        return (
            {name: self._moved(name, parameters[name], updates[name], learning_rate) for name in parameters},
            state,
            norm,
        )

    def _moved(self, name: str, value: jax.Array, update: jax.Array, learning_rate: jax.Array) -> jax.Array:
        rate = learning_rate * self._rates[name]
        decayed = value if self._coupled or not self._decay[name] else value * (1.0 - rate * self._decay[name])
        return decayed - rate * update


def _adam(training: TrainingSection) -> optax.GradientTransformation:
    return optax.scale_by_adam(training.adam_beta1, training.adam_beta2, training.adam_epsilon)


def _sgd(training: TrainingSection) -> optax.GradientTransformation:
    momentum = float(training.optimizer_options.get("momentum", 0.0))
    nesterov = bool(training.optimizer_options.get("nesterov", False))
    return optax.trace(momentum, nesterov) if momentum else optax.identity()


def _lion(training: TrainingSection) -> optax.GradientTransformation:
    options = training.optimizer_options
    return optax.scale_by_lion(float(options.get("beta1", 0.9)), float(options.get("beta2", 0.99)))


_MAKERS: dict[str, tuple[bool, Callable[[TrainingSection], optax.GradientTransformation]]] = {
    "adamw": (False, _adam),
    "adam": (True, _adam),
    "sgd": (True, _sgd),
    "lion": (False, _lion),
}
"""Name → whether weight decay is part of the gradient, and what makes the direction of a step."""
