"""The input of metrics, and which metrics a task has."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from backend import registry
from backend.contract.metrics import Metric
from backend.statistics.resampling import WeightedScores

Sums = dict[str, tuple[np.ndarray, np.ndarray]]
"""Name → numerator and denominator of each row, both (rows,) float64, for what is summed over rows before dividing."""


@dataclass(frozen=True)
class Predictions:
    """One prediction per row, in the rows' order.

    `table` has `prediction`, `actual` (null if unknown) and the task's own columns, under the names that
    `predictions.csv` uses. `sums` are what a metric needs besides it, for example `loss`. `documents` are further
    files to write beside the CSV, name → text or JSON value.
    """

    table: pa.Table
    sums: Sums = field(default_factory=dict)
    documents: dict[str, Any] = field(default_factory=dict)

    def take(self, rows: np.ndarray) -> "Predictions":
        """The predictions of some rows, without documents."""
        sums = {name: (above[rows], below[rows]) for name, (above, below) in self.sums.items()}
        return Predictions(self.table.take(pa.array(rows)), sums)

    def total(self, name: str) -> tuple[float, float]:
        """Summed numerator and denominator; (0, 0) if there are none."""
        above, below = self.sums.get(name, (np.zeros(0), np.zeros(0)))
        return float(above.sum()), float(below.sum())

    def labelled_rows(self) -> pa.Table:
        """The rows with a known `actual`."""
        return self.table.filter(self.table["actual"].is_valid())


@cache
def metrics_of(task: str, variant: str = "") -> tuple[Metric, ...]:
    """The metrics of every evaluation of a task: the loss and those computed with it, then the other files in order."""
    files = [
        [one for one in metrics if task in one.tasks and one.variant == variant]
        for metrics in registry.all_of("metrics").values()
    ]
    return tuple(metric for metrics in sorted(files, key=_lacks_loss) for metric in metrics)


def _lacks_loss(metrics: Iterable[Metric]) -> bool:
    return all(metric.name != "loss" for metric in metrics)


def measure(metrics: Iterable[Metric], predictions: Predictions, facts: Any, settings: Any) -> dict[str, float]:
    """The values of these metrics and their variants; empty if no label is known."""
    scores: dict[str, float] = {}
    for score in dict.fromkeys(metric.score for metric in metrics):
        scores |= score(predictions, facts, settings) if score else {}
    return scores


def weighted_scores(
    metrics: Iterable[Metric], predictions: Predictions, facts: Any, settings: Any
) -> dict[Any, WeightedScores]:
    """Those of every family of these metrics that has one, by the function that makes it; empty without rows."""
    families = dict.fromkeys(metric.weighted_scores for metric in metrics) if predictions.table.num_rows else {}
    found = {family: family(predictions, facts, settings) for family in families if family}
    return {family: scores for family, scores in found.items() if scores is not None}


def known_rows(predictions: Predictions) -> np.ndarray:
    """The numbers of the rows by which the metrics are computed: those with a known answer."""
    known = predictions.table["actual"].is_valid().to_numpy()
    if "loss" in predictions.sums:
        known = known | (predictions.sums["loss"][1] > 0)
    return np.flatnonzero(known)


def declared_metrics(metrics: Iterable[str | Metric]) -> list[Metric]:
    """A task's metrics as values; one that is only named, not declared by any file, has no direction."""
    known = _metrics_by_name()
    return [
        one if isinstance(one, Metric) else known.get(one, Metric(one, one, greater_is_better=None)) for one in metrics
    ]


@cache
def _metrics_by_name() -> Mapping[str, Metric]:
    found = [metric for metrics in registry.all_of("metrics").values() for metric in metrics]
    # A metric under other settings of a task does not take the name of one under the usual settings.
    return {metric.name: metric for metric in sorted(found, key=lambda one: not one.variant)}
