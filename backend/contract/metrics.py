"""What a metric is: a function with its name, title, direction, range and tasks."""

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Range = tuple[float | None, float | None]
"""The least and the greatest possible value; None where there is no limit."""
_ROUNDING = 1e-9
Interval = tuple[float, float]
"""The 95 % confidence interval of a metric."""
Score = Callable[[Any, Any, Any], Mapping[str, float]]
"""(predictions, the task's facts, the task's settings) → values by name; empty if nothing can be measured."""


@dataclass(frozen=True)
class Metric:
    """One metric. Each module of `backend.metrics` exports some; a task of another package may list its own."""

    name: str
    title: str
    greater_is_better: bool | None
    """None if unknown; such a metric is shown, but selects no best checkpoint and does not stop early."""
    range: Range = (None, None)
    tasks: tuple[str, ...] = ()
    """The tasks whose evaluations give it."""
    score: Score | None = None
    """Computes it. Metrics of one calculation share a function, which is called once for all of them.

    It may give variants with a suffix too (`f1_PER`); they inherit what is declared here.
    """
    weighted_scores: Callable[[Any, Any, Any], Any] | None = None
    """As `score`, but gives the `WeightedScores` from which its interval is drawn. Metrics share it, too."""
    variant: str = ""
    """The setting of its tasks under which it is given, such as `many`; empty under the usual ones."""


SMALLER = ("loss", "perplexity")
"""Metrics of which less is better, for runs that do not say so themselves."""
_DECIDING = (("accuracy", "matthews", "pearson", "spearman", "mean_average_precision"), ("f1", "exact_match"))
"""Metrics in which guessing is no better than the best constant answer, the usual ones first; in a mean F1 it is."""


def is_at_chance(metrics: Mapping[str, float | None], trivial: Mapping[str, float]) -> bool:
    """Whether nothing is better than a rule without a model, such as the commonest label (`PlanMade.trivial`)."""
    known = [(metrics[name], trivial[name]) for name in deciding_metrics(trivial) if name in metrics]
    return bool(known) and not any(found is not None and found > value + _ROUNDING for found, value in known)


def deciding_metrics(trivial: Mapping[str, float]) -> tuple[str, ...]:
    """Those of a rule's metrics by which a model is no better than it."""
    names = next((names for names in _DECIDING if not trivial.keys().isdisjoint(names)), ())
    return tuple(name for name in names if name in trivial)


def beats_rule(interval: Interval | None, rule: float | None, greater_is_better: bool | None) -> bool | None:
    """Whether a whole interval is better than what a rule without a model reaches; None if that cannot be said."""
    if interval is None or rule is None or greater_is_better is None:
        return None
    low, high = interval
    return low > rule + _ROUNDING if greater_is_better else high < rule - _ROUNDING


def base_metric(name: str, known: Iterable[str]) -> str | None:
    """The known metric that a name is or is a variant of (`f1_PER`, `dev/f1`); the longest match wins."""
    own = name.rsplit("/", 1)[-1]
    return max((one for one in known if own == one or own.startswith(f"{one}_")), key=len, default=None)


def unsure_metrics(
    intervals: Mapping[str, Interval], trivial: Mapping[str, float], directions: Mapping[str, bool]
) -> frozenset[str]:
    """The metrics whose interval is not wholly better than a rule without a model; `directions`: whether greater is better."""
    return frozenset(
        name
        for name, rule in trivial.items()
        if beats_rule(intervals.get(name), rule, directions.get(name, name not in SMALLER)) is False
    )


@dataclass(frozen=True)
class Spread:
    """The values of one metric of several runs that differ only in their seed."""

    mean: float
    deviation: float | None = None
    """The standard deviation between seeds; None for one value."""
    interval: Interval | None = None
    """Student's 95 % interval of the mean over all seeds; None without a deviation."""


def spread(values: Sequence[float]) -> Spread:
    """How the values of several seeds lie."""
    mean = statistics.fmean(values)
    if len(values) < 2 or not all(map(math.isfinite, values)):
        return Spread(mean)
    deviation = statistics.stdev(values)
    half = student_quantile(len(values) - 1) * deviation / math.sqrt(len(values))
    return Spread(mean, deviation, (mean - half, mean + half))


def spreads(runs: Iterable[Mapping[str, float | None]]) -> dict[str, Spread]:
    """How each metric lies that all runs have as a number."""
    known = [{name: value for name, value in run.items() if value is not None} for run in runs]
    return {
        name: spread([run[name] for run in known])
        for name in (known[0] if known else ())
        if all(name in run for run in known)
    }


def student_quantile(freedom: int) -> float:
    """What Student's t with so many degrees of freedom exceeds, on either side, in 5 % of all cases.

    Source: Abramowitz & Stegun, 26.7.3 and 26.7.4; here because the window has no scipy.
    """
    low, high = 0.0, 13.0  # 12.7 for one degree
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _student_share(middle, freedom) < 0.95 else (low, middle)
    return low


def _student_share(t: float, freedom: int) -> float:
    """How often Student's t lies between -t and t."""
    angle = math.atan(t / math.sqrt(freedom))
    cosine, term, total = math.cos(angle), 1.0, 0.0
    first = 2 if freedom % 2 else 1
    if freedom % 2:
        term = cosine
    for k in range(first, freedom, 2):
        total += term
        term *= cosine**2 * k / (k + 1)
    return 2 / math.pi * (angle + math.sin(angle) * total) if freedom % 2 else math.sin(angle) * total
