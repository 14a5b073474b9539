"""Fits a task to its training rows once per run: the result is stored in the run folder with the key of its inputs."""

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
    """The result of `Task.fit`, and the key of its inputs."""

    key: str
    facts: Facts


def fit(
    task: Task, spec: RunSpec, train: Rows, columns: Columns, labels: tuple[str, ...], kept: FittedFacts | None
) -> FittedFacts:
    """The facts of the task, or `kept` ones for the same inputs. Raises InputError, as `Task.fit` does."""
    key = fingerprint(
        "facts", VERSION, spec.model_dump(mode="json", include={"task"}), train.fingerprint, dict(columns), labels
    )
    if kept is not None and kept.key == key and _suit(task, kept.facts):
        return kept
    return FittedFacts(key, task.fit(train, columns, labels))


def keep(folder: RunFolder, fitted: FittedFacts) -> None:
    """Write them to the run folder, unless JSON would change them: then they are fitted again. Raises OSError."""
    with suppress(TypeError, ValueError):  # a task from another package need not return plain values
        if json.loads(json.dumps(fitted.facts)) == fitted.facts:
            write_json(folder.facts, {"key": fitted.key, "facts": fitted.facts})


def read_kept(folder: RunFolder) -> FittedFacts | None:
    """The facts stored in the run folder, which may be untrusted; None if they are unusable."""
    try:
        values = parse_json(read_unlinked(folder.facts, MAX_BYTES))
    except (OSError, ValueError):
        return None
    key, facts = (values.get(name) for name in ("key", "facts")) if isinstance(values, dict) else (None, None)
    return FittedFacts(key, facts) if isinstance(key, str) and isinstance(facts, dict) else None


def _suit(task: Task, facts: Mapping[str, Any]) -> bool:
    """Whether the task can build its head from them: the key alone can be forged."""
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
