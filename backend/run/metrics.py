"""Knows the metrics of a run: its task's and those that installed packages add, and whether greater values are better."""

from typing import Any

import pyarrow as pa

from backend import registry
from backend.contract.errors import InputError
from backend.contract.metrics import base_metric, declared
from backend.contract.spec import RunSpec, validated
from backend.tasks.task import Task

_FIELD = "evaluation.metrics"


def check(spec: RunSpec, task: Task) -> None:
    """Raises InputError for a metric that nobody brings, that does not measure the task, or that cannot decide what is best."""
    for name in spec.evaluation.metrics:
        metric, kind = registry.find("metric", name, _FIELD), spec.task["type"]
        if metric.tasks != "*" and kind not in metric.tasks:
            raise InputError(f"{_FIELD}: {name} measures {', '.join(metric.tasks)}, not {kind}", _FIELD)
    best, known = spec.evaluation.best_metric, _directions(spec, task)
    if best is not None and base_metric(best, known) is None:
        raise InputError(
            f"evaluation.best_metric: {best!r} is no metric of {spec.task['type']}; there are {', '.join(known)}",
            "evaluation.best_metric",
        )
    if (best is not None or spec.training.early_stopping is not None) and _direction(best or "loss", known) is None:
        _refuse_undeclared(best, known)


def _refuse_undeclared(best: str | None, known: dict[str, bool | None]) -> None:
    others = ", ".join(name for name, direction in known.items() if direction is not None) or "none"
    if best is not None:
        raise InputError(
            f"evaluation.best_metric: nobody has declared whether a greater {best!r} is better, so no checkpoint is the "
            f"best by it; choose another ({others}), or declare greater_is_better where the metric is defined",
            "evaluation.best_metric",
        )
    raise InputError(
        "training.early_stopping: without evaluation.best_metric it follows the loss, which this task does not declare; "
        f"set evaluation.best_metric ({others})",
        "training.early_stopping",
    )


def directions(spec: RunSpec) -> dict[str, bool | None]:
    """Each metric of the run, and whether a greater value of it and of its variants is better; None where nobody says."""
    kind = registry.find("task", spec.task["type"], "task.type")
    return _directions(spec, kind(validated(kind.Settings, spec.task, "task")))


def greater_is_better(spec: RunSpec, name: str) -> bool | None:
    """Whether a greater value is better of a metric or a variant such as `dev/f1_macro`; None where nobody says."""
    return _direction(name, directions(spec))


def _directions(spec: RunSpec, task: Task) -> dict[str, bool | None]:
    found = {metric.name: metric.greater_is_better for metric in declared(task.metrics)}
    for name in spec.evaluation.metrics:
        direction = registry.find("metric", name, _FIELD).greater_is_better
        found[name] = direction if isinstance(direction, bool) else None
    return found


def _direction(name: str, known: dict[str, bool | None]) -> bool | None:
    base = base_metric(name, known)
    return None if base is None else known[base]


def measured(spec: RunSpec, table: pa.Table) -> dict[str, float]:
    """What the chosen metrics say of a table of predictions: each under its own name, variants with a suffix."""
    found: dict[str, float] = {}
    for name in spec.evaluation.metrics:
        scores: dict[str, Any] = registry.find("metric", name, _FIELD).score(table)
        found |= {_under(name, key): float(value) for key, value in scores.items()}
    return found


def _under(name: str, key: str) -> str:
    return key if key == name or key.startswith(f"{name}_") else f"{name}_{key}"
