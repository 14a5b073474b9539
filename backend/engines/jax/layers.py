"""The layers that the families are built of. Parameters bear Hugging Face's names and shapes, so files need no mapping."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
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


_NUMBERS: ContextVar[Any] = ContextVar("numbers", default=jnp.float32)


@contextmanager
def use_dtype(numbers: Any) -> Iterator[None]:
    """Layers that are traced inside multiply in this number format; sums over layers and norms stay float32."""
    token = _NUMBERS.set(numbers)
    try:
        yield
    finally:
        _NUMBERS.reset(token)


def compute_dtype() -> Any:
    """The number format that layers multiply in."""
    return _NUMBERS.get()


_RECOMPUTES: ContextVar[bool] = ContextVar("recomputes", default=False)


@contextmanager
def recompute_layers(wanted: bool) -> Iterator[None]:
    """Layers that are traced inside are computed once more for the gradients, and nothing in them is kept."""
    token = _RECOMPUTES.set(wanted)
    try:
        yield
    finally:
        _RECOMPUTES.reset(token)


def apply_layer(layer: Callable[..., jax.Array], x: jax.Array, *given: Any) -> jax.Array:
    """`layer(x, *given)`, recomputed for the gradients where that is wanted."""
    return jax.checkpoint(lambda value: layer(value, *given))(x) if _RECOMPUTES.get() else layer(x, *given)


class KeyValueCache:
    """Keys and values of what was read before, and of a source, for every attention in the order of asking.

    There is `room` for tokens; those that come now stand at `at`. `shown` (batch, room) says which are no padding. After
    the pass `kept` is what the next one remembers.
    """

    def __init__(
        self, room: int, at: jax.Array, shown: jax.Array, layers: Sequence[tuple[jax.Array, jax.Array]]
    ) -> None:
        self.room, self.at, self.shown = room, at, shown
        self._layers = layers
        self.kept: list[tuple[jax.Array, jax.Array]] = []

    def extend(self, key: jax.Array, value: jax.Array) -> tuple[jax.Array, jax.Array]:
        """All that is remembered with what came now, (batch, heads, room, head_size) each."""
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
        """Those of what is answered, which are made once."""
        self.kept.append(self._layers[len(self.kept)] if self._layers else make())
        return self.kept[-1]


_MEMORY: ContextVar[KeyValueCache | None] = ContextVar("memory", default=None)


@contextmanager
def use_cache(memory: KeyValueCache) -> Iterator[None]:
    """Decoders that are traced inside see what was read before."""
    token = _MEMORY.set(memory)
    try:
        yield
    finally:
        _MEMORY.reset(token)


def extend_cache(key: jax.Array, value: jax.Array) -> tuple[jax.Array, jax.Array]:
    """What a decoder's attention looks at: these, and where one writes all that came before them."""
    memory = _MEMORY.get()
    return (key, value) if memory is None else memory.extend(key, value)


def cache_source(make: Callable[[], tuple[jax.Array, jax.Array]]) -> tuple[jax.Array, jax.Array]:
    """What an answer's attention sees of its source; where one writes it is made with the first token alone."""
    memory = _MEMORY.get()
    return make() if memory is None else memory.of_source(make)


class DropoutKeys:
    """Where dropout's randomness comes from: a key for every place that asks, in the order of asking."""

    def __init__(self, key: jax.Array) -> None:
        self._key, self._asked = key, 0

    def next(self) -> jax.Array:
        """A key that no other place gets."""
        self._asked += 1
        return jax.random.fold_in(self._key, self._asked)


def dropout(x: jax.Array, rate: float, noise: DropoutKeys | None) -> jax.Array:
    """`x` with a share of its values dropped and the others scaled up; without noise (no training) `x` itself."""
    if noise is None or rate == 0.0:
        return x
    return jnp.where(_dropout_mask(noise.next(), rate, x.shape), x / (1.0 - rate), jnp.zeros((), x.dtype))


