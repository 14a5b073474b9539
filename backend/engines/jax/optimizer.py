"""Owns one optimizer step in Optax with torch's numbers: what decays, at which rate, clipped by the global norm."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax

from backend import registry
from backend.contract.errors import InputError
from backend.contract.spec import TrainingSection, validated
from backend.engines.jax.model import Parameters

State = Any
_CLIPPING_EPSILON = 1e-6  # torch adds it to the norm


class Optimizer:
    """The spec's optimizer. Learning rates come from the loop, a step each; nothing here inherits a default."""

    def __init__(self, training: TrainingSection, undecayed: frozenset[str]) -> None:
        if training.optimizer not in _MAKERS:
            raise InputError(
                f"training.optimizer: the JAX engine has no {training.optimizer!r}; it has {', '.join(sorted(_MAKERS))}",
                "training.optimizer",
            )
        self._training, self._undecayed = training, undecayed
        settings = registry.find("optimizer", training.optimizer, "training.optimizer").Settings
        options = validated(settings, training.optimizer_options, "training.optimizer_options")
        self._coupled, make = _MAKERS[training.optimizer]
        self._inner = make(training, options)

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
            gradients = {name: value + self._decay(name) * parameters[name] for name, value in gradients.items()}
        found: tuple[Any, State] = self._inner.update(gradients, state, parameters)
        updates, state = found
        return (
            {name: self._moved(name, parameters[name], updates[name], learning_rate) for name in parameters},
            state,
            norm,
        )

    def _moved(self, name: str, value: jax.Array, update: jax.Array, learning_rate: jax.Array) -> jax.Array:
        decay = 0.0 if self._coupled else self._decay(name)
        return value * (1.0 - learning_rate * decay) - learning_rate * update

    def _decay(self, name: str) -> float:
        return 0.0 if name in self._undecayed else self._training.weight_decay


def _adam(training: TrainingSection, options: Any) -> optax.GradientTransformation:
    return optax.scale_by_adam(training.adam_beta1, training.adam_beta2, training.adam_epsilon)


def _sgd(training: TrainingSection, options: Any) -> optax.GradientTransformation:
    return optax.trace(options.momentum, options.nesterov) if options.momentum else optax.identity()


def _lion(training: TrainingSection, options: Any) -> optax.GradientTransformation:
    return optax.scale_by_lion(options.beta1, options.beta2)


_MAKERS: dict[str, tuple[bool, Callable[[TrainingSection, Any], optax.GradientTransformation]]] = {
    "adamw": (False, _adam),
    "adam": (True, _adam),
    "sgd": (True, _sgd),
    "lion": (False, _lion),
}
"""Name → whether weight decay is part of the gradient, and what makes the direction of a step."""
