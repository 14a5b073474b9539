"""Places parameters, optimizer state and the rows of a batch on the devices of a run."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jax.tree_util import DictKey, tree_map_with_path

from backend.engines.engine import Batch, LoadRequest
from backend.engines.jax import Settings, sharding
from backend.engines.jax.sharding import MATRICES, ROWS, Grid, Rules

_PLATFORMS = {"cuda": "gpu"}
"""JAX's words for what a spec calls otherwise."""


class Layout:
    """A grid of devices. XLA derives a step's communication from how values are placed; the results stay the same."""

    def __init__(self, devices: Sequence[Any], grid: Grid, rules: Rules) -> None:
        # jax.make_mesh would type every axis as explicit, and each line of the models had to say how it divides.
        self._mesh = Mesh(np.array(devices, dtype=object).reshape(grid.groups, grid.members), (ROWS, MATRICES))
        self._devices, self._grid, self._rules = devices, grid, rules
        self._whole = NamedSharding(self._mesh, PartitionSpec())
        self._is_alone = jax.process_count() == 1
        self.jit: Callable[..., Any] = jax.jit if self._is_alone else partial(jax.jit, out_shardings=self._whole)
        """`jax.jit` for what is read afterwards: of several hosts each can read only what lies whole on its devices."""

    @property
    def groups(self) -> int:
        """The number of devices, or device groups, that share a batch: its rows must be a multiple of this."""
        return self._grid.groups

    def place(self, values: Any) -> Any:
        """Place a tree of arrays on the devices; values under a parameter's name are placed like the parameter."""
        if self._is_alone:
            return jax.device_put(values, self._shardings(values))
        return jax.tree.map(_place_from_host, values, self._shardings(values))

    def init_sharded(self, begin: Callable[[Any], Any], trained: Mapping[str, jax.Array]) -> Any:
        """The result of `begin` on the parameters, such as an optimizer's state, placed like them."""
        if self._is_alone:
            return self.place(begin(trained))
        where = self._shardings(jax.eval_shape(begin, trained))
        return jax.jit(begin, out_shardings=where)(trained)

    def fetch(self, values: Mapping[str, jax.Array]) -> dict[str, np.ndarray]:
        """Whole arrays; fetched one after another, so that no device holds more than one of them besides its share."""
        return {name: np.asarray(value if self._is_alone else self._gather(value)) for name, value in values.items()}

    def _gather(self, value: jax.Array) -> jax.Array:
        return value if value.is_fully_replicated else jax.jit(_itself, out_shardings=self._whole)(value)

    def step(self, compute: Callable[..., Any], trained: Mapping[str, jax.Array], state: Any) -> Callable[..., Any]:
        """`compute(trained, state, …) → trained, state, loss, norm, …`, jitted; donates both and keeps their placement."""
        where = (self._shardings(trained), self._shardings(state), self._whole, self._whole, self._whole)
        return jax.jit(compute, donate_argnums=(0, 1), out_shardings=where)

    def shard_batch(self, arrays: Batch, dimension: int) -> Mapping[str, Any]:
        """A batch whose rows, along `dimension`, are divided among the groups."""
        if self.groups == 1:
            return arrays  # jit puts it on every device
        rows = NamedSharding(self._mesh, PartitionSpec(*[None] * dimension, ROWS))
        put = jax.device_put if self._is_alone else _place_from_host
        return {
            name: put(array, rows if array.shape[dimension] % self.groups == 0 else self._whole)
            for name, array in arrays.items()
        }

    @property
    def is_alone(self) -> bool:
        """Whether one device computes everything."""
        return len(self._devices) == 1

    @property
    def is_on_cpu(self) -> bool:
        """Whether the devices are processors of this computer."""
        return self._devices[0].platform == "cpu"

    def peak_memory_mb(self) -> float | None:
        """Peak memory of the fullest device; None on a CPU."""
        own = [device for device in self._devices if device.process_index == jax.process_index()]
        statistics = [device.memory_stats() for device in own]
        known = [one["peak_bytes_in_use"] / 1e6 for one in statistics if one]
        return max(known, default=None)

    def _shardings(self, values: Any) -> Any:
        return tree_map_with_path(lambda path, value: self._sharding(path, np.shape(value)), values)

    def _sharding(self, path: tuple[Any, ...], shape: tuple[int, ...]) -> NamedSharding:
        if not path or not isinstance(path[-1], DictKey):
            return self._whole  # a count of steps
        return NamedSharding(self._mesh, PartitionSpec(*sharding.axes(path[-1].key, shape, self._grid, self._rules)))


def layout_of(loading: LoadRequest, model_type: str, rules: Rules) -> Layout:
    """The layout of the chosen devices. Raises InputError if they cannot be divided as the spec asks."""
    settings = loading.hardware if isinstance(loading.hardware, Settings) else Settings()
    devices = _devices(loading.devices)
    grid = sharding.grid(len(devices), settings.tensor_parallel, settings.parallelism)
    sharding.check_rules(model_type, grid.members, rules)
    return Layout(devices, grid, rules)


def _devices(names: Sequence[str]) -> list[Any]:
    """The devices with these names on every host, host after host, so that groups stay within a host if possible."""
    found = []
    for host in range(jax.process_count()):
        for name in names:
            kind, _, number = name.partition(":")
            on_host = [one for one in jax.devices(_PLATFORMS.get(kind, kind)) if one.process_index == host]
            found.append(on_host[int(number or 0)])
    return found


def _place_from_host(value: Any, where: NamedSharding) -> jax.Array:
    """An array that each host has in full and places only in part, on its own devices."""
    whole = np.asarray(value)
    return jax.make_array_from_callback(whole.shape, where, lambda part: whole[part])


def _itself(value: jax.Array) -> jax.Array:
    return value
