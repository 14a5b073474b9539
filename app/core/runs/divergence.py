"""Recognizes a training loss that has risen for good, and tells it from the noise of single batches."""

from dataclasses import dataclass
from math import hypot, log, sqrt
from statistics import stdev

from app.core.runs.series import Series, mean

WINDOW = 25
"""Steps of a window; the losses of fewer batches say little."""
PARTS = 20
"""A window of a long run is one of as many parts."""
SAMPLED = 400
"""The number of losses of a window that are looked at, so that a long run costs no more than a short one."""
FAR_ABOVE = 1.5
"""A rise by a smaller factor may be harder data."""
ERRORS = 5.0
"""A rise by fewer standard errors may be chance: the best of many windows is compared."""
LOST = 0.5
"""The share of the improvement that must be lost again."""
FIRST_STEPS = 11
"""A run that diverges at once can be recognized from here on: with fewer steps it may as well be noise."""
SPREADS = 4.0
"""How far above the first loss the others must be, in standard deviations of a batch's loss (both as logarithms)."""
FAR_ABOVE_FIRST = 1.0
"""The right labels have a third of the probability that they had before training, or less."""


@dataclass(frozen=True)
class LossRise:
    """A loss that has risen far: from which value at which step, to which, and the first step of that window."""

    before: float
    now: float
    since: int
    window: int


@dataclass(frozen=True)
class _Window:
    """Some consecutive losses: their mean, and its standard error."""

    first_step: int
    last_step: int
    level: float
    error: float

    def is_far_above(self, other: "_Window") -> bool:
        """Whether it is higher, by much more than chance explains."""
        rise = self.level - other.level
        return self.level > FAR_ABOVE * other.level and rise > ERRORS * hypot(self.error, other.error)


def find_divergence(losses: Series | None) -> LossRise | None:
    """How a training loss has risen far above its best, or above its start; None if it has not."""
    if not losses or len(losses) < FIRST_STEPS:
        return None
    return _rise_from_best(losses) or _rise_from_start(losses)


def _rise_from_best(losses: Series) -> LossRise | None:
    """Windows are compared, because a single batch may have ten times the mean loss."""
    size = max(WINDOW, len(losses) // PARTS)
    found = [_window(losses, end - size, end) for end in range(len(losses), size - 1, -size)]
    if len(found) < 2:
        return None
    now, start, best = found[0], found[-1], min(found, key=lambda window: window.level)
    if not now.is_far_above(best) or now.level - best.level <= LOST * (start.level - best.level):
        return None
    return LossRise(best.level, now.level, best.last_step, now.first_step)


def _rise_from_start(losses: Series) -> LossRise | None:
    """The first loss was computed before any weight was changed, but is of one batch: it may be small by luck.

    With regression and a small batch it often is a tenth of the others, which differ as much among themselves.
    """
    size = max(FIRST_STEPS - 1, min(WINDOW, len(losses) // 4))
    now, first, last = _window(losses, len(losses) - size, len(losses)), losses.ys[0], losses.ys[-size:]
    if min(last) <= max(FAR_ABOVE * first, first + FAR_ABOVE_FIRST, now.level / 4):
        return None
    logarithms = [log(loss) for loss in last]
    if first > 0 and mean(logarithms) - log(first) <= SPREADS * stdev(logarithms):
        return None
    return LossRise(first, now.level, int(losses.xs[0]), now.first_step)


def _window(losses: Series, start: int, end: int) -> _Window:
    values = losses.ys[start : end : max(1, (end - start) // SAMPLED)]
    level = mean(values)
    variance = sum((value - level) ** 2 for value in values) / (len(values) - 1)
    return _Window(int(losses.xs[start]), int(losses.xs[end - 1]), level, sqrt(variance / len(values)))
