"""Owns the metrics that installed packages add to a task's own."""

from typing import Any

import pyarrow as pa

from backend import registry
from backend.contract.errors import InputError
from backend.contract.spec import RunSpec

_FIELD = "evaluation.metrics"


def check(spec: RunSpec) -> None:
    """Raises InputError for a name that no package brings, or whose metric does not measure the spec's task."""
    for name in spec.evaluation.metrics:
        metric, task = registry.find("metric", name, _FIELD), spec.task["type"]
        if metric.tasks != "*" and task not in metric.tasks:
            raise InputError(f"{_FIELD}: {name} measures {', '.join(metric.tasks)}, not {task}", _FIELD)


def measured(spec: RunSpec, table: pa.Table) -> dict[str, float]:
    """What the chosen metrics say of a table of predictions: each under its own name, variants with a suffix."""
    found: dict[str, float] = {}
    for name in spec.evaluation.metrics:
        scores = registry.find("metric", name, _FIELD).score(table)
        found |= {_under(name, key): float(value) for key, value in scores.items()}
    return found


def plugged(metric: str) -> Any | None:
    """The installed metric that a name such as `file/exactness_mean` comes from."""
    own = metric.rsplit("/", 1)[-1]
    name = next((name for name in registry.names("metric") if own == name or own.startswith(f"{name}_")), None)
    return registry.find("metric", name, _FIELD) if name else None


def _under(name: str, key: str) -> str:
    return key if key == name or key.startswith(f"{name}_") else f"{name}_{key}"
