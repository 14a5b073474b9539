"""Resolves `include`: a spec file that builds on other spec files or presets and overrides parts of them."""

import os
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from backend.contract.errors import InputError
from backend.contract.places import own_presets_folder
from backend.contract.resources import resource
from backend.contract.safe_files import user_path

KEY = "include"
PRESET = "preset:"
NAMES_OF_SPLITS = ("demo", "glue", "hub", "tatoeba", "xnli")
"""Sources whose splits are not paths."""
_NEVER_PATHS = ("source", "columns")
"""Keys of `data` that are never paths."""
MAX_FILES = 100
"""Read for one spec. Files that include each other twice would otherwise double with every step."""
Read = Callable[[Path], dict[str, Any]]


def read_with_includes(path: Path, read: Read) -> dict[str, Any]:
    """The mapping in a spec file merged over those in its `include`; later ones override earlier ones.

    An include is a spec file, relative to the including file's folder, or `preset:NAME`. Mappings are merged key by
    key, any other value replaces. Relative paths in an included file are relative to that file's folder.
    Raises InputError if a file is missing or includes itself.
    """
    parts = _read_parts(path, _limit_files(read), ())
    merged: dict[str, Any] = {}
    for _, values in parts:
        merged = overlay(merged, values)
    data = merged.get("data")
    source = data.get("source", "files") if isinstance(data, dict) else "files"
    whole: dict[str, Any] = {}
    for folder, values in parts:
        whole = overlay(whole, values if folder == path.parent else _from(folder, values, source))
    return whole


def _limit_files(read: Read) -> Read:
    numbers = count(1)

    def read_next(path: Path) -> dict[str, Any]:
        if next(numbers) > MAX_FILES:
            raise InputError(
                "{key}: more than {max_files} spec files are included; include each only once",
                KEY,
                key=KEY,
                max_files=MAX_FILES,
            )
        return read(path)

    return read_next


def overlay(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Merge both mappings key by key; other values are taken from the one on top."""
    both = {key for key in above if isinstance(below.get(key), dict) and isinstance(above[key], dict)}
    return {**below, **above, **{key: overlay(below[key], above[key]) for key in both}}


def _read_parts(path: Path, read: Read, within: tuple[Path, ...]) -> list[tuple[Path, dict[str, Any]]]:
    real = Path(os.path.realpath(path))  # Path.resolve fails on a link that leads to itself
    if real in within:
        raise InputError("{key}: {path} includes itself; remove it from its own includes", KEY, key=KEY, path=path)
    values = read(path)
    included = values.pop(KEY, None) or []
    parts: list[tuple[Path, dict[str, Any]]] = []
    for name in included if isinstance(included, list) else [included]:
        if not isinstance(name, str):
            raise InputError("{path}: {key} is the name of a spec file, or a list of them", KEY, path=path, key=KEY)
        if name.startswith(PRESET):
            parts.append((path.parent, _preset(name.removeprefix(PRESET), read)))
        else:
            parts += _read_parts(path.parent / user_path(name), read, (*within, real))
    return [*parts, (path.parent, values)]


def _preset(name: str, read: Read) -> dict[str, Any]:
    folders = (own_presets_folder(), resource("presets"))
    known = {path.stem: path for folder in folders for path in sorted(folder.glob("*.yaml"))}
    if name not in known:
        raise InputError(
            "{key}: there is no preset {name}; choose one of {known}",
            KEY,
            key=KEY,
            name=repr(name),
            known=", ".join(sorted(known)),
        )
    spec = read(known[name]).get("spec")
    if not isinstance(spec, dict):
        raise InputError("{known}: a preset has a title, a description and a spec", KEY, known=known[name])
    return spec


def _from(folder: Path, values: dict[str, Any], source: str) -> dict[str, Any]:
    changed = dict(values)
    if isinstance(model := values.get("model"), dict):
        changed["model"] = {
            key: _absolute_if_exists(value, folder) if key in ("name_or_path", "tokenizer") else value
            for key, value in model.items()
        }
    if isinstance(data := values.get("data"), dict):
        has_names = source in NAMES_OF_SPLITS
        changed["data"] = {key: _of_data(key, value, folder, has_names) for key, value in data.items()}
    return changed


def _of_data(key: str, value: Any, folder: Path, has_names: bool) -> Any:
    is_split = key in ("train", "validation", "test")
    if key in _NEVER_PATHS or (is_split and has_names):
        return value
    return _absolute(value, folder) if is_split else _absolute_if_exists(value, folder)


def _absolute(value: Any, folder: Path) -> Any:
    if isinstance(value, list):
        return [_absolute(one, folder) for one in value]
    return str(folder.absolute() / user_path(value)) if isinstance(value, str) else value


def _absolute_if_exists(value: Any, folder: Path) -> Any:
    return _absolute(value, folder) if isinstance(value, str) and (folder / user_path(value)).exists() else value
