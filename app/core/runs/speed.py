"""Owns how quickly a run goes: its speed, and how long a step takes with what evaluations and checkpoints add."""

from collections import deque

from backend.contract.run import events

RECENT_STEPS = 50
"""Steps from which speed and time left follow."""


class Pace:
    """Of the present attempt; an earlier one may have run on another machine."""

    def __init__(self) -> None:
        self._recent: deque[events.StepFinished] = deque(maxlen=RECENT_STEPS)
        self._steps = 0
        self._other_seconds = 0.0

    def add_step(self, step: events.StepFinished) -> None:
        """A step was made."""
        self._steps += 1
        if step.seconds > 0:
            self._recent.append(step)

    def add_other(self, seconds: float) -> None:
        """An evaluation or a checkpoint took so long; before the first step it comes once and not again."""
        if self._steps:
            self._other_seconds += seconds

    @property
    def seconds_per_step(self) -> float | None:
        """A recent step with its share of evaluations and checkpoints; None before the first."""
        if not self._recent:
            return None
        return self._seconds() / len(self._recent) + self._other_seconds / self._steps

    @property
    def rows_per_second(self) -> float | None:
        """Of the recent steps together: the mean of each step's speed would be too high."""
        return sum(step.rows for step in self._recent) / self._seconds() if self._recent else None

    @property
    def tokens_per_second(self) -> float | None:
        """Likewise."""
        return sum(step.tokens for step in self._recent) / self._seconds() if self._recent else None

    def _seconds(self) -> float:
        return sum(step.seconds for step in self._recent)
