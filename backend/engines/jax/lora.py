"""LoRA layers in JAX (Hu et al. 2021), with DoRA (Liu et al. 2024), under the names in PEFT's files."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import jax
import jax.numpy as jnp
from flax import nnx

from backend.adapters.lora import Settings
from backend.engines.jax.layers import Conv1D, DropoutKeys, Embedding, Linear, compute_dtype, dropout

_NOISE: ContextVar[DropoutKeys | None] = ContextVar("noise", default=None)


@contextmanager
def dropping(noise: DropoutKeys | None) -> Iterator[None]:
    """Adapted layers traced inside apply dropout to their input; without noise (no training) they do not."""
    token = _NOISE.set(noise)
    try:
        yield
    finally:
        _NOISE.reset(token)


def scaling(alpha: float, rank: int, *, rslora: bool) -> float:
    """The factor for the product of the low-rank matrices."""
    return alpha / (rank**0.5 if rslora else rank)


class AdaptedLinear(nnx.Module):
    """A linear layer with two low-rank matrices: x · W + scale · (dropout(x) · A) · B.

    `weight` and `bias` are the layer's. `lora_A.weight` (rank, inputs), `lora_B.weight` (outputs, rank) and, for DoRA,
    `lora_magnitude_vector` (outputs,) have these shapes whatever the layer's are.
    """

    def __init__(self, layer: Linear | Conv1D, settings: Settings) -> None:
        self.weight, self.bias = layer.weight, layer.bias
        self._inputs_first = isinstance(layer, Conv1D)
        sides = layer.weight.shape
        inputs, outputs = sides if self._inputs_first else sides[::-1]
        self.lora_A = Linear(inputs, settings.rank, bias=False)
        self.lora_B = Linear(settings.rank, outputs, bias=False)
        self.lora_magnitude_vector = nnx.Param(jnp.zeros((outputs,))) if settings.dora else None
        self._scale = scaling(settings.alpha, settings.rank, rslora=settings.rslora)
        self._rate = settings.dropout

    def __call__(self, x: jax.Array) -> jax.Array:
        read = dropout(x, self._rate, _NOISE.get())
        own, change = self._base_output(x), self._scale * self.lora_B(self.lora_A(read))  # each (…, outputs)
        found = own + change
        if self.lora_magnitude_vector is not None:
            size = (self.lora_magnitude_vector[...] / self._norm()).astype(own.dtype)  # (outputs,)
            # PEFT drops no values of what the layer itself reads, but of what is scaled in it.
            scaled = own if read is x else self._base_output(read)
            found = own - scaled + size * (scaled + change)
        return found if self.bias is None else found + self.bias[...].astype(found.dtype)

    def _base_output(self, x: jax.Array) -> jax.Array:
        weight = self.weight[...].astype(compute_dtype())
        return x.astype(compute_dtype()) @ (weight if self._inputs_first else weight.T)  # (…, outputs)

    def _norm(self) -> jax.Array:
        """Return the norm of each output's row of the merged matrix, without gradients (section 4.3 of the DoRA paper)."""
        weight = self.weight[...].T if self._inputs_first else self.weight[...]  # (outputs, inputs)
        change = self.lora_B.weight[...] @ self.lora_A.weight[...]  # (outputs, inputs)
        return jax.lax.stop_gradient(jnp.linalg.norm(weight + self._scale * change, axis=1))  # (outputs,)


class AdaptedEmbedding(nnx.Module):
    """An embedding table with two low-rank matrices: a token's row is its own + scale · Aᵀ's row · Bᵀ.

    `weight` is the table's. `lora_embedding_A` (rank, rows), `lora_embedding_B` (width, rank) and, for DoRA,
    `lora_magnitude_vector` (width,). There is no dropout, as in PEFT.
    """

    def __init__(self, layer: Embedding, settings: Settings) -> None:
        self.weight = layer.weight
        rows, width = layer.weight.shape
        self.lora_embedding_A = nnx.Param(jnp.zeros((settings.rank, rows)))
        self.lora_embedding_B = nnx.Param(jnp.zeros((width, settings.rank)))
        self.lora_magnitude_vector = nnx.Param(jnp.zeros((width,))) if settings.dora else None
        self._scale = scaling(settings.alpha, settings.rank, rslora=settings.rslora)

    def __call__(self, ids: jax.Array) -> jax.Array:
        first, second = self.lora_embedding_A[...].T[ids], self.lora_embedding_B[...].T  # (…, rank), (rank, width)
        change = self._scale * (first.astype(compute_dtype()) @ second.astype(compute_dtype()))  # (…, width)
        found = self.weight[...][ids] + change
        if self.lora_magnitude_vector is None:
            return found
        return found * (self.lora_magnitude_vector[...] / self._norm())

    def _norm(self) -> jax.Array:
        """Return the norm of each column of the merged table, without gradients."""
        change = self.lora_embedding_B[...] @ self.lora_embedding_A[...]  # (width, rows)
        return jax.lax.stop_gradient(jnp.linalg.norm(self.weight[...].T + self._scale * change, axis=1))  # (width,)
