"""One series of a plot as a pyramid of minima and maxima, so that any range is quickly reduced to few points.

Level 0 holds the points; each higher level holds, per block of FANOUT entries of the level below, the smallest and
largest value. Appending touches each level once per FANOUT entries (amortised O(1) per point); reducing a range reads
the finest level with few enough blocks. NaN marks a missing value and makes a gap.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
FANOUT = 8


class _Level:
    """Growing arrays of equal length: each block's start, minimum and maximum."""

    kept = 3

    def __init__(self) -> None:
        self.count = 0
        self.columns = np.empty((self.kept, 64), np.float64)

    def append(self, rows: Floats) -> None:
        """Add `rows` of shape (kept, new)."""
        needed = self.count + rows.shape[1]
        if needed > self.columns.shape[1]:
            grown = np.empty((self.kept, max(needed, 2 * self.columns.shape[1])), np.float64)
            grown[:, : self.count] = self.columns[:, : self.count]
            self.columns = grown
        self.columns[:, self.count : needed] = rows
        self.count = needed

    def view(self, first: int, last: int) -> Floats:
        """Blocks first to last (exclusive), shape (3, blocks)."""
        return self.columns[:, first : min(last, self.count)]


class _Points(_Level):
    """Level 0, where minimum and maximum are the point itself, stored once: a third less memory for long curves."""

    kept = 2

    def view(self, first: int, last: int) -> Floats:
        """A copy, because no view can have one row twice; the requested ranges are short."""
        return self.columns[[0, 1, 1], first : min(last, self.count)]


class MinMaxPyramid:
    """x must not decrease; y may be NaN."""

    def __init__(self) -> None:
        self.clear()

    def __len__(self) -> int:
        return self._levels[0].count

    @property
    def xs(self) -> Floats:
        """All x, as a view that is only valid until the next append."""
        return self._points.columns[0, : len(self)]

    @property
    def ys(self) -> Floats:
        """All y, likewise."""
        return self._points.columns[1, : len(self)]

    def append(self, xs: Floats, ys: Floats) -> None:
        """Add points at the end."""
        points = np.asarray(ys, np.float64)
        if points.size:
            self._points.append(np.stack([np.asarray(xs, np.float64), points]))
            self._complete(1)

    def clear(self) -> None:
        """Forget everything."""
        self._points = _Points()
        self._levels: list[_Level] = [self._points]

    def truncate_after(self, x: float) -> None:
        """Drop every point beyond x."""
        count = int(np.searchsorted(self.xs, x, side="right"))
        for level in self._levels:
            level.count = min(level.count, count)
            count //= FANOUT

    def _complete(self, index: int) -> None:
        below = self._levels[index - 1]
        done = self._levels[index].count if index < len(self._levels) else 0
        blocks = below.count // FANOUT - done
        if blocks <= 0:
            return
        if index == len(self._levels):
            self._levels.append(_Level())
        fresh = below.view(done * FANOUT, (done + blocks) * FANOUT).reshape(3, blocks, FANOUT)
        low, high = np.fmin.reduce(fresh[1], axis=1), np.fmax.reduce(fresh[2], axis=1)
        self._levels[index].append(np.stack([fresh[0, :, 0], low, high]))
        self._complete(index + 1)

    def bounds(self, first: float = -np.inf, last: float = np.inf) -> tuple[float, float] | None:
        """Smallest and largest y between two x, or None if there is none."""
        _, ys = self.reduce(first, last, 512)
        ys = ys[np.isfinite(ys)]
        return (float(ys.min()), float(ys.max())) if ys.size else None

    def reduce(self, first: float = -np.inf, last: float = np.inf, points: int = 1600) -> tuple[Floats, Floats]:
        """At most `points` points that draw like all points from first to last, plus one neighbour beyond each end."""
        xs = self.xs
        begin = max(0, int(np.searchsorted(xs, first)) - 1)
        end = min(len(self), int(np.searchsorted(xs, last, side="right")) + 1)
        if end - begin <= points:
            return xs[begin:end].copy(), self.ys[begin:end].copy()
        blocks = self._blocks(begin, end, points // 2)
        out_x, out_y = np.repeat(blocks[0], 2), np.empty(2 * blocks.shape[1], np.float64)
        out_y[0::2], out_y[1::2] = blocks[1], blocks[2]
        out_x[-1] = xs[end - 1]
        return out_x, out_y

    def _blocks(self, begin: int, end: int, most: int) -> Floats:
        """The range as at most `most` blocks: the finest sufficient level, merged evenly, and the incomplete tail."""
        index, size = 0, 1
        while (end - begin) // (size * FANOUT) >= most and index + 1 < len(self._levels):
            index, size = index + 1, size * FANOUT
        level = self._levels[index]
        body = level.view(begin // size, max(begin // size + 1, end // size))
        covered = (begin // size + body.shape[1]) * size
        blocks = _merge(body, most - 1)
        tail = self._levels[0].view(covered, end)
        return blocks if tail.shape[1] == 0 else np.concatenate([blocks, _merge(tail, 1)], axis=1)


def _merge(blocks: Floats, most: int) -> Floats:
    """Merge neighbouring blocks so that at most `most` remain."""
    count = blocks.shape[1]
    if count <= most:
        return blocks
    starts = np.linspace(0, count, most, endpoint=False).astype(np.intp)
    return np.stack([
        blocks[0, starts], np.fmin.reduceat(blocks[1], starts), np.fmax.reduceat(blocks[2], starts)
    ])  # fmt: skip
