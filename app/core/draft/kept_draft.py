"""Keeps the draft of New run in a file, so that it survives closing, a crash and a change of language."""

import json
from pathlib import Path

from app.core.draft.draft import Draft
from backend.contract.run.folder import write_json

VERSION = 1
NAME = "draft.json"
"""The file's name, beside that of the preferences."""


def keep_draft(draft: Draft, path: Path) -> None:
    """Write the whole draft, with the spec file that it started from. Raises OSError."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = str(draft.file) if draft.file is not None else None
    about = {"file": file, "named": draft.named, "task_chosen": draft.task_chosen}
    write_json(path, {"version": VERSION, "values": draft.values(), **about}, mode=0o600)


def read_kept(path: Path) -> Draft | None:
    """The kept draft; None if there is none, or none that can be read."""
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        draft = Draft(dict(kept["values"]), file=Path(kept["file"]) if kept["file"] else None)
        draft.named = bool(kept["named"])
        draft.task_chosen = bool(kept.get("task_chosen", True))  # an older window did not say
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return draft
