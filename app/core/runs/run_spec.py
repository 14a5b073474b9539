"""Owns what a run's spec says of its task: which one, its settings, and which column plays which part."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from backend.contract import spec_file
from backend.contract.catalog import Column, TaskEntry
from backend.contract.errors import InputError
from backend.contract.run.folder import RunFolder


@dataclass(frozen=True)
class RunTask:
    """A task as a run, or a person, has chosen it."""

    kind: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)


def read_run_task(run: Path | str) -> RunTask:
    """The task of a run folder; empty where its spec cannot be read."""
    try:
        spec = spec_file.read_run(RunFolder(run).spec)
    except (InputError, OSError):
        return RunTask()
    task, data = spec.get("task"), spec.get("data")
    task, data = task if isinstance(task, dict) else {}, data if isinstance(data, dict) else {}
    columns = {role: str(name) for role, name in (data.get("columns") or {}).items() if name}
    return RunTask(str(task.get("type") or ""), task, columns)


UNTYPED = ("id", "answer_start")
"""What names a row, or says where its answer stands, changes no answer."""


def typed_columns(entry: TaskEntry, task: RunTask) -> list[Column]:
    """What a person types to be answered; of a trained model also what it was trained with beside the needed."""
    there = [column for column in entry.columns if _plays(column, entry, task)]
    if task.columns:
        # What training requires and predicting does not is the right answer itself.
        known = [column for column in there if not column.required and column.name in task.columns]
        typed = [column for column in there if (column.required and column.needed_to_predict) or column in known]
        return [column for column in typed if column.name not in UNTYPED]
    # Numbered columns (`choice_0`) are a list written apart; a person types the list.
    return [column for column in there if column.needed_to_predict and not column.name[-1:].isdigit()]


def _plays(column: Column, entry: TaskEntry, task: RunTask) -> bool:
    """Whether the column plays a part under the task's settings."""
    fields = entry.settings.get("properties", {})
    values = {name: task.settings.get(name, fields.get(name, {}).get("default")) for name in column.when}
    return all(values[name] in allowed for name, allowed in column.when.items())


def answer_role(entry: TaskEntry, task: RunTask) -> str:
    """The part that says what is right, empty where the task has none."""
    there = [column for column in entry.columns if _plays(column, entry, task)]
    needed = [column.name for column in there if column.required and not column.needed_to_predict]
    return needed[0] if needed else ""
