"""The spec with which a run, one of its checkpoints or a model folder predicts new rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backend import registry
from backend.contract import spec_file
from backend.contract.errors import InputError
from backend.contract.heads import Head
from backend.contract.places import runs_folder
from backend.contract.run.folder import RunFolder, find_run
from backend.contract.run.group import find_group
from backend.contract.safe_files import user_path
from backend.contract.spec import RunSpec, run_spec
from backend.inspect.recognition import detected_format
from backend.models import inspection
from backend.models.saved_model import read_note
from backend.preflight.engine_choice import to_ask
from backend.preflight.resolve import SPLITS, read_run, resolve

OVERRIDABLE = ("hardware", "evaluation", "task", "data", "model")
"""Sections that `--set` reaches without training again."""
_NAMES_COLUMNS = "column_names"
"""What a run says of its files and no file says of itself: the names that `data.columns` and the model's labels go by."""
_STEP = "step-"
_SHOWN = 5


@dataclass(frozen=True)
class Target:
    """What predicts: a run with the folder of its model or of a checkpoint's, or else a model of that name."""

    name: str
    run: RunFolder | None = None
    model: Path | None = None


def find_target(name: str) -> Target:
    """The run, checkpoint or model folder of that name. Raises InputError if it is a run without a model."""
    checkpoint = checkpoint_of(name)
    if checkpoint:
        return Target(name, checkpoint.run, checkpoint.folder)
    run = find_run(name, runs_folder())
    if run is None:
        _refuse_group(name)
        return Target(name)
    if not has_model(run):
        raise InputError(
            "{target}: this run has no model yet; choose one of its checkpoints, or let it finish or stop it first",
            target=name,
        )
    return Target(name, run, run.model)


def _refuse_group(name: str) -> None:
    group = find_group(name, runs_folder())
    if group is not None:
        own = ", ".join(run.name for run in group.made_runs()[:_SHOWN])
        raise InputError("{name}: this is a group of runs; name one of them: {runs}", name=name, runs=own)


def spec_of(
    target: str | Target, task: str | None, changes: list[str], data: Path | None = None, *, generates: bool = False
) -> RunSpec:
    """The spec with which a target predicts: a run's own, or a new one for a model folder. Raises InputError.

    `data` is the file to predict. How the run's own files were read is left out unless it is one of them;
    `new_file.py` adds it where such a file needs it.
    """
    check_changes(changes)
    found = find_target(target) if isinstance(target, str) else target
    if found.run is None or found.model is None:
        return _of_model(found.name, task, changes, generates)
    return _of_run(found.run, found.model, changes, data)


def _of_run(run: RunFolder, model: Path, changes: list[str], data: Path | None) -> RunSpec:
    values = spec_file.read_run(run.spec)
    run_spec(values)  # the sections are what they must be before some are changed
    values["model"] = {
        **values["model"],
        "name_or_path": str(model),
        "tokenizer": None,
        "initialise": "pretrained",
        "weights": "auto",
        "config": {},
    }
    if data is not None:
        values["data"] = _reading(values["data"], user_path(data).absolute())
    hardware = values.get("hardware") or {}
    wanted = spec_file.apply_changes({"hardware": {}}, changes)["hardware"].get("engine")
    values["hardware"] = to_ask(hardware, wanted)
    return resolve(spec_file.apply_changes(values, changes), run.path)


def _reading(own: Mapping[str, Any], file: Path) -> dict[str, Any]:
    """A run's `data` section for another file: without settings of the run's files, unless it is one of them."""
    named = [own[split] for split in SPLITS if isinstance(own.get(split), str | list)]
    files = {Path(path).resolve() for one in named for path in ([one] if isinstance(one, str) else one)}
    if files & {file.resolve(), file.resolve().parent}:
        return dict(own)
    of_files = file_settings(own)
    kept = {name: value for name, value in own.items() if name not in of_files}
    if own.get("format", "auto") not in ("auto", "text") and file.is_file():
        kept["format"] = detected_format(file)  # a table named .txt, as the run's may have been
    return kept


