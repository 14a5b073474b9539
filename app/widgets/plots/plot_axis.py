"""The axes of a plot: the choices of x, the positions of the ticks, and number formats."""

from math import ceil, floor, log10
from typing import Literal

import pyqtgraph as pg

from app.core import formatting
from app.core.i18n import figure, localize_sign, tr

Kind = Literal["number", "whole", "count", "duration"]
"""Plain numbers; whole ones; large counts, shortened from a million on; seconds."""
AXIS_TITLES = {"step": tr("Step"), "epoch": tr("Epoch"), "tokens": tr("Tokens"), "time": tr("Time")}
"""Axis → how a list calls it."""
X_LABELS: dict[str, tuple[str, Kind]] = {
    "step": ("step", "whole"),
    "epoch": ("epoch", "number"),
    "tokens": ("tokens", "count"),
    "time": ("seconds", "duration"),
}
"""Axis → how a plot calls it, and what its numbers are."""
SECONDS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800)
"""Distances between ticks of time."""
WEEK = 604_800
WHOLE = ("whole", "count")
"""Kinds between whose numbers there is nothing."""
TICKS = 5
MILLION = 1_000_000
MAX_DECADES = 6
"""Ticks of a logarithmic axis that bear a power of ten."""
LARGEST_POWER = 300
"""A float holds no power of ten much beyond it."""


class PlotAxis(pg.AxisItem):
    """`kind` says what the numbers are; change it with `set_kind`."""

    def __init__(self, side: str) -> None:
        super().__init__(side)
        self.kind: Kind = "number"

    def set_kind(self, kind: Kind) -> None:
        """Change the kind of numbers on this axis."""
        self.kind = kind
        self.picture = None
        self.update()

    def tickSpacing(self, minVal: float, maxVal: float, size: float) -> list[tuple[float, float]]:  # noqa: N803
        """Time in whole minutes, hours and days, steps as integers; everything else as in pyqtgraph."""
        if self.kind != "duration" or maxVal - minVal < TICKS:
            spacings: list[tuple[float, float]] = super().tickSpacing(minVal, maxVal, size)  # type: ignore[assignment]
            if self.kind in WHOLE and spacings[0][0] < 1:
                return [(1, 0)]
            return spacings
        wanted = (maxVal - minVal) / max(2.5, TICKS * (size / 450) ** 0.5)
        return [(next((one for one in SECONDS if one >= wanted), WEEK * ceil(wanted / WEEK)), 0)]

    def logTickValues(self, minVal: float, maxVal: float, size: float, stdTicks: list) -> list:  # noqa: N803
        """A few powers of ten and values between; within one power evenly spaced numbers, so that some are visible."""
        low, high = max(minVal, -LARGEST_POWER), min(maxVal, LARGEST_POWER)
        if high - low < 1:
            spacing = self.tickSpacing(10**low, 10**high, size)[0][0]
            return [
                (
                    None,
                    [log10(n * spacing) for n in range(max(1, ceil(10**low / spacing)), floor(10**high / spacing) + 1)],
                )
            ]
        stride = ceil((high - low) / MAX_DECADES)
        powers = [float(power) for power in range(ceil(low), floor(high) + 1) if power % stride == 0]
        if stride > 1:
            return [(stride, powers)]
        between = [power + log10(digit) for power in range(floor(low), ceil(high)) for digit in range(2, 10)]
        return [(stride, powers), (None, [value for value in between if low <= value <= high])]

    def logTickStrings(self, values: list[float], scale: float, spacing: float) -> list[str]:
        """`0.35`, `20`, and `10⁷` if that is shorter."""
        if all(-3 <= value < log10(MILLION) for value in values):
            return [figure(10**value, ",.6g") for value in values]
        return [localize_sign(words) for words in super().logTickStrings(values, scale, spacing)]

    def tickStrings(self, values: list[float], scale: float, spacing: float) -> list[str]:
        """`20,000`, `1.5 M`, `2 h`, `2.5e9`; small numbers as pyqtgraph writes them."""
        if self.logMode:
            return self.logTickStrings(values, scale, spacing)
        if self.kind == "duration" and spacing >= 1:
            return [clock(value, spacing) for value in values]
        if spacing < 1:
            return [localize_sign(words) for words in super().tickStrings(values, scale, spacing)]
        if self.kind == "count" and max(values, default=0) >= MILLION:
            digits = max(0, ceil(6 - log10(spacing) - 1e-9))
            return [f"{formatting.group_digits(value / MILLION, digits)} M" if value else "0" for value in values]
        if max(map(abs, values), default=0) >= MILLION:
            return [figure(value, ".3g").replace("e+0", "e").replace("e+", "e") for value in values]
        return [formatting.group_digits(value) for value in values]


def clock(seconds: float, spacing: float) -> str:
    """A time tick, as precise as the tick spacing requires: `45 s`, `1:45`, `5 min`, `1 h 05`, `2 d 6 h`."""
    whole = round(seconds)
    minutes, hours = whole // 60, whole // 3600
    if spacing < 60:
        return f"{whole} s" if whole < 60 else f"{minutes}:{whole % 60:02d}"
    if spacing < 3600:
        return f"{minutes} min" if hours < 1 else f"{hours} h {minutes % 60:02d}"
    if hours < 48:
        return f"{hours} h"
    return f"{hours // 24} d {hours % 24} h" if hours % 24 else f"{hours // 24} d"


def value_words(value: float, label: str, kind: Kind) -> str:
    """A position on an axis: `step 1 200`, `epoch 1.25`, `1.34 M tokens`, `5 min 20 s`."""
    if kind == "duration":
        return formatting.duration(value)
    if kind == "count":
        return f"{formatting.short_count(value)} {label}"
    is_whole = kind == "whole" or round(value, 2).is_integer() or value >= 1000
    return f"{label} {formatting.group_digits(value, 0 if is_whole else 2)}"
