"""Owns `model/`: the Hugging Face folder that a run leaves, with what its task must know in `burnish.json`."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from backend.contract.errors import InputError, RunFailed
from backend.contract.run.folder import write_json
from backend.data.removal import Leftover, delete, set_aside
from backend.models.model_files import CONFIG_LIMIT, parse_table, read_small
from backend.models.new_folder import flush_to_disk

NOTE = "burnish.json"


def write(folder: Path, fill: Callable[[Path], None], note: dict[str, Any]) -> list[Leftover]:
    """Let `fill` write the model beside, add the note, and put it in place whole; an older one is replaced.

    Returns what could not be deleted of older ones. Raises OSError, and RunFailed where an older one cannot be moved.
    """
    beside = folder.with_name(f".{folder.name}.{os.getpid()}")
    kept = delete(folder.parent.glob(f".{folder.name}.*"))  # of a process that was killed while it wrote
    try:
        beside.mkdir()
        fill(beside)
        write_json(beside / NOTE, note)
        flush_to_disk(beside)
        older = [_set_aside(folder)] if folder.exists() else []
        beside.rename(folder)
        return [*kept, *delete(older)]
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise


def _set_aside(folder: Path) -> Path:
    try:
        return set_aside(folder)
    except OSError as error:
        raise RunFailed(
            f"{folder} could not be replaced ({error.strerror or error}), so the new model was not written",
            code="model_in_use",
            hint="Close what uses that folder, or move it away, then resume the run; its checkpoints are untouched.",
        ) from error


def read_note(folder: Path) -> dict[str, Any] | None:
    """What Burnish wrote beside the weights (`task`, `facts`, `columns`), or None for a model of another origin.

    Raises InputError where it is damaged, or was written by somebody else.
    """
    content = read_small(folder / NOTE, CONFIG_LIMIT)
    note = None if content is None else parse_table(content, folder / NOTE)
    if note is not None and not _is_note(note):
        raise damaged_note(folder)
    return note


def damaged_note(folder: Path) -> InputError:
    """What a person is told of a note that lacks what its task needs."""
    return InputError(
        f"{folder / NOTE} does not say what Burnish writes there of a model (task, labels, columns); fetch or export the "
        "model again, or delete this file and name the task (--task)"
    )


def _is_note(note: dict[str, Any]) -> bool:
    task, facts, columns = (note.get(name) for name in ("task", "facts", "columns"))
    if not (isinstance(task, dict) and isinstance(facts, dict) and isinstance(columns, dict)):
        return False
    labels = facts.get("labels", [])
    return (
        isinstance(task.get("type"), str) and isinstance(labels, list) and all(isinstance(one, str) for one in labels)
    )
