"""Owns how layers of transformers are computed once more for the gradients, by JAX instead of torch."""

from collections.abc import Callable
from typing import Any

from torch import nn

from backend.engines.jax.bridge.environment import environment
from backend.engines.jax.layers import through


def recompute_layers(module: nn.Module) -> None:
    """Lets every layer that can be recomputed go through JAX, which decides (`layers.recomputing`) whether it is."""
    for each in module.modules():
        if hasattr(each, "gradient_checkpointing"):
            each.gradient_checkpointing = True  # type: ignore[assignment]
            each._gradient_checkpointing_func = _through_jax  # type: ignore[assignment]


def _through_jax(layer: Callable[..., Any], *given: Any) -> Any:
    """`layer(*given)` as transformers asks for it; what it closes over is kept as the first given is."""
    env = environment()
    key = env.get_and_rotate_prng_key()  # taken outside: what is recomputed must draw the same again

    def computed(first: Any) -> Any:
        with env.override_property(prng=key):
            return env.t2j_iso(env.v2t_iso(layer(*env.j2t_iso(first), *given[1:])))

    return env.j2t_iso(through(computed, env.t2j_iso(given[:1])))
