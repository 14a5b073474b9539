"""Owns a curve that only grows, and cursors by which a reader takes just the points that it has not seen."""

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class Cursor:
    """How much of a series one reader has seen."""

    index: int = 0
    cuts: int = 0


@dataclass(frozen=True)
class Fresh:
    """What is new to a reader: first forget every point beyond `cut` (if there is one), then append the points."""

    cut: float | None
    xs: array
    ys: array

    def __bool__(self) -> bool:
        return self.cut is not None or len(self.xs) > 0


@dataclass
class Series:
    """Points of one curve in rising x; 16 bytes a point."""

    xs: array = field(default_factory=lambda: array("d"))
    ys: array = field(default_factory=lambda: array("d"))
    _cuts: list[float] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.xs)

    def append(self, x: float, y: float) -> None:
        """One more point; x is beyond every other x of the series."""
        self.xs.append(x)
        self.ys.append(y)

    @property
    def last(self) -> float | None:
        """The newest value."""
        return self.ys[-1] if self.ys else None

    def truncate_after(self, x: float) -> None:
        """Drop every point beyond x, for all readers."""
        keep = bisect_right(self.xs, x)
        if keep < len(self.xs):
            del self.xs[keep:]
            del self.ys[keep:]
            self._cuts.append(x)

    def fresh(self, cursor: Cursor, limit: int = 50_000) -> Fresh:
        """The points since `cursor`, at most `limit` of them, and moves the cursor on."""
        missed = self._cuts[cursor.cuts :]
        cut = min(missed) if missed else None
        start = cursor.index if cut is None else min(cursor.index, bisect_right(self.xs, cut))
        stop = min(start + limit, len(self.xs))
        cursor.index, cursor.cuts = stop, len(self._cuts)
        return Fresh(cut, self.xs[start:stop], self.ys[start:stop])


def mean(values: Sequence[float]) -> float:
    """Infinite if the sum is, where `statistics.fmean` would raise: a stranger's run may hold any number."""
    return sum(values) / len(values)
