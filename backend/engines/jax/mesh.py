"""Owns where parameters, optimizer state and the rows of a batch lie on the devices of a run."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jax.tree_util import DictKey, tree_map_with_path

from backend.engines.engine import Batch, Loading
from backend.engines.jax import Settings, sharding
from backend.engines.jax.sharding import MATRICES, ROWS, Grid, Rules

_PLATFORMS = {"cuda": "gpu"}
"""JAX's words for what a spec calls otherwise."""


class Layout:
    """A grid of devices. XLA derives from where values lie which messages a step needs; the numbers stay the same."""

    def __init__(self, devices: Sequence[Any], grid: Grid, rules: Rules) -> None:
        # jax.make_mesh would type every axis as explicit, and each line of the models had to say how it divides.
        self._mesh = Mesh(np.array(devices, dtype=object).reshape(grid.groups, grid.members), (ROWS, MATRICES))
        self._devices, self._grid, self._rules = devices, grid, rules
        self._whole = NamedSharding(self._mesh, PartitionSpec())

    @property
    def groups(self) -> int:
        """Devices, or groups of them, that share the rows of a batch: their number must be a multiple of it."""
        return self._grid.groups

    def placed(self, values: Any) -> Any:
        """A tree of arrays on the devices; what lies under a parameter's name lies as the parameter does."""
        return jax.device_put(values, self._shardings(values))

    def step(self, compute: Callable[..., Any], trained: Mapping[str, jax.Array], state: Any) -> Callable[..., Any]:
        """`compute(trained, state, …) → trained, state, loss, norm`, jitted: both are given away and stay where they lie."""
        where = (self._shardings(trained), self._shardings(state), self._whole, self._whole)
        return jax.jit(compute, donate_argnums=(0, 1), out_shardings=where)

    def divided(self, arrays: Batch, dimension: int) -> Mapping[str, Any]:
        """A batch whose rows, counted along `dimension`, are shared by the groups."""
        if self.groups == 1:
            return arrays  # jit puts it on every device
        rows = NamedSharding(self._mesh, PartitionSpec(*[None] * dimension, ROWS))
        return {
            name: jax.device_put(array, rows if array.shape[dimension] % self.groups == 0 else self._whole)
            for name, array in arrays.items()
        }

    def peak_memory_mb(self) -> float | None:
        """Of the fullest device; a processor does not say."""
        statistics = [device.memory_stats() for device in self._devices]
        known = [one["peak_bytes_in_use"] / 1e6 for one in statistics if one]
        return max(known, default=None)

    def _shardings(self, values: Any) -> Any:
        return tree_map_with_path(lambda path, value: self._sharding(path, np.shape(value)), values)

    def _sharding(self, path: tuple[Any, ...], shape: tuple[int, ...]) -> NamedSharding:
        if not path or not isinstance(path[-1], DictKey):
            return self._whole  # a count of steps
        return NamedSharding(self._mesh, PartitionSpec(*sharding.axes(path[-1].key, shape, self._grid, self._rules)))


def layout_of(loading: Loading, model_type: str, rules: Rules) -> Layout:
    """On the chosen devices, as the spec wishes. Raises InputError where they cannot be divided so."""
    settings = loading.hardware if isinstance(loading.hardware, Settings) else Settings()
    grid = sharding.grid(len(loading.devices), settings.tensor_parallel, settings.parallelism)
    sharding.check_rules(model_type, grid.members, rules)
    return Layout([_device(name) for name in loading.devices], grid, rules)


def _device(name: str) -> Any:
    kind, _, number = name.partition(":")
    return jax.devices(_PLATFORMS.get(kind, kind))[int(number or 0)]
