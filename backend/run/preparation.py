"""Owns the way from a spec's text to checked settings, rows and labels, before any framework is loaded."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backend import registry
from backend.contract.errors import InputError
from backend.contract.places import cache_folder, is_offline
from backend.contract.spec import RunSpec, run_spec, validated
from backend.contract.spec import file as spec_file
from backend.data.rows import Rows
from backend.data.sources.source import Reading, Report, Source
from backend.data.split import split_off
from backend.hardware import devices
from backend.models import inspection, location
from backend.models.location import ModelLocation
from backend.models.positions import longest_sequence
from backend.run import metrics, options
from backend.tasks.task import Columns, Facts, Task, key_of, used_columns
from backend.tokenizers.loading import open_tokenizer

SPLITS = ("train", "validation", "test")


def quiet(done: int, total: int, unit: str) -> None:
    """A report that nobody listens to."""


def read_spec(path: Path, changes: list[str] | None = None) -> RunSpec:
    """The spec in a file with `--set` changes, complete and with absolute paths. Raises InputError."""
    values = spec_file.with_changes(spec_file.read(path), changes or [])
    return resolve(values, path.absolute().parent)


def resolve(values: dict[str, Any], base: Path) -> RunSpec:
    """The spec of plain values: the open sections checked by their owners, relative paths taken from `base`."""
    spec = run_spec(values)
    task = registry.find("task", spec.task["type"], "task.type")
    source = registry.find("source", spec.data.source, "data.source")
    engine = registry.find("engine", spec.hardware.engine, "hardware.engine")
    settings = validated(task.Settings, spec.task, "task")
    data = validated(source.Settings, spec.data.model_extra or {}, "data")
    hardware = validated(engine.Settings, spec.hardware.model_extra or {}, "hardware")
    options.optimizer_options(spec)
    adapter = options.adapter_settings(spec)
    if spec.hardware.processes > 1:
        raise InputError("hardware.processes: this Burnish trains in one process; leave it at 1", "hardware.processes")
    _check_metric(spec, task(settings), source)
    return spec.model_copy(
        update={
            "task": settings.model_dump(),
            "model": spec.model.model_copy(update=_model_paths(spec, base)),
            "data": spec.data.model_copy(
                update={**data.model_dump(), **_data_paths(spec, data.model_dump(), source, base)}
            ),
            "hardware": spec.hardware.model_copy(update=hardware.model_dump()),
            "adapter": adapter.model_dump() if adapter else None,
        }
    )


def _check_metric(spec: RunSpec, task: Task, source: type[Source]) -> None:
    metric = spec.evaluation.best_metric
    metrics.check(spec)
    if metric is not None and not is_metric(metric, (*task.metrics, *spec.evaluation.metrics)):
        raise InputError(
            f"evaluation.best_metric: {metric!r} is no metric of {spec.task['type']}; there are {', '.join(task.metrics)}",
            "evaluation.best_metric",
        )
    has_validation = spec.data.validation is not None or "validation" in getattr(source, "own_splits", ())
    evaluates = has_validation and spec.evaluation.every != "never"
    if not evaluates and (metric is not None or spec.training.early_stopping is not None):
        key = "evaluation.best_metric" if metric is not None else "training.early_stopping"
        raise InputError(
            f"{key}: this needs evaluations; give data.validation (a file, or a fraction such as 0.1)", key
        )


def is_metric(name: str, known: tuple[str, ...]) -> bool:
    """Whether an evaluation may give a metric of this name: a known one, one with a suffix, or one of a single file."""
    own = name.rsplit("/", 1)[-1]
    return own in known or own.startswith(tuple(f"{one}_" for one in known))


def _model_paths(spec: RunSpec, base: Path) -> dict[str, Any]:
    return {key: _folder_or_id(getattr(spec.model, key), base) for key in ("name_or_path", "tokenizer")}


def _folder_or_id(value: str | None, base: Path) -> str | None:
    if value is None:
        return None
    path = base / Path(value).expanduser()
    return str(path) if value.startswith((".", "/", "~")) or path.exists() else value


def _data_paths(spec: RunSpec, extra: dict[str, Any], source: type[Source], base: Path) -> dict[str, Any]:
    values = {**{split: getattr(spec.data, split) for split in SPLITS}, **extra}
    return {key: absolute(values[key], base) for key in source.path_fields if key in values}


def absolute(value: Any, base: Path) -> Any:
    """A path, or a list of paths, taken from `base`; anything else as it is."""
    if isinstance(value, list):
        return [absolute(one, base) for one in value]
    return str(base / Path(value).expanduser()) if isinstance(value, str) else value


def make_task(spec: RunSpec) -> Task:
    """The spec's task with its settings."""
    kind = registry.find("task", spec.task["type"], "task.type")
    return kind(validated(kind.Settings, spec.task, "task"))


