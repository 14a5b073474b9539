"""Owns what a run is about, which its spec says before the run has said anything itself."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from app.core import formatting
from app.core.draft.draft import read_draft
from backend.contract.errors import InputError
from backend.contract.run.folder import RunFolder


@dataclass(frozen=True)
class Subject:
    """The name that a person gave it, its task, model and engine, and the names of its first files."""

    title: str
    task: str = ""
    model: str = ""
    engine: str = ""
    data: str = ""


def promised(folder: RunFolder) -> Subject:
    """By its spec; the folder's name where that cannot be read."""
    try:
        return _read(folder.spec, folder.name, folder.spec.stat().st_mtime_ns)
    except (InputError, OSError):
        return Subject(folder.name)


@lru_cache(256)
def _read(spec: Path, name: str, changed: int) -> Subject:
    draft = read_draft(spec)
    train = draft.get("data.train")
    files = train if isinstance(train, list) else [train] if train else []
    return Subject(
        str(draft.get("name") or name),
        str(draft.get("task.type") or ""),
        str(draft.get("model.name_or_path") or ""),
        str(draft.get("hardware.engine") or ""),
        ", ".join(formatting.name_of_path(str(file)) for file in files[:2]),
    )
