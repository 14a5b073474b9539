"""Owns what a data source wants of the `data` section, and what of it outlives the choice of another source."""

from pathlib import PurePath
from typing import Literal

from app.core.draft.draft import Draft
from backend.contract.catalog import SourceEntry

SplitKind = Literal["files", "names", "own", "fixed"]
"""What `train`, `validation` and `test` are: files; names of splits; names that may be left out; not to be chosen."""
PACKED = (".gz", ".bz2", ".xz", ".zip")
"""Endings of packed files, before which the file's own stands."""
FRACTION = 0.1
"""Of the training rows for validation, where nothing else is known."""


def split_kind(source: SourceEntry | None) -> SplitKind:
    """How a source's splits are named."""
    if source is None or "train" in source.path_fields:
        return "files"
    if "train" not in source.own_splits:
        return "names"
    # A source that needs no path carries its data within.
    return "own" if source.path_fields else "fixed"


def change_source(draft: Draft, before: SourceEntry | None, after: SourceEntry) -> None:
    """Take another source: files stay for one that reads files too, all else meant the source before."""
    for key in before.settings.get("properties", {}) if before else ():
        draft.unset(f"data.{key}")
    kinds = split_kind(before), split_kind(after)
    if kinds != ("files", "files"):
        for key in ("train", "validation", "test"):
            draft.unset(f"data.{key}")
        if kinds[1] == "names":
            draft.set("data.train", "train")
        if kinds[1] in ("names", "files"):
            draft.set("data.validation", FRACTION)
    draft.set("data.source", after.name)
    draft.set("data.columns", {})


def forget_reading(draft: Draft, source: SourceEntry | None) -> None:
    """Take other files: how the ones before were read, for example their encoding, says nothing of them."""
    for name, setting in source.settings.get("properties", {}).items() if source else ():
        if setting.get("of_file"):
            draft.unset(f"data.{name}")


def data_name(draft: Draft, source: SourceEntry | None) -> str:
    """A name for a run on the data of the draft, or nothing if the data has none; several files are called by the first."""
    named = [draft.get("data.train")] if split_kind(source) == "files" else []
    named += [draft.get(f"data.{key}") for key in ("name", "task", "pair", "folder") if split_kind(source) != "files"]
    named = [value[0] if isinstance(value, list) and value else value for value in named]
    first = next((value for value in named if isinstance(value, str) and value), "")
    path = PurePath(first.rstrip("/\\"))
    return PurePath(path.stem if path.suffix.lower() in PACKED else path).stem[:100]
