"""Rounds time spans for people: `4 to 6 minutes`, with no more digits than are known."""

from typing import Literal, NamedTuple

BUSY = 0.15
"""Part of the processor that other programs may use before it is worth telling."""
NOTHING = 0.05
"""Seconds that are not worth a number."""
Unit = Literal["seconds", "minutes", "hours", "days"]


class Span(NamedTuple):
    """From `least` to `most` in a unit; they are equal if rounding leaves no difference."""

    least: float
    most: float
    unit: Unit


_UNITS: tuple[tuple[Unit, float, float, float], ...] = (
    ("seconds", 1, 10, 1),
    ("seconds", 1, 100, 5),
    ("minutes", 60, 6_000, 1),
    ("hours", 3_600, 36_000, 0.5),
    ("hours", 3_600, 172_800, 1),
    ("days", 86_400, float("inf"), 0.5),
)
"""Unit, its seconds, up to which seconds it is taken, and what is rounded to."""


def span(least: float, most: float) -> Span:
    """The span in the unit of its larger end; anything below the smallest number shown becomes that number."""
    unit, seconds, _, grain = next(one for one in _UNITS if most < one[2])

    def rounded(value: float) -> float:
        return max(grain, round(value / seconds / grain) * grain)

    return Span(rounded(least), rounded(most), unit)


def format_span(least: float, most: float) -> str:
    """`4 to 6 minutes`; the caller adds `about`."""
    low, high, unit = span(least, most)
    if low == high:
        return f"{high:g} {unit[:-1] if high == 1 else unit}"
    return f"{low:g} to {high:g} {unit}"


def age(seconds: float) -> tuple[int, str]:
    """How long ago something was, as a number of `minute`, `hour` or `day`; 0 minutes for less than one."""
    for unit, length in (("day", 86_400), ("hour", 3_600)):
        if seconds >= length:
            return int(seconds // length), unit
    return max(0, int(seconds // 60)), "minute"


def ago(seconds: float) -> str:
    """`3 minutes ago`, `just now`."""
    count, unit = age(seconds)
    return f"{count} {unit}{'' if count == 1 else 's'} ago" if count else "just now"
