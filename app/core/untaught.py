"""Owns two signs of a run that taught nothing: a loss that ends above where it began, and a model of one label."""

from collections.abc import Mapping, Sequence
from math import isclose
from statistics import fmean

FAR_ABOVE = 1.5
"""Every one of the last losses stands this far above the first, which was computed before any weight was changed."""
LAST_LOSSES = 20
FEWEST_LOSSES = 4
HIGH_RATE = 1e-3
"""From here on a learning rate is as likely too high as too low."""


def risen(losses: Sequence[float]) -> tuple[float, float] | None:
    """The first loss and the mean of the last ones, where they stand far above it; None where they do not.

    Losses of one step each jump: a first one that was small by luck is no sign where the last ones come near it, or
    differ among each other as much.
    """
    if len(losses) < FEWEST_LOSSES:
        return None
    last = losses[-max(2, min(LAST_LOSSES, len(losses) // 4)) :]
    first, now = losses[0], fmean(last)
    return (first, now) if min(last) > max(FAR_ABOVE * first, now / 4) else None


def predicts_one_label(metrics: Mapping[str, float | None]) -> bool:
    """Whether scores of a classifier can only come from one label for every row.

    Such a model has a Matthews correlation of exactly 0, and of a share p of right answers follows its weighted F1,
    p · 2p / (1 + p); where instead the rows have one label only, that is 2p / (1 + p).
    """
    share, f1 = metrics.get("accuracy"), metrics.get("f1_weighted")
    if metrics.get("matthews") != 0.0 or share is None or not 0 < share < 1:
        return False
    return f1 is None or isclose(f1, 2 * share * share / (1 + share), abs_tol=1e-6)
