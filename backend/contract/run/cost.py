"""Owns the parts of what a run will cost beside its memory: time, tokens that are computed, and what would make it fit."""

from typing import Any

import msgspec


class TimePart(msgspec.Struct, frozen=True):
    """One part of the time that a run will take."""

    name: str
    seconds: float | None
    """None where nothing comparable was measured here."""
    words: str = ""
    """What it is reckoned from, such as `4 × 300 rows`."""
    least: float | None = None
    """Seconds that it takes at least, by what was measured, and at most."""
    most: float | None = None
    rows: int = 0
    """Rows that it goes over, each of `times` times; 0 where `words` say something else."""
    times: int = 1


class Remedy(msgspec.Struct, frozen=True, kw_only=True):
    """Other settings with which a run needs less memory."""

    title: str
    """What to do, as a button says it."""
    changes: dict[str, Any]
    """Dotted key → value."""
    memory_mb: float
    """What the run would need with them."""
    fits: bool
    note: str = ""
    """What it costs in return, a sentence."""
