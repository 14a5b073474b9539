"""A run's curves: append-only points, their position on each x axis, and how fast they arrive."""

from array import array
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from backend.contract.run.events import StepFinished


@dataclass
class SeriesCursor:
    """How much of a series one reader has seen."""

    index: int = 0
    cuts: int = 0


@dataclass(frozen=True)
class NewPoints:
    """The news for one reader: first drop every point beyond `cut` (if any), then append the points."""

    cut: float | None
    xs: array
    ys: array

    def __bool__(self) -> bool:
        return self.cut is not None or len(self.xs) > 0


@dataclass
class Series:
    """Points of one curve with ascending x; 16 bytes per point."""

    xs: array = field(default_factory=lambda: array("d"))
    ys: array = field(default_factory=lambda: array("d"))
    _cuts: list[float] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.xs)

    def append(self, x: float, y: float) -> None:
        """Append a point; its x must exceed every other x of the series."""
        self.xs.append(x)
        self.ys.append(y)

    @property
    def last(self) -> float | None:
        """The latest value."""
        return self.ys[-1] if self.ys else None

    def truncate_after(self, x: float) -> None:
        """Drop every point beyond x, for all readers."""
        keep = bisect_right(self.xs, x)
        if keep < len(self.xs):
            del self.xs[keep:]
            del self.ys[keep:]
            self._cuts.append(x)

    def fresh(self, cursor: SeriesCursor, limit: int = 50_000) -> NewPoints:
        """The points since `cursor`, at most `limit` of them; advances the cursor."""
        missed = self._cuts[cursor.cuts :]
        cut = min(missed) if missed else None
        start = cursor.index if cut is None else min(cursor.index, bisect_right(self.xs, cut))
        stop = min(start + limit, len(self.xs))
        cursor.index, cursor.cuts = stop, len(self._cuts)
        return NewPoints(cut, self.xs[start:stop], self.ys[start:stop])


def mean(values: Sequence[float]) -> float:
    """The mean; infinite if the sum is, where `statistics.fmean` would raise: untrusted runs may hold any number."""
    return sum(values) / len(values)


# The positions of steps on an x axis

AXES = ("step", "epoch", "tokens", "time")
"""What a plot's x may be; time is in seconds since the run began, the time between its attempts included."""


@dataclass(frozen=True)
class Resume:
    """The mark where an attempt started again, what it lost, and how long the run was down."""

    attempt: int
    from_step: int
    lost_steps: int = 0
    down_seconds: float = 0.0


class StepClock:
    """Times of the steps; a resume truncates it like the curves."""

    def __init__(self) -> None:
        self._steps, self._epochs, self._tokens, self._seconds = (array("d") for _ in range(4))
        self._columns = {"epoch": self._epochs, "tokens": self._tokens, "time": self._seconds}

    def __len__(self) -> int:
        return len(self._steps)

    def add(self, step: StepFinished, started: float | None) -> None:
        """Add a step of a run that started at `started`, seconds since the epoch."""
        now = 0.0 if started is None else step.time - started
        if not self._steps:
            self._append(step.step - 1, 0.0, 0.0, max(0.0, now - step.seconds))
        last = self._seconds[-1]
        self._append(step.step, step.epoch, self._tokens[-1] + step.tokens, now if now > last else last)

    def _append(self, step: float, epoch: float, tokens: float, seconds: float) -> None:
        self._steps.append(step)
        self._epochs.append(epoch)
        self._tokens.append(tokens)
        self._seconds.append(seconds)

    def truncate_after(self, step: float) -> None:
        """Drop all later steps."""
        keep = bisect_right(self._steps, step)
        for column in (self._steps, *self._columns.values()):
            del column[keep:]

    def at(self, axis: str, steps: array) -> array:
        """The positions of ascending steps on one of AXES: interpolated between known steps, clamped beyond them."""
        if axis == "step" or not steps:
            return steps
        column = self._columns[axis]
        if not column:
            return array("d", bytes(8 * len(steps)))
        first = bisect_left(self._steps, steps[0])
        if self._steps[first : first + len(steps)] == steps:
            return column[first : first + len(steps)]
        return array("d", (self._between(column, step) for step in steps))

    def step_at(self, axis: str, x: float) -> int:
        """The step nearest to a position on one of AXES."""
        column = self._steps if axis == "step" else self._columns[axis]
        if not column:
            return 0
        right = min(len(column) - 1, bisect_left(column, x))
        return int(self._steps[right - 1 if right and x - column[right - 1] < column[right] - x else right])

    def _between(self, column: array, step: float) -> float:
        right = bisect_left(self._steps, step)
        if right == 0:
            return column[0]
        if right == len(column):
            return column[-1]
        share = (step - self._steps[right - 1]) / (self._steps[right] - self._steps[right - 1])
        return column[right - 1] + share * (column[right] - column[right - 1])


def effective_resumes(resumes: list[Resume]) -> list[Resume]:
    """The resumes that no later resume has made void."""
    return [
        resume
        for place, resume in enumerate(resumes)
        if all(resume.from_step <= later.from_step for later in resumes[place + 1 :])
    ]


def breaks(axis: str, resumes: list[Resume]) -> list[int]:
    """Steps after which a line is broken: on the time axis wherever the run was down, else where steps were lost."""
    return sorted({resume.from_step for resume in effective_resumes(resumes) if axis == "time" or resume.lost_steps})


# Speed

RECENT_STEPS = 50
"""Steps from which speed and time left follow."""


class StepRate:
    """The speed of a run's current attempt; an earlier one may have run on another machine."""

    def __init__(self) -> None:
        self._recent: deque[StepFinished] = deque(maxlen=RECENT_STEPS)
        self._steps = 0
        self._other_seconds = 0.0

    def add_step(self, step: StepFinished) -> None:
        """Add a step."""
        self._steps += 1
        if step.seconds > 0:
            self._recent.append(step)

    def add_other(self, seconds: float) -> None:
        """Add the time of an evaluation or checkpoint; one before the first step happens only once."""
        if self._steps:
            self._other_seconds += seconds

    @property
    def seconds_per_step(self) -> float | None:
        """The time of a recent step with its share of evaluations and checkpoints; None before the first."""
        if not self._recent:
            return None
        return self._seconds() / len(self._recent) + self._other_seconds / self._steps

    @property
    def rows_per_second(self) -> float | None:
        """Over the recent steps together: the mean of their speeds would be too high."""
        return sum(step.rows for step in self._recent) / self._seconds() if self._recent else None

    @property
    def tokens_per_second(self) -> float | None:
        """Likewise."""
        return sum(step.tokens for step in self._recent) / self._seconds() if self._recent else None

    def _seconds(self) -> float:
        return sum(step.seconds for step in self._recent)
