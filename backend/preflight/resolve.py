"""Resolves a spec's text to validated settings and absolute paths."""

from pathlib import Path
from typing import Any

from backend import registry
from backend.contract import spec_file
from backend.contract.errors import InputError
from backend.contract.lengths import FITTED
from backend.contract.run.folder import RunFolder
from backend.contract.safe_files import user_path
from backend.contract.safe_text import escape_controls, join_surrogates
from backend.contract.spec import RunSpec, run_spec, validate
from backend.contract.spec.auto import AUTO
from backend.data.sources.source import Source
from backend.preflight import metrics, model_options
from backend.preflight.engine_choice import check_processes
from backend.tasks.task import Task

SPLITS = ("train", "validation", "test")
BEFORE_AUTO = {
    "batch_size": 32, "epochs": 3, "learning_rate": 2e-5, "warmup": 0.0, "gradient_checkpointing": False,
}  # fmt: skip
"""The defaults of `training` before there was `auto`."""


def read_spec(path: Path, changes: list[str] | None = None) -> RunSpec:
    """The spec in a file with `--set` changes, complete and with absolute paths. Raises InputError."""
    values = spec_file.apply_changes(spec_file.read(path), changes or [])
    return resolve(values, path.absolute().parent)


def read_run(
    folder: RunFolder, changes: list[str] | None = None, *, kept: Path | None = None, to_write: bool = False
) -> RunSpec:
    """The spec of a run folder, possibly untrusted: checks its files, then every setting. Raises InputError.

    `kept` is another spec in the folder, of an earlier attempt. `to_write` is set when an attempt will start in it.
    """
    folder.check(to_write=to_write)
    values = spec_file.apply_changes(spec_file.read_run(kept or folder.spec), changes or [])
    return resolve(_with_numbers(values), folder.path)


def _with_numbers(values: dict[str, Any]) -> dict[str, Any]:
    """The values of a run's spec, with the defaults of before there was `auto` where it gives no number.

    Every run that Burnish starts has numbers; a folder made by hand, or by a stranger, may not.
    """
    training = values.get("training")
    if training is not None and not isinstance(training, dict):
        return values  # validation says what is wrong
    given = {name: value for name, value in (training or {}).items() if not (name in BEFORE_AUTO and value == AUTO)}
    return {**values, "training": {**BEFORE_AUTO, **given}}


def resolve(values: dict[str, Any], base: Path) -> RunSpec:
    """The spec from plain values: open sections validated by their owners, relative paths resolved from `base`."""
    _check_texts(values)
    spec = run_spec(values)
    task = registry.find("task", spec.task["type"], "task.type")
    source = registry.find("source", spec.data.source, "data.source")
    engine = registry.find("engine", spec.hardware.engine, "hardware.engine")
    settings = validate(task.Settings, spec.task, "task")
    data = validate(source.Settings, spec.data.model_extra or {}, "data")
    check_processes(spec)
    hardware = validate(engine.Settings, spec.hardware.model_extra or {}, "hardware")
    model_options.optimizer_options(spec)
    adapter = model_options.adapter_settings(spec)
    _check_metric(spec, task(settings), source)
    return spec.model_copy(
        update={
            "task": settings.model_dump(exclude=set(FITTED - settings.model_fields_set)),
            "model": spec.model.model_copy(update=_model_paths(spec, base)),
            "data": spec.data.model_copy(
                update={**data.model_dump(), **_data_paths(spec, data.model_dump(), source, base)}
            ),
            "hardware": spec.hardware.model_copy(update=hardware.model_dump()),
            "adapter": adapter.model_dump() if adapter else None,
        }
    )


def _check_texts(value: Any, key: str = "") -> None:
    """Reject text that no file can hold; spec files cannot contain it, but values from the window or a library may."""
    if isinstance(value, str):
        try:
            join_surrogates(value)
        except ValueError as error:
            raise InputError("{key}: {error}", key, key=escape_controls(key), error=error) from None
    elif isinstance(value, dict):
        for name, part in value.items():
            _check_texts(name, key)
            _check_texts(part, f"{key}.{name}" if key else str(name))
    elif isinstance(value, list | tuple):
        for part in value:
            _check_texts(part, key)


def _check_metric(spec: RunSpec, task: Task, source: type[Source]) -> None:
    metric = spec.evaluation.best_metric
    metrics.check(spec, task)
    has_validation = spec.data.validation is not None or "validation" in getattr(source, "own_splits", ())
    evaluates = has_validation and spec.evaluation.every != "never"
    if not evaluates and (metric is not None or spec.training.early_stopping is not None):
        key = "evaluation.best_metric" if metric is not None else "training.early_stopping"
        raise InputError(
            "{key}: this requires evaluations; set data.validation (to a file, or a fraction such as 0.1)", key, key=key
        )


def _model_paths(spec: RunSpec, base: Path) -> dict[str, Any]:
    return {key: _folder_or_id(getattr(spec.model, key), base) for key in ("name_or_path", "tokenizer")}


def _folder_or_id(value: str | None, base: Path) -> str | None:
    if value is None:
        return None
    path = base / user_path(value)
    return str(path) if value.startswith((".", "/", "~")) or path.exists() else value


def _data_paths(spec: RunSpec, extra: dict[str, Any], source: type[Source], base: Path) -> dict[str, Any]:
    values = {**{split: getattr(spec.data, split) for split in SPLITS}, **extra}
    return {key: absolute(values[key], base) for key in source.path_fields if key in values}


def absolute(value: Any, base: Path) -> Any:
    """A path, or a list of paths, resolved from `base`; anything else unchanged."""
    if isinstance(value, list):
        return [absolute(one, base) for one in value]
    return str(base / user_path(value)) if isinstance(value, str) else value
