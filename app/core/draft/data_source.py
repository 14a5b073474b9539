"""Reads a draft's `data` section: source and splits, columns, what is missing, what a dropped file means."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import Path, PurePath
from typing import Any, Literal
from urllib.parse import unquote, urlparse

from app.core import json_schema
from app.core.draft.draft import Draft
from app.core.i18n import inside, tr
from backend.contract.catalog import Column, SourceEntry, TaskEntry, is_used
from backend.contract.rpc.data import DataPreview

SplitKind = Literal["files", "names", "own", "fixed"]
"""What `train`, `validation` and `test` are: files; names of splits; names that may be left out; not to be chosen."""
VALIDATION_FRACTION = 0.1
"""Of the training rows for validation, where nothing else is known."""


def split_kind(source: SourceEntry | None) -> SplitKind:
    """How a source names its splits."""
    if source is None or "train" in source.path_fields:
        return "files"
    if "train" not in source.own_splits:
        return "names"
    # A source that needs no path carries its data within.
    return "own" if source.path_fields else "fixed"


def change_source(draft: Draft, before: SourceEntry | None, after: SourceEntry) -> None:
    """Switch to another source: files are kept if it reads files too; everything else applied to the old source."""
    for key in before.settings.get("properties", {}) if before else ():
        draft.unset(f"data.{key}")
    kinds = split_kind(before), split_kind(after)
    if kinds != ("files", "files"):
        for key in ("train", "validation", "test"):
            draft.unset(f"data.{key}")
        if kinds[1] == "names":
            draft.set("data.train", "train")
        if kinds[1] in ("names", "files"):
            draft.set("data.validation", VALIDATION_FRACTION)
    draft.set("data.source", after.name)
    draft.set("data.columns", {})


def forget_reading(draft: Draft, source: SourceEntry | None) -> None:
    """Switch to other files: how the old ones were read, for example their encoding, no longer applies."""
    for name, setting in source.settings.get("properties", {}).items() if source else ():
        if setting.get("of_file"):
            draft.unset(f"data.{name}")


PACKED_SUFFIXES = (".gz", ".bz2", ".xz", ".zip")
"""Extensions of compressed files, which follow the file's own extension."""
TRAIN_STEMS = ("train", "training")
"""Names of files that say which split they are, and nothing of the data."""


def data_name(draft: Draft, source: SourceEntry | None) -> str:
    """A name for a run on the draft's data, or empty if there is none.

    Several files are named after their folder, and so is one that is named after its split: `squad/train.json`.
    """
    named = [draft.get("data.train")] if split_kind(source) == "files" else []
    named += [draft.get(f"data.{key}") for key in ("name", "task", "pair", "folder") if split_kind(source) != "files"]
    named = [_of_several(value) if isinstance(value, list) and value else value for value in named]
    first = next((value for value in named if isinstance(value, str) and value), "")
    path = PurePath(first.rstrip("/\\"))
    stem = PurePath(path.stem if path.suffix.lower() in PACKED_SUFFIXES else path).stem
    is_split = split_kind(source) == "files" and stem.lower() in TRAIN_STEMS
    return (path.parent.name if is_split and _has_name(path.parent) else stem)[:100]


def rows_of(draft: Draft) -> object:
    """The settings that determine which rows are read, as far as the draft has them."""
    return [deepcopy(draft.get(f"data.{key}")) for key in ("source", "train", "folder", "name")]


def _of_several(files: Sequence[Any]) -> Any:
    """The folder of several files, or the first one if they are not in the same, or in one without a name."""
    folders = {PurePath(file).parent for file in files if isinstance(file, str)}
    has_name = len(folders) == 1 and _has_name(next(iter(folders)))
    return str(folders.pop()) if len(files) > 1 and has_name else files[0]


def _has_name(folder: PurePath) -> bool:
    return folder.name not in ("", "..")


# The columns of the task


def used_parts(task: TaskEntry, draft: Draft) -> list[Column]:
    """The roles used under the draft's settings."""
    defaults = json_schema.defaults(json_schema.resolve(task.settings))
    return [
        part
        for part in task.columns
        if is_used(part, lambda name: draft.get(f"task.{name}", defaults.get(name)))
    ]  # fmt: skip


def decides_parts(task: TaskEntry | None, key: str) -> bool:
    """Whether the setting at a dotted key determines which roles are used."""
    return task is not None and any(key == f"task.{name}" for part in task.columns for name in part.when)


def forget_unused_columns(task: TaskEntry, draft: Draft) -> None:
    """Remove the columns of unused roles from the draft, or move them to the role that is used in their place."""
    used = {part.name: part for part in used_parts(task, draft)}
    for part in task.columns:
        if part.name in used:
            continue
        column = draft.get(f"data.columns.{part.name}")
        for other in used.values():
            if (
                other.instead_of == part.name
                and isinstance(column, str)
                and not draft.get(f"data.columns.{other.name}")
            ):
                draft.set(f"data.columns.{other.name}", column)
        draft.unset(f"data.columns.{part.name}")


