"""Owns the smoothed form of a growing series: centred means at any places, from one running sum."""

import numpy as np

from app.widgets.plots.min_max_pyramid import Floats


class RunningMean:
    """Means over a window of neighbours; NaN is left out. Appending n points costs O(n), a mean costs O(1)."""

    def __init__(self) -> None:
        self._count = 0
        self._sums = np.zeros((2, 64), np.float64)  # (sum of values, number of values) before each index

    def __len__(self) -> int:
        return self._count

    def append(self, ys: Floats) -> None:
        """Add values at the end."""
        needed = self._count + len(ys) + 1
        if needed > self._sums.shape[1]:
            grown = np.zeros((2, max(needed, 2 * self._sums.shape[1])), np.float64)
            grown[:, : self._count + 1] = self._sums[:, : self._count + 1]
            self._sums = grown
        there = np.isfinite(ys)
        fresh = np.cumsum([np.where(there, ys, 0.0), there], axis=1)
        self._sums[:, self._count + 1 : needed] = self._sums[:, self._count : self._count + 1] + fresh
        self._count = needed - 1

    def truncate(self, count: int) -> None:
        """Keep the first `count` values."""
        self._count = min(self._count, count)

    def at(self, indices: np.ndarray, window: int) -> Floats:
        """The mean of `window` values around each index, fewer at the ends; NaN where there is none."""
        half = max(0, window // 2)
        low = np.maximum(indices - half, 0)
        high = np.minimum(indices + half + 1, self._count)
        sums = self._sums[:, high] - self._sums[:, low]
        return np.divide(sums[0], sums[1], out=np.full(len(indices), np.nan), where=sums[1] > 0)
