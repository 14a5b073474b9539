"""Builds the catalog from the modules that it lists, with the JSON Schema of their settings."""

import importlib.util
from typing import Any

from backend import registry
from backend.contract import spec_file
from backend.contract.catalog import (
    AdapterEntry,
    Catalog,
    EngineEntry,
    MetricEntry,
    OptimizerEntry,
    Preset,
    SourceEntry,
    TaskEntry,
    TrackerEntry,
)
from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.contract.metrics import Metric, Range
from backend.contract.resources import resource
from backend.contract.spec import RunSpec, Section
from backend.contract.spec.search import SearchSection
from backend.contract.spec.tokenizer_training import TokenizerTraining
from backend.metrics.metric import declared_metrics


def build_catalog(versions: dict[str, str]) -> Catalog:
    """Build the static catalog from scratch."""
    return Catalog(
        tasks=[_task(name, task) for name, task in registry.all_of("task").items()],
        sources=[_source(name, source) for name, source in registry.all_of("source").items()],
        engines=[engine_entry(name, engine) for name, engine in registry.all_of("engine").items()],
        presets=presets(),
        spec=_add_choices(RunSpec.model_json_schema()),
        versions=versions,
        optimizers=[
            OptimizerEntry(name, one.title, one.description, _schema(one.Settings))
            for name, one in registry.all_of("optimizer").items()
        ],
        adapters=[
            AdapterEntry(name, one.title, one.description, _schema(one.Settings))
            for name, one in registry.all_of("adapter").items()
        ],
        mirrors=[
            TrackerEntry(name, one.title, one.description, _schema(one.Settings))
            for name, one in registry.all_of("mirror").items()
        ],
        metrics=[*_task_metrics(), *(_metric(name, metric) for name, metric in registry.all_of("metric").items())],
        tokenizer_training=_schema(TokenizerTraining),
        search=_schema(SearchSection),
        problems=registry.problems(),
    )


def presets() -> list[Preset]:
    """The shipped presets; each file holds a title, a description and a fragment of a spec."""
    folder = resource("presets")
    return [_preset(path.stem, spec_file.read(path)) for path in sorted(folder.glob("*.yaml"))]


_MODULES = {"orbax-checkpoint": "orbax.checkpoint"}
"""Distributions whose module has another name."""


def missing(engine: Any) -> str:
    """What to install before this engine can be used; empty if it is ready."""
    absent = [name for name in engine.requires if not _is_installed(name)]
    return (
        message(
            "{absent} missing; install with: pip install 'burnish[{extra}]'",
            absent=", ".join(absent),
            extra=engine.extra,
        )
        if absent
        else ""
    )


def _is_installed(distribution: str) -> bool:
    module = _MODULES.get(distribution, distribution.replace("-", "_"))
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # what it lies in
        return False


def _schema(settings: type[Section]) -> dict[str, Any]:
    return settings.model_json_schema()


def _add_choices(spec: dict[str, Any]) -> dict[str, Any]:
    """The schema with the registered names added to each field that declares a `kind`."""
    for section in spec["$defs"].values():
        for field in section.get("properties", {}).values():
            if "kind" in field:
                field["enum"] = list(registry.all_of(field.pop("kind")))
    return spec


def _task_metrics() -> list[MetricEntry]:
    """Each task metric once, with the tasks that report it."""
    tasks: dict[tuple[str, str, bool | None, Range], list[str]] = {}
    for name, task in registry.all_of("task").items():
        for one in _metrics_of(task):
            tasks.setdefault((one.name, one.title, one.greater_is_better, one.range), []).append(name)
    return [MetricEntry(name, title, names, greater, range) for (name, title, greater, range), names in tasks.items()]


def _metrics_of(task: Any) -> list[Metric]:
    """The metrics of a task, under whatever settings."""
    found = [*task.metrics, *getattr(task, "other_metrics", ())]
    return list({(one.name, one.title): one for one in declared_metrics(found)}.values())


def _metric(name: str, metric: Any) -> MetricEntry:
    tasks = [] if metric.tasks == "*" else list(metric.tasks)
    direction = metric.greater_is_better if isinstance(metric.greater_is_better, bool) else None
    return MetricEntry(name, metric.title, tasks, direction)


def _task(name: str, task: Any) -> TaskEntry:
    return TaskEntry(
        name=name,
        title=task.title,
        description=task.description,
        head=str(task.head),
        columns=list(task.columns),
        metrics=list(dict.fromkeys(metric.name for metric in _metrics_of(task))),
        default_metric=task.default_metric,
        settings=_schema(task.Settings),
        defaults=task.defaults,
        # A package that was made for an older Burnish declares neither.
        examples=list(getattr(task, "examples", ())),
        trained_architecture=getattr(task, "trained_architecture", ""),
        try_settings=dict(getattr(task, "try_settings", {})),
        row_view=getattr(task, "row_view", ""),
    )


def _source(name: str, source: Any) -> SourceEntry:
    own: list[str] = list(getattr(source, "own_splits", ()))
    return SourceEntry(name, source.title, source.description, _schema(source.Settings), own, list(source.path_fields))


def engine_entry(name: str, engine: Any) -> EngineEntry:
    """The catalog's entry for an engine, made without importing its framework."""
    return EngineEntry(
        name=name,
        title=engine.title,
        description=engine.description,
        settings=_schema(engine.Settings),
        missing=missing(engine),
        architectures=list(engine.architectures()),
        optimizers=list(engine.optimizers),
        continues=list(engine.continues),
    )


def _preset(name: str, values: dict[str, Any]) -> Preset:
    if not isinstance(values.get("spec"), dict):
        raise InputError("the preset {name} has no spec; it needs a title, a description and a spec", name=name)
    return Preset(name, str(values.get("title", name)), str(values.get("description", "")), values["spec"])
