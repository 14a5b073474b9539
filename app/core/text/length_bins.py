"""Bins lengths for a histogram: round widths, the limit on a bin edge, and the long tail in the last bar."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from app.core.i18n import tr, trn

MAX_BINS = 48
_ROUND = (1, 2, 4, 5, 8, 10, 16, 20, 32, 40, 50, 64, 80, 100, 128)
TAIL = 1.6
"""How many times the length that 99 % do not exceed is still drawn to scale."""


@dataclass(frozen=True)
class LengthBins:
    """Bar `i` counts rows with more than `i × width` and at most `(i + 1) × width` tokens; the last all longer."""

    width: int
    counts: list[int]
    tail: bool
    """Whether the last bar holds longer rows than the scale shows."""
    longest: int

    @property
    def end(self) -> int:
        """Tokens at the right end of the scale."""
        return self.width * len(self.counts)

    def words(self, place: int) -> str:
        """The lengths in a bar: `65–72 tokens`."""
        low, high = place * self.width + 1, (place + 1) * self.width
        if self.tail and place == len(self.counts) - 1:
            high = self.longest
        return (
            tr("{low}–{high} tokens", low=low, high=high)
            if high > low
            else trn("{count} token", "{count} tokens", high)
        )


def length_bins(lengths: Sequence[int], counts: Sequence[int], limit: int) -> LengthBins:
    """The bars of these lengths (ascending), with `limit` on the scale unless it is far beyond all of them."""
    longest = max(1, lengths[-1] if lengths else 1)
    shown = min(longest, max(8, round(TAIL * _most(lengths, counts, 0.99))))
    if shown < limit <= 2 * longest:
        shown = limit + max(1, limit // 16)
    elif limit <= longest:
        shown = max(shown, min(longest, limit + max(1, limit // 8)))
    width = _round_width(shown)
    bars = [0] * -(-shown // width)
    for length, count in zip(lengths, counts, strict=True):
        bars[min(len(bars) - 1, max(0, -(-length // width) - 1))] += count
    return LengthBins(width, bars, longest > width * len(bars), longest)


def _most(lengths: Sequence[int], counts: Sequence[int], share: float) -> int:
    """The length that this share of the rows does not exceed."""
    wanted = share * sum(counts)
    reached = zip(lengths, accumulate(counts), strict=True)
    return next((length for length, rows in reached if rows >= wanted), 1)


def _round_width(shown: int) -> int:
    scale = 1
    while True:
        for one in _ROUND:
            if -(-shown // (one * scale)) <= MAX_BINS:
                return one * scale
        scale *= 128
