"""The layers of all families. Parameters have Hugging Face's names and shapes, so files need no mapping."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from backend.contract.errors import InputError
from backend.contract.messages import message

NEVER = -1e30
"""What is added to a score that must not count; a row of such scores stays finite."""

FIELD = "hardware.engine"


class UnsupportedModelError(InputError):
    """`what`, a template, follows "the JAX engine", as in "does not know the architecture 'electra'"."""

    def __init__(self, what: str, /, **values: Any) -> None:
        what = message(what, **values)
        super().__init__(message("{field}: the JAX engine {what}; choose PyTorch", field=FIELD, what=what), FIELD)


@dataclass(frozen=True)
class _Tracing:
    dtype: Any = jnp.float32
    on_one_cpu: bool = False
    recomputes: bool = False


_DEFAULT = _Tracing()
_TRACING: ContextVar[_Tracing] = ContextVar("tracing", default=_DEFAULT)


@contextmanager
def trace(dtype: Any, *, on_one_cpu: bool = False, recomputes: bool = False) -> Iterator[None]:
    """How layers inside are traced.

    They multiply in `dtype`; sums over layers and norms stay float32. On one CPU device, some things are faster in
    another way. Layers that are recomputed for the gradients (gradient checkpointing) store no activations.
    """
    token = _TRACING.set(_Tracing(dtype, on_one_cpu, recomputes))
    try:
        yield
    finally:
        _TRACING.reset(token)


def compute_dtype() -> Any:
    """The number format that layers multiply in."""
    return _TRACING.get().dtype


def apply_layer(layer: Callable[..., jax.Array], x: jax.Array, *given: Any) -> jax.Array:
    """`layer(x, *given)`, recomputed for the gradients if that is enabled."""
    return jax.checkpoint(lambda value: layer(value, *given))(x) if _TRACING.get().recomputes else layer(x, *given)


class KeyValueCache:
    """Keys and values of earlier tokens, and of a source, for every attention in call order.

    There is `room` for tokens; the new ones are at `at`. `shown` (batch, room) says which are not padding. After
    the pass, `kept` is the cache for the next one.
    """

    def __init__(
        self, room: int, at: jax.Array, shown: jax.Array, layers: Sequence[tuple[jax.Array, jax.Array]]
    ) -> None:
        self.room, self.at, self.shown = room, at, shown
        self._layers = layers
        self.kept: list[tuple[jax.Array, jax.Array]] = []

    def extend(self, key: jax.Array, value: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The cache with the new keys and values, (batch, heads, room, head_size) each."""
        number, after = len(self.kept), ((0, 0), (0, 0), (0, self.room - key.shape[2]), (0, 0))
        if not self._layers:
            found = jnp.pad(key, after), jnp.pad(value, after)  # each (batch, heads, room, head_size)
        else:
            before = self._layers[number]
            found = tuple(
                jax.lax.dynamic_update_slice_in_dim(old, new.astype(old.dtype), self.at, axis=2)
                for old, new in zip(before, (key, value), strict=True)
            )
        self.kept.append((found[0], found[1]))
        return self.kept[-1]

    def of_source(self, make: Callable[[], tuple[jax.Array, jax.Array]]) -> tuple[jax.Array, jax.Array]:
        """The keys and values of the source, computed once."""
        self.kept.append(self._layers[len(self.kept)] if self._layers else make())
        return self.kept[-1]


_MEMORY: ContextVar[KeyValueCache | None] = ContextVar("memory", default=None)


@contextmanager
def use_cache(memory: KeyValueCache) -> Iterator[None]:
    """Decoders traced inside see the tokens read earlier."""
    token = _MEMORY.set(memory)
    try:
        yield
    finally:
        _MEMORY.reset(token)


