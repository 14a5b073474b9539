"""Owns the paths and addresses in a drop or a clipboard, and how a choice of data is put in place of another."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import PurePath
from typing import Any
from urllib.parse import unquote, urlparse

from app.core.draft.data_source import FRACTION

SPECS = (".yaml", ".yml")
_SPLITS = ("train", "validation", "test")


def paths_in_text(text: str) -> list[str]:
    """One path or address a line (or between semicolons), file addresses as paths; empty where a line is neither."""
    lines = [line.strip().strip("\"'") for line in text.replace("\u2028", "\n").replace(";", "\n").splitlines()]
    found = [_plain(line) for line in lines if line]
    return found if all(_is_place(one) for one in found) else []


def _plain(line: str) -> str:
    address = urlparse(line)
    return unquote(address.path) if address.scheme == "file" else line


def _is_place(one: str) -> bool:
    drive = len(one) > 2 and one[1] == ":" and one[2] in "\\/"
    return drive or one.startswith(("/", "~", "./", "../", "\\\\", "https://", "http://", "hf://"))


def are_specs(paths: Sequence[str]) -> bool:
    """Whether they are specs, which the page opens, and no data."""
    return bool(paths) and all(PurePath(path).suffix.lower() in SPECS for path in paths)


def whole_choice(before: Mapping[str, Any], found: Mapping[str, Any], split: str | None) -> dict[str, Any]:
    """The `data` section with what was recognised: a drop on one split leaves the others, any other drop is new data."""
    if split is not None and found["source"] == before.get("source", "files"):
        return {**deepcopy(dict(before)), **_splits(found)}
    kept = before.get("validation")
    fraction = kept if isinstance(kept, int | float) else FRACTION
    chosen = {"source": found["source"], "validation": fraction if "folder" not in found else None, **found}
    if before.get("max_rows") is not None:
        chosen["max_rows"] = before["max_rows"]
    return {name: value for name, value in chosen.items() if value is not None}


def _splits(found: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in found.items() if name in _SPLITS}


def as_changes(data: Mapping[str, Any]) -> dict[str, Any]:
    """A `data` section as values of the spec to set in order: the rows come last but for their columns."""
    rest = {name: deepcopy(value) for name, value in data.items() if name not in ("train", "columns")}
    changes: dict[str, Any] = {"data": rest}
    if data.get("train") is not None:
        changes["data.train"] = data["train"]
    if data.get("columns"):
        changes["data.columns"] = deepcopy(data["columns"])
    return changes


def reads_otherwise(before: Mapping[str, Any], found: Mapping[str, Any]) -> bool:
    """Whether what was recognised is read in another way than the choice says now.

    That is by another source, in another format, or as several splits of which the choice names one.
    """
    return (
        found["source"] != before.get("source", "files")
        or found.get("format", "auto") != before.get("format", "auto")
        or any(split in found and found[split] != before.get(split) for split in ("validation", "test"))
    )