def make_source(spec: RunSpec) -> Source:
    """The spec's source with its settings."""
    kind = registry.find("source", spec.data.source, "data.source")
    own = {key: value for key, value in (spec.data.model_extra or {}).items() if key in kind.Settings.model_fields}
    return kind(validated(kind.Settings, own, "data"))


def reading(report: Report = quiet) -> Reading:
    """How sources read here: the user's cache, and the network unless it is forbidden."""
    return Reading(cache_folder() / "tables", report, offline=is_offline())


@dataclass(frozen=True)
class Material:
    """The rows of a run, checked and split, and what the task learnt from them."""

    rows: dict[str, Rows]
    """`train`, and `validation` and `test` where there are any."""
    columns: Columns
    facts: Facts
    notes: tuple[str, ...] = ()
    """What a person should know of how the task took the data, in sentences."""


def read_material(spec: RunSpec, model_folder: Path | None, report: Report = quiet) -> Material:
    """Read every split, leave out what cannot be used, fit the task. Raises InputError.

    Test rows need no label: those without are predicted and not scored.
    """
    task, source = make_task(spec), make_source(spec)
    rows = {split: found for split in SPLITS if (found := source.read(split, spec.data, reading(report))) is not None}
    if "train" not in rows:
        raise InputError("data.train: name the training data, for example a CSV file", "data.train")
    columns = choose_columns(task, spec.data.columns, rows["train"])
    for split in rows:
        _check_columns(task, rows[split], columns, split)
        rows[split] = usable(task, rows[split], columns, split, labelled=split != "test")
    if isinstance(spec.data.validation, float | int):
        rows |= _split_off(spec, task, rows["train"], columns)
    facts = task.fit(rows["train"], columns, model_labels(model_folder))
    for split in sorted(rows.keys() - {"train"}, reverse=True):
        task.check(rows[split], columns, facts, split)
    notes = tuple(facts.pop("notes", ()))
    return Material(rows, columns, with_max_length(task, facts, model_folder), notes)


def _split_off(spec: RunSpec, task: Task, train: Rows, columns: Columns) -> dict[str, Rows]:
    fraction = spec.data.validation
    assert isinstance(fraction, float | int)
    if not 0 < fraction < 1:
        raise InputError(f"data.validation: {fraction} is no fraction between 0 and 1, such as 0.1", "data.validation")
    label = task.label_column(columns)
    labels = train.table[label] if label and task.split_by == "label" else None
    kept, taken = split_off(train, float(fraction), spec.training.seed, task.split_by, labels)
    for name, part in (("train", kept), ("validation", taken)):
        if len(part) == 0:
            raise InputError(
                f"data.validation: {fraction} of {len(train)} rows leaves no {name} row; give more data or another fraction",
                "data.validation",
            )
    return {"train": kept, "validation": taken}


def choose_columns(task: Task, given: dict[str, str | None], rows: Rows, to_predict: bool = False) -> dict[str, str]:
    """Role → column: as given, else guessed from the usual names. Raises InputError naming the columns that there are."""
    there = rows.table.column_names
    roles = {column.name: column for column in used_columns(task)}
    for role in given:
        if role not in roles:
            raise InputError(
                f"data.columns.{role}: this task has no such column; it has {', '.join(roles)}", f"data.columns.{role}"
            )
    chosen = {}
    for role, column in roles.items():
        needed = column.required and (column.needed_to_predict or not to_predict)
        name = given.get(role) if role in given else guess_column(column.usual_names, there, set(chosen.values()))
        if name in there:
            chosen[role] = name
        elif given.get(role) is not None and (column.needed_to_predict or not to_predict):
            raise InputError(
                f"data.columns.{role}: there is no column {name!r}; there are {', '.join(there)}",
                f"data.columns.{role}",
            )
        elif needed:
            raise InputError(
                f"data.columns.{role}: say which column holds the {column.title.lower()}; there are {', '.join(there)}",
                f"data.columns.{role}",
            )
    return chosen


def _check_columns(task: Task, rows: Rows, columns: Columns, split: str) -> None:
    """Raises InputError where a split lacks a column that the training data has; test rows may be without labels."""
    there = rows.table.column_names
    for column in used_columns(task):
        name = columns.get(column.name)
        if name is not None and name not in there and (column.needed_to_predict or split != "test"):
            raise InputError(
                f"data.{split}: {rows.files[0]} has no column {name!r} ({column.title.lower()}), which the training data has; "
                f"there are {', '.join(there)}",
                f"data.{split}",
            )


