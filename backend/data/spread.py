"""Owns how numbers are spread: mean, deviation and quantiles, of lengths that are counted and of numbers that are kept."""

import math
from collections import Counter
from collections.abc import Callable

import numpy as np

from backend.contract.rpc.queries import Spread


def spread_of_counts(counts: Counter[int]) -> Spread | None:
    """Of whole numbers, given how often each occurs; None where there are none."""
    if not counts:
        return None
    values = np.array(sorted(counts), dtype=np.float64)
    times = np.array([counts[int(value)] for value in values], dtype=np.int64)
    total = int(times.sum())
    mean = float((values * times).sum() / total)
    squares = float((times * (values - mean) ** 2).sum())
    ends = np.cumsum(times)
    return _spread(total, mean, squares, lambda place: float(values[np.searchsorted(ends, place, side="right")]))


def spread_of_sorted(values: np.ndarray) -> Spread | None:
    """Of numbers in ascending order; None where there are none."""
    if len(values) == 0:
        return None
    mean = float(values.mean(dtype=np.float64))
    squares = sum(float(((part - mean) ** 2).sum()) for part in np.array_split(values, 1 + len(values) // (1 << 20)))
    return _spread(len(values), mean, squares, lambda place: float(values[place]))


def _spread(count: int, mean: float, squares: float, at: Callable[[int], float]) -> Spread:
    def quantile(share: float) -> float:
        place = share * (count - 1)
        low = math.floor(place)
        return at(low) + (place - low) * (at(min(low + 1, count - 1)) - at(low))

    return Spread(
        count=count,
        mean=mean,
        std=math.sqrt(squares / (count - 1)) if count > 1 else None,
        min=at(0),
        p50=quantile(0.5),
        p95=quantile(0.95),
        p99=quantile(0.99),
        p99_9=quantile(0.999),
        max=at(count - 1),
    )