# What is still missing, as a sentence


def missing_data(draft: Draft, source: SourceEntry | None) -> str:
    """What is missing to read the data; empty if nothing is."""
    kind = split_kind(source)
    if kind == "files":
        return "" if draft.get("data.train") else tr("Choose training data, or try the demo.")
    settings = source.settings if source else {}
    fields = settings.get("properties", {})
    open_ones = [name for name in settings.get("required", []) if not draft.get(f"data.{name}")]
    if open_ones:
        return tr("Fill in “{get}” under Data.", get=fields[open_ones[0]].get("title", open_ones[0]))
    return tr("Enter the training split under Data.") if kind == "names" and not draft.get("data.train") else ""


def missing_column(draft: Draft, task: TaskEntry, preview: DataPreview | None, other_task: str = "") -> str:
    """Which task role has no column; also empty while the columns are unknown. Another task may suit the data better."""
    if preview is None:
        return ""
    without = [part for part in used_parts(task, draft) if part.required and not draft.get(f"data.columns.{part.name}")]
    if not without:
        return ""
    title = inside(without[0].title)
    if not other_task:
        return tr("Choose a column for {title}.", title=title)
    return tr("Choose a column for {title}, or switch to {task}.", title=title, task=inside(other_task))


# What is dropped or pasted


def paths_in_text(text: str) -> list[str]:
    """One path or address per line (or semicolon), file URLs as paths; empty if any line is neither."""
    lines = [line.strip().strip("\"'") for line in text.replace("\u2028", "\n").replace(";", "\n").splitlines()]
    found = [_plain(line) for line in lines if line]
    return found if all(_is_place(one) for one in found) else []


def _plain(line: str) -> str:
    address = urlparse(line)
    return unquote(address.path) if address.scheme == "file" else line


def _is_place(one: str) -> bool:
    drive = len(one) > 2 and one[1] == ":" and one[2] in "\\/"
    return drive or one.startswith(("/", "~", "./", "../", "\\\\", "https://", "http://", "hf://"))


SPEC_SUFFIXES = (".yaml", ".yml")


MODEL_SUFFIXES = (".safetensors", ".json", ".bin", ".msgpack", ".model", ".txt")
"""Of the files of a model: dropping one of them on the model means its folder."""
_OWN_FILES = ("config.json", "adapter_config.json", "spec.yaml")
"""By which the folder of a model, an adapter or a run is known."""
_WEIGHTS = (".safetensors", ".bin", ".msgpack")


def are_specs(paths: Sequence[str]) -> bool:
    """Whether they are specs, which the page opens, rather than data."""
    return bool(paths) and all(PurePath(path).suffix.lower() in SPEC_SUFFIXES for path in paths)


def is_data(path: str) -> bool:
    """Whether a file or folder is data rather than a model: no model has such a file, or none is in its folder."""
    place = Path(path)
    if place.is_file() and place.suffix not in MODEL_SUFFIXES:
        return True
    folder = place if place.is_dir() else place.parent
    files = {other.name for other in folder.iterdir() if other.is_file()} if folder.is_dir() else set()
    return bool(files) and not any(name in _OWN_FILES or name.endswith(_WEIGHTS) for name in files)


def whole_choice(before: Mapping[str, Any], found: Mapping[str, Any], split: str | None) -> dict[str, Any]:
    """The `data` section with what was recognised: a drop on one split keeps the others, any other drop is new data."""
    if split is not None and found["source"] == before.get("source", "files"):
        return {**deepcopy(dict(before)), **_splits(found)}
    kept = before.get("validation")
    fraction = kept if isinstance(kept, int | float) else VALIDATION_FRACTION
    chosen = {"source": found["source"], "validation": fraction if "folder" not in found else None, **found}
    if before.get("max_rows") is not None:
        chosen["max_rows"] = before["max_rows"]
    return {name: value for name, value in chosen.items() if value is not None}


_SPLITS = ("train", "validation", "test")


def _splits(found: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in found.items() if name in _SPLITS}


def data_changes(data: Mapping[str, Any]) -> dict[str, Any]:
    """A `data` section as spec values in the order to set them: row settings last, except for their columns."""
    rest = {name: deepcopy(value) for name, value in data.items() if name not in ("train", "columns")}
    changes: dict[str, Any] = {"data": rest}
    if data.get("train") is not None:
        changes["data.train"] = data["train"]
    if data.get("columns"):
        changes["data.columns"] = deepcopy(data["columns"])
    return changes


def is_read_otherwise(before: Mapping[str, Any], found: Mapping[str, Any]) -> bool:
    """Whether what was recognised is read differently from the current choice.

    That is: by another source, in another format, or as several splits of which the choice names one.
    """
    return (
        found["source"] != before.get("source", "files")
        or found.get("format", "auto") != before.get("format", "auto")
        or any(split in found and found[split] != before.get(split) for split in ("validation", "test"))
    )
