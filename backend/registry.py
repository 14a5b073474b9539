"""Finds tasks, sources, engines, launchers and families by name; the only dynamic imports of the house."""

import importlib
import pkgutil
from functools import cache
from typing import Any

from backend.contract.errors import InputError

_ROOMS = {
    "task": ("backend.tasks", "TASK"),
    "source": ("backend.data.sources", "SOURCE"),
    "engine": ("backend.engines", "ENGINE"),
    "launcher": ("backend.hardware.launchers", "LAUNCHER"),
}
"""Kind → (package, the name that each module of it exports)."""


@cache
def names(kind: str) -> tuple[str, ...]:
    """All keys of a kind, which are the names of its modules."""
    package, _ = _ROOMS[kind]
    path = importlib.import_module(package).__path__
    return tuple(sorted(found.name for found in pkgutil.iter_modules(path) if not _is_shared(kind, found)))


def find(kind: str, name: str, field: str) -> Any:
    """What the module `name` of that kind exports. Raises InputError with the valid choices; `field` is the spec's key."""
    if name not in names(kind):
        raise InputError(f"{field}: {name!r} is no {kind}; there are {', '.join(names(kind))}", field)
    package, export = _ROOMS[kind]
    return getattr(importlib.import_module(f"{package}.{name}"), export)


def all_of(kind: str) -> dict[str, Any]:
    """Every member of a kind by name, imported."""
    return {name: find(kind, name, kind) for name in names(kind)}


def _is_shared(kind: str, found: pkgutil.ModuleInfo) -> bool:
    # Beside its members a room holds what they share: the protocol named after the kind, and private modules. An engine
    # is always a package, so the modules beside the engines are what they share.
    return found.name == kind or found.name.startswith("_") or (kind == "engine" and not found.ispkg)
