"""Chooses which dimension of a parameter is sharded across devices; loads no framework, because plans use it too."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from backend.contract.errors import InputError
from backend.contract.messages import plural
from backend.engines.engine import Split

ROWS, MATRICES = "rows", "matrices"
"""The axes of a mesh: groups of devices that read rows of their own, and the devices of a group."""
SMALL = 4096
"""Values; what has fewer is whole on every device, for messages about it would cost more than its memory."""

Rules = Mapping[str, int]
"""End of a parameter's name → the dimension that the devices of a group divide."""
Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Grid:
    """The device grid: each of the `groups` reads its own rows, and its `members` compute every layer together."""

    groups: int = 1
    members: int = 1
    shares_weights: bool = False
    """Whether the groups divide weights and optimizer state too (FSDP, Zhao et al. 2023), or each has them whole."""

    @property
    def devices(self) -> int:
        """The total number of devices."""
        return self.groups * self.members


def grid(devices: int, tensor_parallel: int, parallelism: str) -> Grid:
    """The grid for this many devices. Raises InputError if groups of `tensor_parallel` do not divide them."""
    if devices % tensor_parallel:
        fitting = ", ".join(str(number) for number in range(1, devices + 1) if devices % number == 0)
        raise InputError(
            plural(
                "hardware.tensor_parallel: {count} device cannot be divided into groups of "
                "{tensor_parallel}; use one of {fitting}, or choose other devices in hardware.devices",
                "hardware.tensor_parallel: {count} devices cannot be divided into groups of "
                "{tensor_parallel}; use one of {fitting}, or choose other devices in hardware.devices",
                devices,
                tensor_parallel=tensor_parallel,
                fitting=fitting,
            ),
            "hardware.tensor_parallel",
        )
    return Grid(devices // tensor_parallel, tensor_parallel, parallelism == "fsdp")


def check_rules(model_type: str, tensor_parallel: int, rules: Rules) -> None:
    """Raises InputError if layers should be divided and the family has no rules for it."""
    if tensor_parallel > 1 and not rules:
        raise InputError(
            "hardware.tensor_parallel: the JAX engine cannot shard the layers of {model_type}; use 1, and set "
            "hardware.parallelism to fsdp to save memory",
            "hardware.tensor_parallel",
            model_type=model_type,
        )


def axes(name: str, shape: Sequence[int], over: Grid, rules: Rules) -> tuple[str | None, ...]:
    """For every dimension of a parameter the mesh axis that divides it, or None."""
    found: list[str | None] = [None] * len(shape)
    ruled = next((dimension for end, dimension in rules.items() if f".{name}".endswith(f".{end}")), None)
    if over.members > 1 and ruled is not None and shape[ruled] % over.members == 0:
        found[ruled] = MATRICES
    if over.shares_weights and over.groups > 1 and prod(shape) >= SMALL:
        free = [at for at, size in enumerate(shape) if found[at] is None and size % over.groups == 0]
        if free:
            found[max(free, key=lambda at: shape[at])] = ROWS
    return tuple(found)


def split(shapes: Shapes, over: Grid, rules: Rules) -> Split:
    """The share of the parameters that one device holds; unknown ones are all assumed to be large."""
    parts = {ROWS: over.groups, MATRICES: over.members}
    if not shapes:
        return Split(over.groups, 1 / (over.members * (over.groups if over.shares_weights else 1)))
    held = sum(
        prod(shape) / prod(parts[axis] for axis in axes(name, shape, over, rules) if axis)
        for name, shape in shapes.items()
    )
    return Split(over.groups, held / sum(map(prod, shapes.values())))
