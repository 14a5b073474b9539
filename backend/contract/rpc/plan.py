"""Answers about what a run will cost and which devices it will use: `plan` and `devices`."""

import msgspec

from backend.contract.catalog import Device
from backend.contract.rpc.search import SearchPlan
from backend.contract.run.cost import DiskFix, Measurement, MemoryFix, TimePart


class PlanPart(msgspec.Struct, frozen=True):
    """One part of a run's memory."""

    name: str
    megabytes: float


class Placement(msgspec.Struct, frozen=True):
    """What one of several devices holds and does."""

    device: str
    rows: int
    """Of a full pass; with fewer than the other devices, the rest are filler rows."""
    weights_mb: float
    optimizer_mb: float
    processes: int = 1
    """How many share the device, such as the CPU, and hold and do this each."""


class AutoSetting(msgspec.Struct, frozen=True):
    """A setting that the spec leaves at `auto`, and how it is resolved."""

    key: str
    """Dotted: `training.learning_rate`."""
    value: bool | float | str
    reason: str
    """A sentence that also names the value: `learning rate 4e-4: … has 4.4 million parameters; …`. Empty if another
    setting wins, such as `training.max_steps` over epochs, or if there is nothing to explain."""


class DiskPart(msgspec.Struct, frozen=True):
    """One part of what a run writes."""

    name: str
    megabytes: float
    words: str = ""
    """What it is computed from, such as `3 × 53 MB`."""


class DiskVolume(msgspec.Struct, frozen=True):
    """One disk that a run writes to."""

    folder: str
    """The run's first folder on it: the runs folder, or a cache."""
    needed_mb: float
    """At most at any time of the run."""
    free_mb: float
    total_mb: float

    @property
    def fits(self) -> bool:
        """Whether there is room."""
        return self.needed_mb <= self.free_mb


class DiskPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What a run writes, and the room for it."""

    parts: list[DiskPart]
    volumes: list[DiskVolume]
    problem: str = ""
    """Why it does not fit, a sentence; a warning, because someone may free space meanwhile."""
    fixes: list[DiskFix] = []
    """What would need less, the gentlest first; empty where it fits."""

    @property
    def needed_mb(self) -> float:
        """On all disks."""
        return sum(part.megabytes for part in self.parts)


class RunPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of `plan {spec}` and of `burnish plan --json`: what a run will cost, or one trial of a search."""

    rows: int
    features: int
    steps_per_epoch: int
    total_steps: int
    batch_size: int
    micro_batch_size: int
    accumulation: int
    tokens_per_epoch: int
    parameters: int
    trainable: int
    device: str
    precision: str
    precision_reason: str
    memory: list[PlanPart]
    memory_mb: float
    available_mb: float
    fits: bool
    placement: list[Placement] = []
    """What lies on each of several devices; empty with one."""
    seconds: float | None = None
    """Estimated time from the start to the last prediction, or None where nothing comparable was measured."""
    least_seconds: float | None = None
    """What it may be at least, and at most; None where `seconds` is."""
    most_seconds: float | None = None
    time: list[TimePart] = []
    measured: Measurement | None = None
    """What the time was computed from; None where it is not known, or by the speed of another training alone."""
    longest: int = 0
    """Tokens of the longest sequence of the rows that were looked at."""
    padding: float | None = None
    """Which part of all tokens that are computed is padding, estimated from these rows."""
    auto: list[AutoSetting] = []
    """What the spec leaves at `auto`."""
    remedies: list[MemoryFix] = []
    """What would make it fit, the gentlest first; empty where it fits."""
    disk: DiskPlan | None = None
    """None in plans of older versions."""
    notes: list[str] = []
    problems: list[str] = []
    search: SearchPlan | None = None
    """What the whole search will cost, if the spec is one of a search."""


class DeviceList(msgspec.Struct, frozen=True):
    """Answer of `devices {}`."""

    devices: list[Device]
    note: str = ""
