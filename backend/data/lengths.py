"""Length counts and what follows from them: quantiles, rows beyond a limit, padding of batches."""

from collections.abc import Iterable, Sequence

import numpy as np

from backend.data.batches import padded_length
from backend.data.order import DataOrder

USUAL = (
    16, 32, 48, 64, 96, 128, 160, 192, 256, 320, 384, 512, 640, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 16384,
    32768, 65536, 131072,
)  # fmt: skip
"""Limits that people choose."""
MAX_LENGTHS = 4000
"""The number of distinct lengths that are counted; if there are more, lengths are rounded up."""
_QUANTILES = (50, 90, 95, 99, 100)
MAX_STEPS = 5000
"""Steps of an epoch whose padding is computed; they are drawn by chance, so more would say the same."""


def count_lengths(lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each distinct length, ascending, and its frequency; few enough to plot and send."""
    values, counts = np.unique(lengths, return_counts=True)
    if len(values) <= MAX_LENGTHS:
        return values, counts
    kept = values[np.unique(np.linspace(0, len(values) - 1, MAX_LENGTHS).astype(np.int64))]
    places = np.searchsorted(kept, values)
    return kept, np.bincount(places, weights=counts, minlength=len(kept)).astype(np.int64)


def quantiles(lengths: np.ndarray) -> dict[str, int]:
    """`50 %` … `100 %` → the length that this share of rows does not exceed."""
    found = np.percentile(lengths, _QUANTILES, method="inverted_cdf") if len(lengths) else np.zeros(len(_QUANTILES))
    return {f"{share} %": int(value) for share, value in zip(_QUANTILES, found, strict=True)}


def usual_limits(longest: int, own: int, most: int) -> list[int]:
    """The limits worth showing: common ones up to the longest row, at most the model's, and the current one."""
    enough = next((limit for limit in USUAL if limit >= longest), USUAL[-1])
    return sorted(
        {limit for limit in USUAL if limit <= min(enough, most)} | {own} | ({most} if most < enough else set())
    )


class PaddedLengths:
    """Padded batch lengths: `lengths` (features,) is the longest of each feature's `each` sequences, in tokens."""

    def __init__(self, lengths: np.ndarray, used: np.ndarray, each: int, multiple: int, limit: int | None) -> None:
        self._lengths, self._used, self._each = lengths, used, each
        self._multiple, self._limit = multiple, limit

    def count_computed(self, batch: np.ndarray) -> tuple[int, int]:
        """Data tokens and computed tokens in a batch of these features."""
        width = padded_length(int(self._lengths[batch].max(initial=0)), self._multiple, self._limit)
        return int(self._used[batch].sum()), width * len(batch) * self._each

    def count_fixed(self, length: int) -> tuple[int, int]:
        """The same for all features, each padded to `length`."""
        return int(self._used.sum()), max(length, int(self._lengths.max(initial=0))) * len(self._used) * self._each


def count_in_order(widths: Sequence[PaddedLengths], order: DataOrder) -> tuple[int, int]:
    """Data tokens and computed tokens in the first epoch's steps (at most MAX_STEPS of them)."""
    steps = range(1, min(order.steps_per_epoch, MAX_STEPS) + 1)
    return _sum_batches(widths, (order.indices(step) for step in steps))


def count_unshuffled(widths: Sequence[PaddedLengths], features: int, batch_size: int) -> tuple[int, int]:
    """The same for batches cut from the features in order."""
    starts = np.arange(0, features, batch_size)
    if len(starts) > MAX_STEPS:
        starts = starts[np.linspace(0, len(starts) - 1, MAX_STEPS).astype(np.int64)]
    return _sum_batches(widths, (np.arange(start, min(start + batch_size, features)) for start in starts))


def _sum_batches(widths: Sequence[PaddedLengths], batches: Iterable[np.ndarray]) -> tuple[int, int]:
    used = computed = 0
    for batch in batches:
        for one in widths:
            of_batch = one.count_computed(batch)
            used, computed = used + of_batch[0], computed + of_batch[1]
    return used, computed
