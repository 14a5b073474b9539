"""What a run will cost besides memory: its time by parts, the speeds measured here, and what would make it fit."""

from typing import Any

import msgspec


def format_size(megabytes: float) -> str:
    """`8.4 MB`, `412 MB`, `3.1 GB` (10^6 and 10^9 bytes)."""
    if megabytes >= 1000:
        return f"{megabytes / 1000:.1f} GB"
    return f"{megabytes:.0f} MB" if megabytes >= 10 else f"{megabytes:.1f} MB"


class TimePart(msgspec.Struct, frozen=True):
    """One part of a run's estimated time."""

    name: str
    seconds: float | None
    """None where nothing comparable was measured here."""
    words: str = ""
    """What it is computed from, such as `4 × 300 rows`."""
    least: float | None = None
    """Seconds that it takes at least, by what was measured, and at most."""
    most: float | None = None
    rows: int = 0
    """Rows that it goes over, each of `times` times; 0 where `words` say something else."""
    times: int = 1


class MemoryFix(msgspec.Struct, frozen=True, kw_only=True):
    """Settings that make a run need less memory."""

    title: str
    """What to do, as a button says it."""
    changes: dict[str, Any]
    """Dotted key → value."""
    memory_mb: float
    """What the run would need with them."""
    fits: bool
    note: str = ""
    """What it costs in return, a sentence."""


class DiskFix(msgspec.Struct, frozen=True, kw_only=True):
    """Settings that make a run need less disk space."""

    title: str
    """What to do, as a button says it."""
    changes: dict[str, Any]
    """Dotted key → value."""
    disk_mb: float
    """What the run would need with them."""
    fits: bool
    note: str = ""
    """What it costs in return, a sentence."""


class Measurement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Training speeds on one device; None if nothing was measured."""

    time: float
    """When, in seconds since the epoch."""
    source: str = "measurement"
    """`measurement`, or `run` for a run that was finished."""
    mean_length: float
    """Tokens of a feature on average."""
    longest: int
    """Tokens of the longest feature."""
    steps: int
    """Optimizer steps that were timed."""
    step_seconds: float
    starting_seconds: float | None = None
    """From the start of the process until its libraries, devices and data are there; without finding the model."""
    loading_seconds: float | None = None
    """To put the model in place."""
    compile_seconds: float = 0.0
    """Of one program; 0 for an engine that compiles nothing."""
    programs: int = 0
    """Programs that a run needs, and of these the ones that are compiled and kept by now."""
    compiled: int = 0
    evaluation_row_seconds: float | None = None
    first_evaluation_seconds: float = 0.0
    """What the first evaluation of a process takes beyond its rows: libraries of metrics that are loaded then."""
    writes: bool = False
    """Whether evaluations let the model write, which takes as long as it writes."""
    checkpoint_seconds: float | None = None
    saving_seconds: float | None = None
    """To write the model at the end."""
    memory_mb: float | None = None
    """Most resident memory of the process."""
    device_memory_mb: float | None = None
    """Most memory on the accelerator; None on a processor."""
    others: float = 0.0
    """Which part of the processor other programs used meanwhile."""
    machine: str = ""
    """The other computer on which it was, by its name among the machines; empty for this one."""
    weights: bool = True
    """Whether with the model's own weights; else they were not here, and drawn by chance."""


class MeasuredTime(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of `measure_time {spec}`: the measurement is saved, and the next `plan` uses it."""

    shortage: str = ""
    """Why there is none, if the memory was not enough: a sentence."""
    remedies: list[MemoryFix] = []
    """What needs less memory then."""