def _dropout_mask(key: jax.Array, rate: float, shape: tuple[int, ...]) -> jax.Array:
    """Which values stay, all but `rate` of them, to a 65,536th.

    One drawn word decides over two neighbours: `jax.random.bernoulli` takes eight times as long on a processor, which was a
    third of a step of question answering.
    """
    words = jax.random.bits(key, (*shape[:-1], (shape[-1] + 1) // 2), jnp.uint32)  # (…, (width + 1) // 2)
    halves = jax.lax.bitcast_convert_type(words, jnp.uint16)  # (…, (width + 1) // 2, 2)
    halves = halves.reshape(*shape[:-1], -1)[..., : shape[-1]]  # (…, width)
    return halves >= jnp.uint16(min(round(rate * 2**16), 2**16 - 1))


class Linear(nnx.Module):
    """`weight` (outputs, inputs) and `bias` (outputs,), as torch has them."""

    def __init__(self, inputs: int, outputs: int, *, bias: bool = True) -> None:
        self.weight = nnx.Param(jnp.zeros((outputs, inputs)))
        self.bias = nnx.Param(jnp.zeros((outputs,))) if bias else None

    def __call__(self, x: jax.Array) -> jax.Array:
        numbers = _NUMBERS.get()
        y = x.astype(numbers) @ self.weight[...].astype(numbers).T  # (…, outputs)
        return y if self.bias is None else y + self.bias[...].astype(numbers)


class Conv1D(nnx.Module):
    """GPT-2's linear layer: `weight` (inputs, outputs)."""

    def __init__(self, inputs: int, outputs: int) -> None:
        self.weight = nnx.Param(jnp.zeros((inputs, outputs)))
        self.bias = nnx.Param(jnp.zeros((outputs,)))

    def __call__(self, x: jax.Array) -> jax.Array:
        numbers = _NUMBERS.get()
        return x.astype(numbers) @ self.weight[...].astype(numbers) + self.bias[...].astype(numbers)  # (…, outputs)


class Embedding(nnx.Module):
    """`weight` (rows, width). The row of `padding` learns nothing of being read, as torch has it where it matters."""

    def __init__(self, rows: int, width: int, padding: int | None = None) -> None:
        self.weight = nnx.Param(jnp.zeros((rows, width)))
        self._padding = padding

    def __call__(self, ids: jax.Array) -> jax.Array:
        found = self.weight[...][ids]  # (…, width)
        if self._padding is None:
            return found
        return jnp.where((ids == self._padding)[..., None], jax.lax.stop_gradient(found), found)

    def scores(self, x: jax.Array) -> jax.Array:
        """As an output layer: x · weightᵀ, (…, rows)."""
        numbers = _NUMBERS.get()
        return x.astype(numbers) @ self.weight[...].astype(numbers).T  # (…, rows)


class LayerNorm(nnx.Module):
    """Normalisation to mean 0 and variance 1, float32 whatever comes in."""

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
    """Division by the root mean square, float32 whatever comes in."""

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
) -> jax.Array:
    """Attention of (batch, heads, length, head_size); `bias` is added to the scores, `NEVER` where nothing may be seen.

    Fewer heads of keys and values than of queries are shared by groups of queries. Scores and their softmax are float32.
    `keys` is the number of places that are looked at.
    """
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


def causal_bias(arrays: dict[str, jax.Array], window: int | None = None) -> jax.Array:
    """What a decoder's tokens may see, as (batch, 1, length, keys) to add to scores.

    Themselves and what stands before them (within `window` tokens, where there is one), no padding, and of packed rows
    nothing of another `segment`.
    """
    here, there, shown = attention_positions(arrays["attention_mask"])  # (length,), (keys,), (batch, keys)
    seen = there[None, :] <= here[:, None]  # (length, keys)
    if window is not None:
        seen &= there[None, :] > here[:, None] - window
    seen = seen[None] & (shown[:, None, :] > 0)  # (batch, length, keys)
    if "segment" in arrays:
        seen &= arrays["segment"][:, None, :] == arrays["segment"][:, :, None]
    return jnp.where(seen[:, None], 0.0, NEVER)  # (batch, 1, length, keys)


def causal_answer_bias(given: jax.Array) -> jax.Array:
    """The same for an answer, whose padding stands behind what counts: (1, 1, length, keys)."""
    here, there, _ = attention_positions(given)  # (length,), (keys,), (batch, keys)
    seen = there[None, :] <= here[:, None]  # (length, keys)
    return jnp.where(seen, 0.0, NEVER)[None, None]  # (1, 1, length, keys)


def attention_positions(attention_mask: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Where the tokens stand that look, and those that are looked at; and which of these are no padding."""
    memory, count = _MEMORY.get(), attention_mask.shape[1]
    if memory is None:
        return jnp.arange(count), jnp.arange(count), attention_mask
    return memory.at + jnp.arange(count), jnp.arange(memory.room), memory.shown


def positions_of(arrays: dict[str, jax.Array]) -> jax.Array:
    """(batch, length): a packed row's own count, else that of the tokens that are no padding, from 0."""
    if "position" in arrays:
        return arrays["position"]
    return jnp.maximum(jnp.cumsum(arrays["attention_mask"], axis=1) - 1, 0)


ACTIVATIONS: dict[str, Callable[[jax.Array], jax.Array]] = {
    "gelu": lambda x: jax.nn.gelu(x, approximate=False),
    "gelu_new": lambda x: jax.nn.gelu(x, approximate=True),
    "gelu_pytorch_tanh": lambda x: jax.nn.gelu(x, approximate=True),
    "gelu_fast": lambda x: jax.nn.gelu(x, approximate=True),
    "relu": jax.nn.relu,
    "silu": jax.nn.silu,
    "swish": jax.nn.silu,
    "tanh": jnp.tanh,
}
"""Under the names that configurations use."""


def activation(name: str) -> Callable[[jax.Array], jax.Array]:
    """Raises Unknown for one that is not here: nothing similar is taken instead."""
    if name not in ACTIVATIONS:
        raise UnsupportedModelError("does not support the activation {name} of this model", name=repr(name))
    return ACTIVATIONS[name]