def file_settings(own: Mapping[str, Any]) -> dict[str, Any]:
    """What a run's `data` section says about how its files are read, which another file may not share."""
    fields = registry.find("source", own.get("source", "files"), "data.source").Settings.model_fields
    of_file = {name for name, field in fields.items() if (field.json_schema_extra or {}).get("of_file")}
    return {name: value for name, value in own.items() if name in of_file - {_NAMES_COLUMNS}}


def _of_model(target: str, task: str | None, changes: list[str], generates: bool) -> RunSpec:
    folder = user_path(target)
    note = read_note(folder) if folder.is_dir() else None
    kind = task or (note["task"]["type"] if note else _writing_task(folder) if generates else None)
    if kind is None:
        raise InputError(
            "{target}: there is no run with that name (burnish runs lists them); for a model, add "
            "--task, one of {registry}",
            target=target,
            registry=", ".join(registry.names("task")),
        )
    own = note["task"] if note and note["task"]["type"] == kind else {"type": kind, **_labels_per_row(folder, kind)}
    values = {
        "task": own,
        "model": {"name_or_path": target, "trust_remote_code": True},  # consent is still required
        "data": {"columns": note["columns"] if note else {}},
    }
    return resolve(spec_file.apply_changes(values, changes), Path.cwd())


def _labels_per_row(folder: Path, kind: str) -> dict[str, Any]:
    """The setting for a model from elsewhere whose configuration says that each of its labels is there or not."""
    several = kind == "text_classification" and folder.is_dir()
    problem = inspection.read_config(folder).get("problem_type") if several else None
    return {"labels_per_row": "many"} if problem == Head.MULTI_LABEL_CLASSIFICATION.declared.problem_type else {}


def _writing_task(folder: Path) -> str:
    """What a model from elsewhere does with a prompt: one with an encoder answers it, any other continues it."""
    return "seq2seq_lm" if inspection.read_config(folder).get("is_encoder_decoder") else "causal_lm"


def check_changes(changes: list[str]) -> None:
    """Raises InputError if one concerns a setting that only training again can change."""
    for change in changes:
        section = change.split(".", 1)[0].split("=", 1)[0]
        if section not in OVERRIDABLE:
            raise InputError(
                "--set {change}: only {overridable} can be changed without retraining",
                section,
                change=change,
                overridable=", ".join(OVERRIDABLE),
            )
        if change.startswith("data.max_rows"):
            raise InputError(
                "--set {change}: every row of --data is used; use a file with fewer rows",
                "data.max_rows",
                change=change,
            )


# A run's checkpoint, whose folder can be used wherever a run or a model is named


@dataclass(frozen=True)
class CheckpointTarget:
    """The weights after one step of a run; the rest of the model folder comes from the run."""

    run: RunFolder
    folder: Path


def checkpoint_of(target: str) -> CheckpointTarget | None:
    """The checkpoint in that folder, `RUN/checkpoints/step-000500`; None if the target is something else. Raises InputError."""
    for path in (runs_folder() / target, user_path(target)):
        run = RunFolder(path.absolute().parent.parent)
        is_one = path.parent.name == run.checkpoints.name and path.name.startswith(_STEP)
        if not is_one or not path.is_dir():
            continue
        if fault := run.fault():
            raise InputError(fault)
        if run.exists():
            run.check()
            return CheckpointTarget(run, path.absolute())
    return None


def has_model(run: RunFolder) -> bool:
    """Whether the run has saved its `model/`."""
    return (run.model / "config.json").is_file()


def note_of(checkpoint: CheckpointTarget) -> dict[str, Any]:
    """The note with the task's facts. Raises InputError if the checkpoint has none and the run has no model."""
    note = read_note(checkpoint.folder) or read_note(checkpoint.run.model)
    if note is None:
        raise InputError(
            "{folder}: this checkpoint was written by an older release and cannot be used on its "
            "own; let the run finish or stop it first",
            folder=checkpoint.folder,
        )
    return note


def start_spec(checkpoint: CheckpointTarget) -> RunSpec | None:
    """The spec for loading its weights as in training, onto the model that the run started from.

    None if the run's `model/` is a whole model of the same shape, which is enough.
    """
    spec = read_run(checkpoint.run)
    return spec if spec.adapter is not None or not has_model(checkpoint.run) else None
