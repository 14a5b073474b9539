"""Fits a task to its training rows once for each run: what it learnt is kept in the run folder with what it was learnt from."""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from backend.contract.run.folder import RunFolder, write_json
from backend.contract.safe_files import MB, read_unlinked
from backend.contract.safe_text import parse_json
from backend.contract.spec import RunSpec
from backend.data.fingerprint import fingerprint
from backend.data.rows import Rows
from backend.tasks.task import Columns, Facts, Task

VERSION = 1
"""Part of every key: raise it when the same rows are fitted differently."""
MAX_BYTES = 100 * MB
"""A million labels of a hundred characters; a larger file is not read."""


@dataclass(frozen=True)
class FittedFacts:
    """What `Task.fit` gave, and the key of what decides it."""

    key: str
    facts: Facts


def fit(
    task: Task, spec: RunSpec, train: Rows, columns: Columns, labels: tuple[str, ...], kept: FittedFacts | None
) -> FittedFacts:
    """The facts of the task, or the `kept` ones where they were fitted to the same. Raises InputError, as `Task.fit` does."""
    key = fingerprint(
        "facts", VERSION, spec.model_dump(mode="json", include={"task"}), train.fingerprint, dict(columns), labels
    )
    if kept is not None and kept.key == key and _suit(task, kept.facts):
        return kept
    return FittedFacts(key, task.fit(train, columns, labels))


def keep(folder: RunFolder, fitted: FittedFacts) -> None:
    """Write them into the run folder. Facts that JSON would change are left to be fitted again. Raises OSError."""
    with suppress(TypeError, ValueError):  # a task of somebody else's package need not give plain values
        if json.loads(json.dumps(fitted.facts)) == fitted.facts:
            write_json(folder.facts, {"key": fitted.key, "facts": fitted.facts})


def read_kept(folder: RunFolder) -> FittedFacts | None:
    """What the run folder, which may be a stranger's, holds of them; None where nothing there can be used."""
    try:
        values = parse_json(read_unlinked(folder.facts, MAX_BYTES))
    except (OSError, ValueError):
        return None
    key, facts = (values.get(name) for name in ("key", "facts")) if isinstance(values, dict) else (None, None)
    return FittedFacts(key, facts) if isinstance(key, str) and isinstance(facts, dict) else None


def _suit(task: Task, facts: Mapping[str, Any]) -> bool:
    """Whether the task can make its head of them: only the key says where they come from, and it can be forged."""
    labels, notes = facts.get("labels", []), facts.get("notes", [])
    if not all(isinstance(one, str) for part in (labels, notes) if isinstance(part, list) for one in part):
        return False
    if not (isinstance(labels, list) and isinstance(notes, list)):
        return False
    try:
        task.head_facts({**facts})
    except (LookupError, TypeError, ValueError, AttributeError):
        return False
    return True
