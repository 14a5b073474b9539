"""Owns how the numbers of an axis read: where its ticks stand and the words at them."""

from math import ceil, log10
from typing import Literal

import pyqtgraph as pg

from app.core import wording

Kind = Literal["number", "count", "duration"]
"""Plain numbers; large counts, shortened from a million on; seconds."""
SECONDS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800)
"""Distances between ticks of time."""
WEEK = 604_800
TICKS = 5
MILLION = 1_000_000


class PlotAxis(pg.AxisItem):
    """`kind` says what the numbers are; change it with `set_kind`."""

    def __init__(self, side: str) -> None:
        super().__init__(side)
        self.kind: Kind = "number"

    def set_kind(self, kind: Kind) -> None:
        """Other numbers stand on this axis from now on."""
        self.kind = kind
        self.picture = None
        self.update()

    def tickSpacing(self, minVal: float, maxVal: float, size: float) -> list[tuple[float, float]]:  # noqa: N803
        """Time in whole minutes, hours and days; everything else as pyqtgraph has it."""
        if self.kind != "duration" or maxVal - minVal < TICKS:
            return super().tickSpacing(minVal, maxVal, size)  # type: ignore[return-value]
        wanted = (maxVal - minVal) / max(2.5, TICKS * (size / 450) ** 0.5)
        return [(next((one for one in SECONDS if one >= wanted), WEEK * ceil(wanted / WEEK)), 0)]

    def tickStrings(self, values: list[float], scale: float, spacing: float) -> list[str]:
        """`20,000`, `1.5 M`, `2 h`; a logarithmic axis and small numbers as pyqtgraph writes them."""
        if self.logMode:
            return super().tickStrings(values, scale, spacing)
        if self.kind == "duration" and spacing >= 1:
            return [clock(value, spacing) for value in values]
        if spacing < 1:
            return super().tickStrings(values, scale, spacing)
        if self.kind == "count" and max(values, default=0) >= MILLION:
            digits = max(0, ceil(6 - log10(spacing) - 1e-9))
            return [f"{value / MILLION:,.{digits}f} M" if value else "0" for value in values]
        return [f"{value:,.0f}" for value in values]


def clock(seconds: float, spacing: float) -> str:
    """A tick of time, as exact as the distance between ticks asks for: `45 s`, `1:45`, `5 min`, `1 h 05`, `2 d 6 h`."""
    whole = round(seconds)
    minutes, hours = whole // 60, whole // 3600
    if spacing < 60:
        return f"{whole} s" if whole < 60 else f"{minutes}:{whole % 60:02d}"
    if spacing < 3600:
        return f"{minutes} min" if hours < 1 else f"{hours} h {minutes % 60:02d}"
    if hours < 48:
        return f"{hours} h"
    return f"{hours // 24} d {hours % 24} h" if hours % 24 else f"{hours // 24} d"


def in_words(value: float, label: str, kind: Kind) -> str:
    """One place on an axis: `step 1,200`, `epoch 1.25`, `1.34 M tokens`, `5 min 20 s`."""
    if kind == "duration":
        return wording.duration(value)
    if kind == "count":
        return f"{wording.short_count(value)} {label}"
    return f"{label} {value:,.0f}" if value == round(value) or value >= 1000 else f"{label} {value:,.2f}"
