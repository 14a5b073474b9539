"""What a metric is: a function with its name, title, direction, range and tasks."""

from collections.abc import Callable, Iterable, Mapping
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
    resampling: Callable[[Any, Any, Any], Any] | None = None
    """As `score`, but gives the `Resampling` from which its interval is drawn. Metrics share it, too."""


def is_at_chance(metrics: Mapping[str, float | None], trivial: Mapping[str, float]) -> bool:
    """Whether nothing is better than a rule without a model, such as the commonest label (`PlanMade.trivial`)."""
    known = [(metrics[name], value) for name, value in trivial.items() if name in metrics]
    return bool(known) and not any(found is not None and found > value + _ROUNDING for found, value in known)


def base_metric(name: str, known: Iterable[str]) -> str | None:
    """The known metric that a name is or is a variant of (`f1_PER`, `dev/f1`); the longest match wins."""
    own = name.rsplit("/", 1)[-1]
    return max((one for one in known if own == one or own.startswith(f"{one}_")), key=len, default=None)
