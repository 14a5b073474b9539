"""Finds tasks, sources, engines, metrics, mirrors, failures and other plugins by file name, so that a new one is listed nowhere.

Installed packages may add members through entry points (`burnish.tasks` and so on). They are loaded on first
use; a broken one is named in `problems` and left out.
"""

import importlib
import importlib.util
import pkgutil
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from backend.contract.errors import InputError
from backend.contract.messages import message

_ROOMS = {
    "task": ("backend.tasks", "TASK"),
    "source": ("backend.data.sources", "SOURCE"),
    "engine": ("backend.engines", "ENGINE"),
    "optimizer": ("backend.engines.torch.optimizers", "OPTIMIZER"),
    "adapter": ("backend.adapters", "ADAPTER"),
    "family": ("backend.engines.jax.models", "FAMILY"),
    "launcher": ("backend.launchers", "LAUNCHER"),
    "mirror": ("backend.mirrors", "MIRROR"),
    "failure": ("backend.training.failures", "FAILURE"),
    "metrics": ("backend.metrics", "METRICS"),
}
"""Kind → (package, the name that each module of it exports)."""

PLUGGED = {
    "task": ("title", "description", "head", "columns", "metrics", "default_metric", "defaults", "evaluates_by",
             "Settings", "split_by", "label_column", "unusable", "fit", "facts_of_model", "check", "head_facts",
             "encode", "decode", "score"),
    "source": ("title", "description", "path_fields", "Settings", "read", "read_file"),
    "optimizer": ("title", "description", "Settings", "state_per_weight", "make"),
    "metric": ("title", "tasks", "greater_is_better", "score"),
    "mirror": ("title", "description", "Settings", "check", "open"),
    "launcher": ("title", "description", "check", "script", "submit", "look_up", "stop"),
}  # fmt: skip
"""Kinds that installed packages may add to (a metric of theirs is measured where a spec names it), as entry points of `burnish.<kind>s`, and what such an object must have."""


@cache
def names(kind: str) -> tuple[str, ...]:
    """All keys of a kind: the names of its modules and of its plugins, loadable or not."""
    return tuple(sorted({*_own_names(kind), *_plugins(kind)}))


def find(kind: str, name: str, field: str) -> Any:
    """The member with that name. Raises InputError with the valid choices; `field` is the spec's key."""
    if name not in names(kind):
        raise InputError(
            "{field}: there is no {kind} {name}; choose one of {kind_2}",
            field,
            field=field,
            name=repr(name),
            kind=kind,
            kind_2=", ".join(names(kind)) or "none",
        )
    if name in _plugins(kind):
        found, problem = _load(kind, name)
        if problem:
            raise InputError("{field}: {problem}", field, field=field, problem=problem)
        return found
    package, export = _ROOMS[kind]
    return getattr(importlib.import_module(f"{package}.{name}"), export)


def all_of(kind: str) -> dict[str, Any]:
    """Every member of a kind by name, imported; broken plugins are left out."""
    usable = [name for name in names(kind) if name not in _plugins(kind) or not _load(kind, name)[1]]
    return {name: find(kind, name, kind) for name in usable}


def is_plugin(kind: str, name: str) -> bool:
    """Whether an installed package has added that member."""
    return name in _plugins(kind)


def problems() -> list[str]:
    """What is wrong with installed plugins, a sentence each; loads them all."""
    found = []
    for kind in PLUGGED:
        own = _own_names(kind)
        found += [
            message(
                "{kind} was skipped: Burnish already has a {kind_2} with that name",
                kind=_name_entry(kind, one),
                kind_2=kind,
            )
            for one in _find_entry_points(kind)
            if one.name in own
        ]
        found += [problem for name in _plugins(kind) if (problem := _load(kind, name)[1])]
    return found


def installed_plugins() -> list[tuple[Any, ...]]:
    """Name, version and files of every installed plugin, without loading it, for use in a cache key."""
    return [
        (kind, one.name, one.value, _version(one), *_files(one)) for kind in PLUGGED for one in _find_entry_points(kind)
    ]


@cache
def _own_names(kind: str) -> tuple[str, ...]:
    if kind not in _ROOMS:
        return ()
    path = importlib.import_module(_ROOMS[kind][0]).__path__
    return tuple(found.name for found in pkgutil.iter_modules(path) if not _is_shared(kind, found))


def _is_shared(kind: str, found: pkgutil.ModuleInfo) -> bool:
    # Beside its members a room holds what they share: the protocol named after the kind, and private modules. An engine
    # is always a package, so the modules beside the engines are what they share.
    return found.name == kind.removesuffix("s") or found.name.startswith("_") or (kind == "engine" and not found.ispkg)


@cache
def _find_entry_points(kind: str) -> tuple[EntryPoint, ...]:
    if kind not in PLUGGED:
        return ()
    return tuple(sorted(entry_points(group=f"burnish.{kind}s"), key=lambda one: (one.name, one.value)))


@cache
def _plugins(kind: str) -> dict[str, EntryPoint]:
    return {one.name: one for one in _find_entry_points(kind) if one.name not in _own_names(kind)}


@cache
def _load(kind: str, name: str) -> tuple[Any, str]:
    """The plugin's object, or why it cannot be used."""
    entry = _plugins(kind)[name]
    try:
        found = entry.load()
    except (Exception, SystemExit) as error:  # another's code may raise anything while it is imported
        reason = (str(error).splitlines() or [""])[0]
        return None, message(
            "{kind} cannot be loaded ({class_name}: {reason})",
            kind=_name_entry(kind, entry),
            class_name=type(error).__name__,
            reason=reason,
        )
    lacking = [each for each in PLUGGED[kind] if not hasattr(found, each)]
    if lacking:
        return None, message(
            "{kind} cannot be used: it has no {lacking}", kind=_name_entry(kind, entry), lacking=", ".join(lacking)
        )
    if "Settings" in PLUGGED[kind] and not hasattr(found.Settings, "model_json_schema"):
        return None, message(
            "{kind} cannot be used: its Settings are not a backend.contract.spec.Section", kind=_name_entry(kind, entry)
        )
    return found, ""


def _name_entry(kind: str, entry: EntryPoint) -> str:
    owner = entry.dist.name if entry.dist else entry.value
    return message("the {kind} {name} from the package {owner}", kind=kind, name=entry.name, owner=owner)


def _version(entry: EntryPoint) -> str:
    return entry.dist.version if entry.dist else ""


def _files(entry: EntryPoint) -> list[tuple[str, int, int]]:
    spec = importlib.util.find_spec(entry.module.partition(".")[0])
    if spec is None:
        return []
    folders = [Path(folder) for folder in spec.submodule_search_locations or ()]
    files = [file for folder in folders for file in sorted(folder.rglob("*.py"))] or [Path(spec.origin or "")]
    stats = [(file, file.stat()) for file in files if file.is_file()]
    return [(str(file), stat.st_mtime_ns, stat.st_size) for file, stat in stats]
