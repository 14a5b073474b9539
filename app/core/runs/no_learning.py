"""Owns the signs of a run that taught nothing: a loss that ends above where it was, one label for all, no entity found."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isclose

from app.core.runs.series import Series, mean

BLOCKS = 40
"""Parts into which a training loss is averaged, since single steps jump."""
FEWEST_STEPS = 40
"""A trend of the training loss needs as many."""
SAMPLED = 400
"""Points that stand for many, so that a long run costs no more than a short one."""
DIVERGED = 1.5
"""A training loss that stands this far above its lowest part, and has given back a quarter of what it had gained."""

FAR_ABOVE = 1.5
"""Every one of the last losses stands this far above the first, which was computed before any weight was changed."""
LAST_LOSSES = 20
FEWEST_LOSSES = 4
HIGH_RATE = 1e-3
"""From here on a learning rate is as likely too high as too low."""


@dataclass(frozen=True)
class Rise:
    """A loss that has risen far, since a step."""

    before: float
    now: float
    since: int


def diverged(losses: Series | None) -> Rise | None:
    """Whether a training loss ends far above its lowest part, or above its beginning: one that breaks at once has no low part."""
    if not losses:
        return None
    if found := _above_its_lowest(losses):
        return found
    above = risen(losses.ys)
    return Rise(*above, int(losses.xs[0])) if above else None


def _above_its_lowest(losses: Series) -> Rise | None:
    found = parts(losses)
    if len(found) < 2:
        return None
    values = [value for _, value in found]
    now, least = values[-1], min(values)
    if now <= DIVERGED * least or now - least <= 0.25 * (values[0] - least):
        return None
    return Rise(least, now, int(found[values.index(least)][0]))


def parts(losses: Series | None) -> list[tuple[float, float]]:
    """The curve as (last step, mean) of about BLOCKS parts, the last of them whole; empty where it is too short."""
    if losses is None or len(losses) < FEWEST_STEPS:
        return []
    size = max(10, len(losses) // BLOCKS)
    ends = range(len(losses), size - 1, -size)
    stride = max(1, size // SAMPLED)
    return [(losses.xs[end - 1], mean(losses.ys[end - size : end : stride])) for end in reversed(ends)]


def risen(losses: Sequence[float]) -> tuple[float, float] | None:
    """The first loss and the mean of the last ones, where they stand far above it; None where they do not.

    Losses of one step each jump: a first one that was small by luck is no sign where the last ones come near it, or
    differ among each other as much.
    """
    if len(losses) < FEWEST_LOSSES:
        return None
    last = losses[-max(2, min(LAST_LOSSES, len(losses) // 4)) :]
    first, now = losses[0], mean(last)
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


def finds_no_entity(metrics: Mapping[str, float | None]) -> bool:
    """Whether scores of tags say that words outside entities are all that is right, as where every tag is O.

    Rows without any entity, of which nothing could be found, have no scores of types.
    """
    none = all(metrics.get(name) == 0.0 for name in ("precision", "recall", "f1"))
    there_are_some = any(name.startswith("f1_") for name in metrics)
    return none and there_are_some and 0 < (metrics.get("accuracy") or 0.0) < 1
