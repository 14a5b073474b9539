"""Undo and redo for a draft: its earlier states, and a description of each edit."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

MAX_STEPS = 200
PAUSE_SECONDS = 2.0
"""A longer pause in typing starts another step."""

Moment = TypeVar("Moment")


@dataclass(frozen=True)
class Step:
    """A user's edit, in words such as `Epochs: 3 → 5`; `key` is the field that was typed in, else empty."""

    words: str
    key: str = ""


class History(Generic[Moment]):
    """The states are comparable and immutable; `now` is a clock in seconds."""

    def __init__(self, first: Moment, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._moments = [first]
        self._steps: list[Step] = []
        """`_steps[n]` led from moment n to moment n + 1."""
        self._at = 0
        self._typed_at = float("-inf")

    @property
    def present(self) -> Moment:
        """The current state."""
        return self._moments[self._at]

    @property
    def undo_words(self) -> str:
        """What `undo` would undo; empty if there is nothing."""
        return self._steps[self._at - 1].words if self._at else ""

    @property
    def redo_words(self) -> str:
        """What `redo` would redo; empty if there is nothing."""
        return self._steps[self._at].words if self._at < len(self._steps) else ""

    def record(self, moment: Moment, step: Step) -> None:
        """The draft has become `moment`; what was undone can no longer be redone.

        Consecutive typing in one field is one step, described by the last edit.
        """
        if moment == self.present:
            return
        goes_on = self._goes_on(step)
        del self._moments[self._at + 1 :], self._steps[self._at :]
        if goes_on:
            self._go_on(moment, step)
        else:
            self._moments.append(moment)
            self._steps.append(step)
            self._at += 1
        self._typed_at = self._now() if step.key else float("-inf")
        self._forget_oldest()

    def _goes_on(self, step: Step) -> bool:
        is_last = self._at == len(self._steps) and self._at > 0
        soon = self._now() - self._typed_at <= PAUSE_SECONDS
        return is_last and soon and bool(step.key) and self._steps[-1].key == step.key

    def _go_on(self, moment: Moment, step: Step) -> None:
        if moment == self._moments[self._at - 1]:
            # What was typed has been deleted again: nothing has happened.
            del self._moments[self._at :], self._steps[self._at - 1 :]
            self._at -= 1
            return
        self._moments[self._at] = moment
        self._steps[-1] = step

    def _forget_oldest(self) -> None:
        surplus = max(0, len(self._steps) - MAX_STEPS)
        del self._moments[:surplus], self._steps[:surplus]
        self._at -= surplus

    def end_typing(self) -> None:
        """What is typed next is another step, even in the same field."""
        self._typed_at = float("-inf")

    def amend(self, moment: Moment) -> None:
        """The current state was completed automatically, for example by guessed columns: this is not a step."""
        self._moments[self._at] = moment

    def undo(self) -> Moment:
        """Go back one step, if there is one."""
        self._at = max(0, self._at - 1)
        self._typed_at = float("-inf")
        return self.present

    def redo(self) -> Moment:
        """Go forward one step, if there is one."""
        self._at = min(len(self._steps), self._at + 1)
        self._typed_at = float("-inf")
        return self.present
