"""Owns where the steps of a run stand on each x axis: their epoch, the tokens read up to them, the time since the start."""

from array import array
from bisect import bisect_left, bisect_right
from dataclasses import dataclass

from backend.contract.run.events import StepFinished

AXES = ("step", "epoch", "tokens", "time")
"""What a plot's x may be; time is in seconds since the run began, the time between its attempts included."""


@dataclass(frozen=True)
class Resume:
    """The mark that is left where an attempt began anew, what it lost, and how long the run was down before."""

    attempt: int
    from_step: int
    lost_steps: int = 0
    down_seconds: float = 0.0


class StepClock:
    """Grows with every step; a resume cuts it as it cuts the curves."""

    def __init__(self) -> None:
        self._steps, self._epochs, self._tokens, self._seconds = (array("d") for _ in range(4))
        self._columns = {"epoch": self._epochs, "tokens": self._tokens, "time": self._seconds}

    def __len__(self) -> int:
        return len(self._steps)

    def add(self, step: StepFinished, started: float | None) -> None:
        """A step was made by a run that began at `started`, seconds since the epoch."""
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
        """Drop every later step."""
        keep = bisect_right(self._steps, step)
        for column in (self._steps, *self._columns.values()):
            del column[keep:]

    def at(self, axis: str, steps: array) -> array:
        """Where these rising steps stand on one of AXES; between two known steps in proportion, beyond them at the ends."""
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
        """The step that stands nearest to a place on one of AXES."""
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


def standing(resumes: list[Resume]) -> list[Resume]:
    """Those whose place on the curve a later resume has not made void."""
    return [
        resume
        for place, resume in enumerate(resumes)
        if all(resume.from_step <= later.from_step for later in resumes[place + 1 :])
    ]


def breaks(axis: str, resumes: list[Resume]) -> list[int]:
    """Steps after which a line is broken: on the time axis wherever the run was down, else where steps were lost."""
    return sorted({resume.from_step for resume in standing(resumes) if axis == "time" or resume.lost_steps})
