"""Decides which evaluation was best and when to stop early, as a fold over evaluations, so that resuming agrees."""

from collections.abc import Iterable, Mapping
from math import isfinite

from backend.contract.run.events import AnyEvent, EvaluationFinished, RunResumed
from backend.contract.spec import RunSpec
from backend.preflight.metrics import MetricDirections


class BestEvaluation:
    """Follows `best_metric` (or the loss, for early stopping alone) over the evaluations of the validation data."""

    def __init__(self, spec: RunSpec) -> None:
        self.metric = spec.evaluation.best_metric or "loss"
        self.keeps_checkpoint = spec.evaluation.best_metric is not None
        self._greater_is_better = MetricDirections.of(spec).greater_is_better(self.metric)
        self.step: int | None = None
        self.value: float | None = None
        self._patience = spec.training.early_stopping
        self._threshold = spec.training.early_stopping_threshold
        self._worse = 0
        self._watched: float | None = None

    def apply(self, metrics: dict[str, float | None], step: int) -> bool:
        """Add one evaluation; returns whether it is the best so far. NaN is never best.

        Nor is any value without a known direction, as in a task with neither a loss nor a chosen metric.
        """
        value = metrics.get(self.metric)
        if value is None or not isfinite(value) or self._greater_is_better is None:
            self._worse += 1
            return False
        if self._improves(value, self._watched, self._threshold):
            self._watched, self._worse = value, 0
        else:
            self._worse += 1
        if not self._improves(value, self.value, 0.0):
            return False
        self.value, self.step = value, step
        return True

    def should_stop(self) -> bool:
        """Whether `early_stopping` evaluations have passed without a better one."""
        return self._patience is not None and self._worse >= self._patience

    def lacks(self, metrics: Mapping[str, object]) -> bool:
        """Whether the deciding metric is missing from these, for example because a variant is misspelt."""
        decides = self.keeps_checkpoint or self._patience is not None
        return decides and self.metric not in metrics

    def _improves(self, value: float, before: float | None, threshold: float) -> bool:
        if before is None:
            return True
        return value - before > threshold if self._greater_is_better else before - value > threshold


def evaluations(events: Iterable[AnyEvent]) -> list[EvaluationFinished]:
    """The valid evaluations of the validation data, without those voided by a resume."""
    kept: list[EvaluationFinished] = []
    for event in events:
        if isinstance(event, EvaluationFinished) and event.split == "validation":
            kept.append(event)
        elif isinstance(event, RunResumed):
            kept = [one for one in kept if one.step <= event.from_step]
    return kept