def extend_cache(key: jax.Array, value: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The keys and values for a decoder's attention: these and, during generation, all earlier ones."""
    memory = _MEMORY.get()
    return (key, value) if memory is None else memory.extend(key, value)


def cache_source(make: Callable[[], tuple[jax.Array, jax.Array]]) -> tuple[jax.Array, jax.Array]:
    """The source's keys and values for an answer's attention; in generation computed only with the first token."""
    memory = _MEMORY.get()
    return make() if memory is None else memory.of_source(make)


class DropoutKeys:
    """The source of dropout's randomness: one key per use, in call order."""

    def __init__(self, key: jax.Array) -> None:
        self._key, self._asked = key, 0

    def next(self) -> jax.Array:
        """A key that is used nowhere else."""
        self._asked += 1
        return jax.random.fold_in(self._key, self._asked)


def dropout(x: jax.Array, rate: float, noise: DropoutKeys | None) -> jax.Array:
    """`x` with a share of its values dropped and the others scaled up; without noise (no training) `x` itself."""
    if noise is None or rate == 0.0:
        return x
    return jnp.where(_dropout_mask(noise.next(), rate, x.shape), x / (1.0 - rate), jnp.zeros((), x.dtype))


def _dropout_mask(key: jax.Array, rate: float, shape: tuple[int, ...]) -> jax.Array:
    """A mask of the values to keep, all but `rate` of them, to a 65,536th.

    One random word covers two neighbours: `jax.random.bernoulli` takes eight times as long on a CPU, which was a
    third of a step of question answering.
    """
    words = jax.random.bits(key, (*shape[:-1], (shape[-1] + 1) // 2), jnp.uint32)  # (…, (width + 1) // 2)
    halves = jax.lax.bitcast_convert_type(words, jnp.uint16)  # (…, (width + 1) // 2, 2)
    halves = halves.reshape(*shape[:-1], -1)[..., : shape[-1]]  # (…, width)
    return halves >= jnp.uint16(min(round(rate * 2**16), 2**16 - 1))


def multiply(x: jax.Array, weight: jax.Array) -> jax.Array:
    """(…, inputs) · (inputs, outputs) → (…, outputs), in the dtype that layers multiply in."""
    tracing = _TRACING.get()
    matmul = _matmul if tracing.on_one_cpu and weight.size >= _LARGE else jnp.matmul
    return matmul(x.astype(tracing.dtype), weight.astype(tracing.dtype))


_LARGE = 2**17
"""Weights above which transposing takes less time than it saves."""


@jax.custom_vjp
def _matmul(x: jax.Array, weight: jax.Array) -> jax.Array:
    return x @ weight


def _matmul_forward(x: jax.Array, weight: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    return x @ weight, (x, weight)


def _matmul_backward(operands: tuple[jax.Array, jax.Array], of_result: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Gradients of `x` and `weight`.

    XLA's products over the first dimension of both operands are slow on a CPU, half as fast for some shapes, so
    the narrower operand is transposed in memory first.
    """
    x, weight = operands
    rows = x.reshape(-1, x.shape[-1])  # (tokens, inputs)
    columns = of_result.reshape(-1, of_result.shape[-1])  # (tokens, outputs)
    if rows.shape[1] <= columns.shape[1]:
        of_weight = _transposed_copy(rows) @ columns  # (inputs, outputs)
    else:
        of_weight = (_transposed_copy(columns) @ rows).T  # (inputs, outputs)
    return of_result @ weight.T, of_weight


def _transposed_copy(x: jax.Array) -> jax.Array:
    """A transposed copy: the barrier keeps XLA from making it part of a product."""
    return jax.lax.optimization_barrier(x.T.reshape(-1)).reshape(x.shape[::-1])


_matmul.defvjp(_matmul_forward, _matmul_backward)


class Linear(nnx.Module):
    """`weight` (outputs, inputs) and `bias` (outputs,), as in torch."""

    def __init__(self, inputs: int, outputs: int, *, bias: bool = True) -> None:
        self.weight = nnx.Param(jnp.zeros((outputs, inputs)))
        self.bias = nnx.Param(jnp.zeros((outputs,))) if bias else None

    def __call__(self, x: jax.Array) -> jax.Array:
        y = multiply(x, self.weight[...].T)  # (…, outputs)
        return y if self.bias is None else y + self.bias[...].astype(y.dtype)


class Conv1D(nnx.Module):
    """GPT-2's linear layer: `weight` (inputs, outputs)."""

    def __init__(self, inputs: int, outputs: int) -> None:
        self.weight = nnx.Param(jnp.zeros((inputs, outputs)))
        self.bias = nnx.Param(jnp.zeros((outputs,)))

    def __call__(self, x: jax.Array) -> jax.Array:
        y = multiply(x, self.weight[...])  # (…, outputs)
        return y + self.bias[...].astype(y.dtype)


class Embedding(nnx.Module):
    """`weight` (rows, width). The `padding` row gets no gradient from lookups, as in torch."""

    def __init__(self, rows: int, width: int, padding: int | None = None) -> None:
        self.weight = nnx.Param(jnp.zeros((rows, width)))
        self._padding = padding

    def __call__(self, ids: jax.Array) -> jax.Array:
        found = self.weight[...][ids]  # (…, width)
        if self._padding is None:
            return found
        return jnp.where((ids == self._padding)[..., None], jax.lax.stop_gradient(found), found)

    def scores(self, x: jax.Array) -> jax.Array:
        """The product with the table as an output layer: x · weightᵀ, (…, rows)."""
        return multiply(x, self.weight[...].T)  # (…, rows)


class LayerNorm(nnx.Module):
    """Normalisation to mean 0 and variance 1, in float32 whatever the input."""

    def __init__(self, width: int, epsilon: float) -> None:
        self.weight = nnx.Param(jnp.ones((width,)))
        self.bias = nnx.Param(jnp.zeros((width,)))
        self._epsilon = epsilon

    def __call__(self, x: jax.Array) -> jax.Array:
        wide = x.astype(jnp.float32)
        centred = wide - wide.mean(-1, keepdims=True)
        y = centred * jax.lax.rsqrt(jnp.square(centred).mean(-1, keepdims=True) + self._epsilon)
        return y * self.weight[...] + self.bias[...]


class RMSNorm(nnx.Module):
    """Division by the root mean square, in float32 whatever the input."""

    def __init__(self, width: int, epsilon: float) -> None:
        self.weight = nnx.Param(jnp.ones((width,)))
        self._epsilon = epsilon

    def __call__(self, x: jax.Array) -> jax.Array:
        wide = x.astype(jnp.float32)
        return wide * jax.lax.rsqrt(jnp.square(wide).mean(-1, keepdims=True) + self._epsilon) * self.weight[...]


def split_heads(x: jax.Array, heads: int) -> jax.Array:
    """(batch, length, heads · head_size) → (batch, heads, length, head_size)."""
    batch, length, width = x.shape
    x = x.reshape(batch, length, heads, width // heads)  # (batch, length, heads, head_size)
    return x.transpose(0, 2, 1, 3)  # (batch, heads, length, head_size)


def join_heads(x: jax.Array) -> jax.Array:
    """(batch, heads, length, head_size) → (batch, length, heads · head_size)."""
    batch, heads, length, head_size = x.shape
    x = x.transpose(0, 2, 1, 3)  # (batch, length, heads, head_size)
    return x.reshape(batch, length, heads * head_size)  # (batch, length, heads · head_size)


def attend(
    query: jax.Array,
    key: jax.Array,
    value: jax.Array,
    bias: jax.Array,
    *,
    scale: float | None = None,
    rate: float = 0.0,
    noise: DropoutKeys | None = None,
    is_causal: bool = False,
) -> jax.Array:
    """Attention of (batch, heads, length, head_size); `bias` is added to the scores, `NEVER` at masked positions.

    With fewer key and value heads than query heads, groups of queries share them. Scores and their softmax are float32.
    `is_causal` says that `bias` hides all later tokens: on a CPU, most of their scores are not computed then.
    """
    length = query.shape[2]
    are_all = key.shape[2] == length  # else the keys are a cache
    if not (is_causal and are_all and length >= _LEAST_IN_PARTS and _TRACING.get().on_one_cpu):
        return _attend(query, key, value, bias, scale, rate, noise)
    size = -(-length // _CAUSAL_PARTS)
    parts = [
        _attend(
            query[:, :, start:end], key[:, :, :end], value[:, :, :end], bias[:, :, start:end, :end], scale, rate, noise
        )
        for start, end in ((start, min(start + size, length)) for start in range(0, length, size))
    ]  # each (batch, heads, size, head_size)
    return jnp.concatenate(parts, axis=2)  # (batch, heads, length, head_size)


_CAUSAL_PARTS = 4
"""Parts of the queries, each of which needs only keys up to its end: ten of sixteen squares of scores."""
_LEAST_IN_PARTS = 128
"""Tokens below which one part is not slower."""


def _attend(
    query: jax.Array, key: jax.Array, value: jax.Array, bias: jax.Array,
    scale: float | None, rate: float, noise: DropoutKeys | None,
) -> jax.Array:  # fmt: skip
    """`keys` is the number of positions attended to."""
    batch, heads, length, head_size = query.shape
    kv_heads = key.shape[1]
    groups = heads // kv_heads
    query = query.reshape(batch, kv_heads, groups, length, head_size)  # (batch, kv_heads, groups, length, head_size)
    scores = jnp.einsum(
        "bkgqd,bksd->bkgqs", query, key, preferred_element_type=jnp.float32
    )  # (batch, kv_heads, groups, length, keys)
    scores = scores.reshape(batch, heads, length, -1)  # (batch, heads, length, keys)
    scores = scores * (1 / math.sqrt(head_size) if scale is None else scale)
    weights = jax.nn.softmax(scores + bias, axis=-1).astype(value.dtype)
    weights = dropout(weights, rate, noise)
    weights = weights.reshape(batch, kv_heads, groups, length, -1)  # (batch, kv_heads, groups, length, keys)
    found = jnp.einsum("bkgqs,bksd->bkgqd", weights, value)  # (batch, kv_heads, groups, length, head_size)
    return found.reshape(batch, heads, length, -1)  # (batch, heads, length, head_size)


def padding_bias(attention_mask: jax.Array) -> jax.Array:
    """(batch, length) of ones and zeros → (batch, 1, 1, length) to add to scores."""
    return jnp.where(attention_mask[:, None, None, :] > 0, 0.0, NEVER)  # (batch, 1, 1, length)


def row_bias(arrays: dict[str, jax.Array]) -> jax.Array:
    """What keeps tokens from padding or, in packed rows, from other segments: (batch, 1, 1 or length, length)."""
    if "segment" not in arrays:
        return padding_bias(arrays["attention_mask"])
    segment = arrays["segment"]  # (batch, length)
    return jnp.where(segment[:, None, :, None] == segment[:, None, None, :], 0.0, NEVER)  # (batch, 1, length, length)


def causal_bias(arrays: dict[str, jax.Array], window: int | None = None) -> jax.Array:
    """The mask of a decoder's tokens, as (batch, 1, length, keys) to add to scores.

    Each token sees itself and earlier tokens (within `window` tokens, if given), but no padding and, in packed rows,
    no other `segment`.
    """
    queries, keys, is_token = attention_positions(arrays["attention_mask"])  # (length,), (keys,), (batch, keys)
    visible = keys[None, :] <= queries[:, None]  # (length, keys)
    if window is not None:
        visible &= keys[None, :] > queries[:, None] - window
    visible = visible[None] & (is_token[:, None, :] > 0)  # (batch, length, keys)
    if "segment" in arrays:
        visible &= arrays["segment"][:, None, :] == arrays["segment"][:, :, None]
    return jnp.where(visible[:, None], 0.0, NEVER)  # (batch, 1, length, keys)


def causal_answer_bias(given: jax.Array) -> jax.Array:
    """The same for an answer, which is padded on the right: (1, 1, length, keys)."""
    queries, keys, _ = attention_positions(given)  # (length,), (keys,), (batch, keys)
    visible = keys[None, :] <= queries[:, None]  # (length, keys)
    return jnp.where(visible, 0.0, NEVER)[None, None]  # (1, 1, length, keys)


def attention_positions(attention_mask: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The positions of the queries, those of the keys, and which keys are not padding."""
    memory, count = _MEMORY.get(), attention_mask.shape[1]
    if memory is None:
        return jnp.arange(count), jnp.arange(count), attention_mask
    return memory.at + jnp.arange(count), jnp.arange(memory.room), memory.shown


def positions_of(arrays: dict[str, jax.Array]) -> jax.Array:
    """(batch, length): a packed row's own positions, else counted over non-padding tokens, from 0."""
    if "position" in arrays:
        return arrays["position"]
    return jnp.maximum(jnp.cumsum(arrays["attention_mask"], axis=1) - 1, 0)


def word_ids(arrays: dict[str, jax.Array]) -> jax.Array:
    """What to look up in the table of tokens: ids, or places among those of its rows that a step trains."""
    return arrays.get("word_places", arrays["input_ids"])


def _approximate_gelu(x: jax.Array) -> jax.Array:
    """GELU by its usual approximation x · ½ (1 + tanh u), written as x · sigmoid(2 u), which XLA computes faster."""
    return x * jax.nn.sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x))


ACTIVATIONS: dict[str, Callable[[jax.Array], jax.Array]] = {
    "gelu": lambda x: jax.nn.gelu(x, approximate=False),
    "gelu_new": _approximate_gelu,
    "gelu_pytorch_tanh": _approximate_gelu,
    "gelu_fast": _approximate_gelu,
    "relu": jax.nn.relu,
    "silu": jax.nn.silu,
    "swish": jax.nn.silu,
    "tanh": jnp.tanh,
}
"""Under the names that configurations use."""


def activation(name: str) -> Callable[[jax.Array], jax.Array]:
    """Raises UnsupportedModelError for an unknown activation: no similar one is substituted."""
    if name not in ACTIVATIONS:
        raise UnsupportedModelError("does not support the activation {name} of this model", name=repr(name))
    return ACTIVATIONS[name]
