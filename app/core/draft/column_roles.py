"""Owns which parts of a task its settings give to columns of the data."""

from app.core import json_schema
from app.core.draft.draft import Draft
from backend.contract.catalog import Column, TaskEntry, plays_a_part


def used_parts(task: TaskEntry, draft: Draft) -> list[Column]:
    """The parts that play under the settings of the draft."""
    defaults = json_schema.defaults(json_schema.resolved(task.settings))
    return [
        part
        for part in task.columns
        if plays_a_part(part, lambda name: draft.get(f"task.{name}", defaults.get(name)))
    ]  # fmt: skip


def decides_parts(task: TaskEntry | None, key: str) -> bool:
    """Whether the setting at a dotted key decides which parts play."""
    return task is not None and any(key == f"task.{name}" for part in task.columns for name in part.when)


def forget_unused(task: TaskEntry, draft: Draft) -> None:
    """Take the columns of parts that do not play out of the draft; the backend would refuse them."""
    used = {part.name for part in used_parts(task, draft)}
    for part in task.columns:
        if part.name not in used:
            draft.unset(f"data.columns.{part.name}")
