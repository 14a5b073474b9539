"""What a run's spec says about it: its name, task, model and data, and the role of each column."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from app.core import formatting
from app.core.draft.draft import read_draft
from backend.contract import spec_file
from backend.contract.catalog import Column, TaskEntry
from backend.contract.errors import InputError
from backend.contract.run.folder import RunFolder
from backend.contract.run.group import RunGroup


@dataclass(frozen=True)
class RunSubject:
    """A run's subject: its name, task, model and engine, and the names of its first files."""

    title: str
    task: str = ""
    model: str = ""
    engine: str = ""
    data: str = ""
    train_path: str = ""
    """Its only path of training files: a file, a folder or a pattern; empty if its spec names several, or none."""


def read_subject(folder: RunFolder) -> RunSubject:
    """The subject from a run's spec, before its first event; only the folder's name if it cannot be read."""
    try:
        return _read(folder.spec, folder.name, folder.spec.stat().st_mtime_ns)
    except (InputError, OSError):
        return RunSubject(folder.name)


def exports_onnx(folder: RunFolder) -> bool:
    """Whether the run's model answers in one pass, and so can be written as ONNX."""
    return read_subject(folder).task not in ("", "causal_lm", "masked_lm", "seq2seq_lm")


@dataclass(frozen=True)
class RunModel:
    """The model that a run starts from, and whether its spec lets the model's own code run."""

    name: str = ""
    revision: str = "main"
    runs_code: bool = False


def read_model(folder: RunFolder) -> RunModel:
    """The model by the run's spec; none if that cannot be read."""
    try:
        draft = read_draft(folder.spec)
    except (InputError, OSError):
        return RunModel()
    return RunModel(
        str(draft.get("model.name_or_path") or ""),
        str(draft.get("model.revision") or "main"),
        bool(draft.get("model.trust_remote_code")),
    )


@lru_cache(256)
def _read(spec: Path, name: str, changed: int) -> RunSubject:
    draft = read_draft(spec)
    train = draft.get("data.train")
    files = train if isinstance(train, list) else [train] if train else []
    return RunSubject(
        str(draft.get("name") or name),
        str(draft.get("task.type") or ""),
        str(draft.get("model.name_or_path") or ""),
        str(draft.get("hardware.engine") or ""),
        ", ".join(formatting.name_of_path(str(file)) for file in files[:2]),
        str(files[0]) if len(files) == 1 and draft.get("data.source", "files") == "files" else "",
    )


@dataclass(frozen=True)
class RunTask:
    """A task as chosen by a run or the user."""

    kind: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)


def read_run_task(run: Path | str) -> RunTask:
    """The task of a run's or group's folder; empty if its spec cannot be read."""
    group = RunGroup(run)
    try:
        spec = group.settings() if group.exists() else spec_file.read_run(RunFolder(run).spec)
    except (InputError, OSError):
        return RunTask()
    task, data = spec.get("task"), spec.get("data")
    task, data = task if isinstance(task, dict) else {}, data if isinstance(data, dict) else {}
    given = data.get("columns")
    columns = {
        f"{role}_{number}" if isinstance(name, list) else role: str(column)
        for role, name in (given if isinstance(given, dict) else {}).items()
        for number, column in enumerate(name if isinstance(name, list) else [name] if name else [])
    }
    return RunTask(str(task.get("type") or ""), task, columns)


def trains_adapter(run: RunFolder) -> bool:
    """Whether the run trains an adapter rather than all weights; no if its spec cannot be read."""
    try:
        return isinstance(spec_file.read_run(run.spec).get("adapter"), dict)
    except (InputError, OSError):
        return False


UNTYPED = ("id", "answer_start")
"""An id column or an answer's position changes no answer."""


def typed_columns(entry: TaskEntry, task: RunTask) -> list[Column]:
    """The columns to fill in for a prediction: required ones and, for a trained model, those of its training."""
    columns = [column for column in entry.columns if _plays(column, entry, task)]
    if task.columns:
        # What training requires and predicting does not is the right answer itself.
        known = [column for column in columns if not column.required and column.name in task.columns]
        typed = [column for column in columns if (column.required and column.needed_to_predict) or column in known]
        return [column for column in typed if column.name not in UNTYPED]
    # Numbered columns (`choice_0`) are a list written apart; a person types the list.
    return [column for column in columns if column.needed_to_predict and not column.name[-1:].isdigit()]


def _plays(column: Column, entry: TaskEntry, task: RunTask) -> bool:
    """Whether the column is used under the task's settings."""
    fields = entry.settings.get("properties", {})
    values = {name: task.settings.get(name, fields.get(name, {}).get("default")) for name in column.when}
    return all(values[name] in allowed for name, allowed in column.when.items())


def answer_role(entry: TaskEntry, task: RunTask) -> str:
    """The role of the right answer, empty if the task has none."""
    columns = [column for column in entry.columns if _plays(column, entry, task)]
    needed = [column.name for column in columns if column.required and not column.needed_to_predict]
    return needed[0] if needed else ""