def guess_column(usual_names: list[str], there: list[str], taken: set[str]) -> str | None:
    """The first usual name that the data has, whatever its case."""
    by_name = {name.lower().strip(): name for name in reversed(there) if name not in taken}
    return next((by_name[name] for name in usual_names if name in by_name), None)


def usable(task: Task, rows: Rows, columns: Columns, split: str, labelled: bool = True) -> Rows:
    """The rows that can be used; the others are listed in `skipped`. Raises InputError where none is left."""
    unusable = task.unusable(rows, columns, labelled and _is_labelled(task, rows, columns))
    kept = rows.without(unusable, f"{rows.fingerprint}-usable")
    if len(kept) == 0:
        why = (
            f"all {len(unusable)} were left out, the first one ({rows.place(unusable[0][0])}) for {unusable[0][1]}"
            if unusable
            else "there are none"
        )
        raise InputError(f"{key_of(split)}: no row can be used: {why}", key_of(split))
    return kept


def _is_labelled(task: Task, rows: Rows, columns: Columns) -> bool:
    label = task.label_column(columns)
    return label is None or label in rows.table.column_names


def model_labels(folder: Path | None) -> tuple[str, ...]:
    """The labels that a checkpoint names, in id order; none where they are the nameless LABEL_0, LABEL_1 …"""
    return tuple(inspection.labels(inspection.read_config(folder))) if folder else ()


def with_max_length(task: Task, facts: Facts, folder: Path | None) -> Facts:
    """Facts with `max_length`: what the task's settings say, else the model's limit, at most 100,000."""
    own = getattr(task.settings, "max_length", None)
    config = inspection.read_config(folder) if folder else {}
    return {**facts, "max_length": own or longest_sequence(config) or 100_000}


def locate_model(
    spec: RunSpec, report: Report = quiet, *, local_only: bool = False, convert: bool = False
) -> ModelLocation:
    """The model's folder: given, cached, downloaded or converted. Raises InputError."""
    return location.locate(
        spec.model.name_or_path,
        spec.model.revision,
        cache=cache_folder() / "weights",
        offline=local_only or is_offline(),
        report=report,
        consent_to_convert=convert,
        needs_weights=spec.model.initialise == "pretrained",
    )


def check(spec: RunSpec, report: Report = quiet, *, convert: bool = False) -> RunSpec:
    """Everything that can be known before a run is written: the model's folder, the data, its columns and labels.

    Returns the spec with the guessed columns filled in and a hub model's commit pinned. A hub model that is not here yet
    is left to the run.
    """
    _check_hardware(spec)
    model = _model_here(spec, report, convert)
    folder = model.folder if model else None
    if folder is not None:
        check_model(spec, folder)
        options.check_model_options(spec, folder)
    material = read_material(spec, folder, report)
    commit = model.commit if model and model.commit else spec.model.revision
    return spec.model_copy(
        update={
            "data": spec.data.model_copy(update={"columns": dict(material.columns)}),
            "model": spec.model.model_copy(update={"revision": commit}),
        }
    )


def check_model(spec: RunSpec, folder: Path) -> None:
    """Raises InputError where the model in `folder` cannot do what the spec asks."""
    task = make_task(spec)
    inspection.check(
        folder,
        task.head,
        max_length=getattr(task.settings, "max_length", None),
        from_config=spec.model.initialise == "from_config",
        needs_tokenizer=spec.model.tokenizer is None,
    )
    _check_tokenizer(spec, task, Path(spec.model.tokenizer or folder))


def _check_tokenizer(spec: RunSpec, task: Any, folder: Path) -> None:
    """What a task asks of a tokenizer. One with a tokenizer.json can do it all, and opening it would take seconds."""
    check = getattr(task, "check_tokenizer", None)
    if check is not None and folder.is_dir() and not (folder / "tokenizer.json").is_file():
        check(open_tokenizer(str(folder), options=spec.model.tokenizer_options, offline=is_offline()))


def _check_hardware(spec: RunSpec) -> None:
    """A wish that this machine cannot meet; without a wish nothing is asked, which would take seconds."""
    hardware = spec.hardware
    if hardware.device != "auto" or hardware.devices or hardware.precision != "auto":
        devices.choose(spec, devices.list_devices(hardware.engine))


def _model_here(spec: RunSpec, report: Report, convert: bool) -> ModelLocation | None:
    if Path(spec.model.name_or_path).is_absolute() or is_offline() or convert:
        return locate_model(spec, report, convert=convert)
    try:
        return locate_model(spec, report, local_only=True)
    except InputError:
        return None  # not here yet: the run fetches it as a stage of its own
