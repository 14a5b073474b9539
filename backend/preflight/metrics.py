"""The metrics of a run: its task's and those of installed packages, and whether greater values are better."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from backend import registry
from backend.contract.errors import InputError
from backend.contract.metrics import base_metric
from backend.contract.spec import RunSpec, validate
from backend.metrics.metric import declared_metrics
from backend.tasks.task import Task

_FIELD = "evaluation.metrics"


@dataclass(frozen=True)
class MetricDirections:
    """Each metric of a run, and whether a greater value of it and its variants is better; None if unknown."""

    known: Mapping[str, bool | None]

    @classmethod
    def of(cls, spec: RunSpec) -> "MetricDirections":
        """The directions for the run's task and the metrics that its spec adds."""
        kind = registry.find("task", spec.task["type"], "task.type")
        return cls(_directions(spec, kind(validate(kind.Settings, spec.task, "task"))))

    def greater_is_better(self, name: str) -> bool | None:
        """The direction of a metric or a variant such as `dev/f1_macro`."""
        base = base_metric(name, self.known)
        return None if base is None else self.known[base]


def check(spec: RunSpec, task: Task) -> None:
    """Raises InputError for a metric that is unknown, does not apply to the task, or cannot decide what is best."""
    for name in spec.evaluation.metrics:
        metric, kind = registry.find("metric", name, _FIELD), spec.task["type"]
        if metric.tasks != "*" and kind not in metric.tasks:
            raise InputError(
                "{field}: {name} is a metric for {tasks}, not {kind}",
                _FIELD,
                field=_FIELD,
                name=name,
                tasks=", ".join(metric.tasks),
                kind=kind,
            )
    best, directions = spec.evaluation.best_metric, MetricDirections(_directions(spec, task))
    if best is not None and base_metric(best, directions.known) is None:
        raise InputError(
            "evaluation.best_metric: {best} is not a metric of {task}; choose one of {known}",
            "evaluation.best_metric",
            best=repr(best),
            task=spec.task["type"],
            known=", ".join(directions.known),
        )
    follows = best is not None or spec.training.early_stopping is not None
    if follows and directions.greater_is_better(best or "loss") is None:
        _refuse_undeclared(best, directions.known)


def _refuse_undeclared(best: str | None, known: Mapping[str, bool | None]) -> None:
    others = ", ".join(name for name, direction in known.items() if direction is not None) or "none"
    if best is not None:
        raise InputError(
            "evaluation.best_metric: Burnish does not know whether higher {best} is better, so it cannot select "
            "the best checkpoint; choose another metric ({others}), or set greater_is_better in the metric's "
            "definition",
            "evaluation.best_metric",
            best=repr(best),
            others=others,
        )
    raise InputError(
        "training.early_stopping: without evaluation.best_metric it uses the loss, which this "
        "task does not report; set evaluation.best_metric ({others})",
        "training.early_stopping",
        others=others,
    )


def _directions(spec: RunSpec, task: Task) -> dict[str, bool | None]:
    found = {metric.name: metric.greater_is_better for metric in declared_metrics(task.metrics)}
    for name in spec.evaluation.metrics:
        direction = registry.find("metric", name, _FIELD).greater_is_better
        found[name] = direction if isinstance(direction, bool) else None
    return found


def compute_metrics(spec: RunSpec, table: pa.Table) -> dict[str, float]:
    """The chosen metrics of a table of predictions: each under its own name, variants with a suffix."""
    found: dict[str, float] = {}
    for name in spec.evaluation.metrics:
        scores: dict[str, Any] = registry.find("metric", name, _FIELD).score(table)
        found |= {_prefix_key(name, key): float(value) for key, value in scores.items()}
    return found


def _prefix_key(name: str, key: str) -> str:
    return key if key == name or key.startswith(f"{name}_") else f"{name}_{key}"
