"""Which slices of the rows a model answers worse than the others, by more than the chance of having looked at many."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from backend.contract.metrics import Interval
from backend.statistics.paired import holm
from backend.statistics.resampling import FEWEST, WeightedScores, draw_counts, percentiles, wilson

FEWEST_ROWS = 30
"""Rows of a slice, or outside it, below which it is shown but not tested."""
_DRAWS, _FEWEST_DRAWS = 2_000, 200
_MOST = 1_000_000_000
"""Counts of all slices together, which take about 20 seconds."""
FamilyOf = Callable[[np.ndarray], WeightedScores | None]
"""Numbers of rows → what is needed to draw their metric again; None if it cannot be computed from these rows."""
Tick = Callable[[int, int], None]


@dataclass(frozen=True)
class SliceScore:
    """A metric on some rows and on the others; None where it cannot be said of them."""

    value: float | None
    interval: Interval | None
    others: float | None
    """On the rows outside the slice."""
    p: float | None = None
    """How often a difference at least as large would occur if rows were put into the slice by chance; None if not tested."""
    p_holm: float | None = None
    """The same, corrected for the number of slices that were tested."""


def score_slices(
    family_of: FamilyOf,
    metric: str,
    slices: Sequence[np.ndarray],
    rows: int,
    groups: np.ndarray | None = None,
    tick: Tick = lambda done, total: None,
) -> list[SliceScore]:
    """The metric on each slice, against that on the rows outside it. `slices` are (rows of the slice,) numbers.

    A share of right rows is tested by Fisher's exact test; any other metric, and rows that depend on each other
    (`groups`), by Student's t with the error of the difference over draws of all rows. Holm's correction covers every
    slice that was tested, and holds however they overlap.
    """
    whole = family_of(np.arange(rows))
    right = whole.shares.get(metric) if whole is not None and groups is None else None
    if right is not None and len(right) == rows:
        scores = [_score_share(right, one) for one in slices]
    else:
        scores = _score_drawn(family_of, metric, slices, rows, groups, tick)
    tested = [place for place, one in enumerate(scores) if one.p is not None]
    raised = dict(zip(tested, holm([scores[place].p or 0.0 for place in tested]), strict=True))
    return [
        SliceScore(one.value, one.interval, one.others, one.p, raised.get(place)) for place, one in enumerate(scores)
    ]


def _others(own: np.ndarray, rows: int) -> np.ndarray:
    return np.setdiff1d(np.arange(rows), own, assume_unique=True)


def _score_share(right: np.ndarray, own: np.ndarray) -> SliceScore:
    from scipy.stats import fisher_exact  # loads slowly

    inside, outside = right[own], right[_others(own, len(right))]
    value, others = (float(one.mean()) if len(one) else None for one in (inside, outside))
    interval = wilson(inside) if len(inside) else None
    if min(len(inside), len(outside)) < FEWEST_ROWS:
        return SliceScore(value, interval, others)
    table = [[int(one.sum()), int((~one).sum())] for one in (inside, outside)]
    return SliceScore(value, interval, others, float(fisher_exact(table).pvalue))  # pyright: ignore[reportAttributeAccessIssue]


def _score_drawn(
    family_of: FamilyOf,
    metric: str,
    slices: Sequence[np.ndarray],
    rows: int,
    groups: np.ndarray | None,
    tick: Tick,
) -> list[SliceScore]:
    wanted = _MOST // max(1, rows * len(slices))
    draws = max(_FEWEST_DRAWS, min(_DRAWS, wanted))
    found: list[SliceScore] = []
    for place, own in enumerate(slices):
        found.append(_score_one(family_of, metric, own, rows, groups, draws))
        tick(place + 1, len(slices))
    return found


def _score_one(
    family_of: FamilyOf, metric: str, own: np.ndarray, rows: int, groups: np.ndarray | None, draws: int
) -> SliceScore:
    sides = own, _others(own, rows)
    families = [family_of(side) if len(side) else None for side in sides]
    value, others = (
        _only(one, metric, np.ones((1, len(side)))) for one, side in zip(families, sides, strict=True)
    )  # fmt: skip
    units = [len(side) if groups is None else len(np.unique(groups[side])) for side in sides]
    if value is None or others is None or _is_few(sides, units):
        return SliceScore(_first(value), None, _first(others))
    drawn: list[list[np.ndarray]] = [[], []]
    for counts in draw_counts(rows, groups, draws):
        for kept, one, side in zip(drawn, families, sides, strict=True):
            assert one is not None
            kept.append(one.scores(counts[:, side])[metric])
    inside, outside = map(np.concatenate, drawn)
    if not np.isfinite(inside).all() or not np.isfinite(outside).all():
        return SliceScore(_first(value), None, _first(others))
    low, high = percentiles(inside)
    difference, error = float(value[0] - others[0]), float((inside - outside).std())
    spreads = [float(one.std()) for one in (inside, outside)]
    for spread, other, count, others_count in zip(spreads, reversed(spreads), units, reversed(units), strict=True):
        if spread < 1e-12:
            error = math.hypot(error, _error_of_alike(count, math.hypot(difference, other * math.sqrt(others_count))))
    p = _p_of(difference, error, min(units) - 1)
    return SliceScore(_first(value), (low, high) if low < high else None, _first(others), p)


def _is_few(sides: Sequence[np.ndarray], units: Sequence[int]) -> bool:
    return min(map(len, sides)) < FEWEST_ROWS or min(units) < FEWEST


def _only(family: WeightedScores | None, metric: str, counts: np.ndarray) -> np.ndarray | None:
    found = family.scores(counts).get(metric) if family is not None else None
    return None if found is None or not np.isfinite(found).all() else found


def _first(value: np.ndarray | None) -> float | None:
    return None if value is None else float(value[0])


def _error_of_alike(units: int, distance: float) -> float:
    """The standard error of a side on which no draw differs, as if one of two more rows or groups had differed by `distance`.

    After A. Agresti and B. Coull, Approximate is better than "exact", 1998.
    """
    share = 1 / (units + 2)
    return distance * math.sqrt(share * (1 - share) / units)


def _p_of(difference: float, error: float, freedom: int) -> float:
    """By Student's t, with as many degrees of freedom as the smaller side has rows or groups, less one."""
    from scipy.stats import t  # loads slowly

    return float(2 * t.sf(abs(difference) / error, freedom)) if error else 1.0
