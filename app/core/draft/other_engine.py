"""Owns the same run on the other engine: which one that is, why not, and what of the spec it does not know."""

import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.core import json_schema
from app.core.backend_sentences import told_in
from app.core.draft.draft import Draft, Values, read_draft
from backend.contract.catalog import DEVICES_OF_EVERY_ENGINE, Catalog, EngineEntry, refusal
from backend.contract.errors import InputError
from backend.contract.run.folder import RunFolder
from backend.contract.safe_files import MAX_SPEC, check_inside, open_inside, read_regular

_CONFIG = "config.json"


@dataclass(frozen=True)
class Offer:
    """Another engine for a run; `reason` is why it cannot be had, empty where it can."""

    engine: str
    title: str
    reason: str = ""
    continues: bool = False
    """Whether it can go on from the run's last checkpoint."""


@dataclass(frozen=True)
class Duplicate:
    """A run's spec for another engine, and the keys that mean nothing to it and were left out."""

    values: Values
    left_out: tuple[str, ...] = ()


def offer(catalog: Catalog, run: RunFolder) -> Offer | None:
    """The engine beside that of the run; None where there is no other, or the run's spec cannot be read."""
    draft = _draft(run)
    other = _other(catalog, draft) if draft is not None else None
    if draft is None or other is None:
        return None
    found = told_in(refusal(other, _model_type(run, draft), str(draft.get("training.optimizer", "adamw"))))
    reason = f"{found.reason[:1].upper()}{found.reason[1:]}." if found else ""
    own = draft.get("hardware.engine", "torch")
    return Offer(other.name, other.title, reason, continues=not reason and own in other.continues)


def duplicate(catalog: Catalog, run: RunFolder, engine: str) -> Duplicate:
    """The run's spec with that engine. Raises InputError where it cannot be read."""
    values = read_draft(run.spec).values()
    entries = {entry.name: entry for entry in catalog.engines}
    hardware = values.get("hardware", {})
    before = _settings(entries.get(hardware.get("engine", "torch")))
    known = {**json_schema.section(catalog.spec, "hardware").get("properties", {}), **_settings(entries[engine])}
    left_out = [key for key in hardware if key not in known]
    named = [key for key in left_out if hardware[key] != before.get(key, {}).get("default")]
    kept = {key: value for key, value in hardware.items() if key in known}
    if kept.get("device", "auto") not in DEVICES_OF_EVERY_ENGINE:
        kept["device"] = "auto"
        named.append("device")
    if len(kept.get("devices") or []) > 1:
        kept["devices"] = None
        named.append("devices")
    values["hardware"] = {**kept, "engine": engine}
    names = "|".join(map(re.escape, entries))
    values["name"] = f"{re.sub(f'-({names})$', '', str(values.get('name', 'run')))}-{engine}"
    return Duplicate(values, tuple(f"hardware.{key}" for key in named))


def _draft(run: RunFolder) -> Draft | None:
    try:
        return read_draft(run.spec)
    except (InputError, OSError):
        return None


def _other(catalog: Catalog, draft: Draft) -> EngineEntry | None:
    own = draft.get("hardware.engine", "torch")
    return next((entry for entry in catalog.engines if entry.name != own), None)


def _settings(entry: EngineEntry | None) -> dict[str, Any]:
    return entry.settings.get("properties", {}) if entry else {}


def _model_type(run: RunFolder, draft: Draft) -> str:
    """As the configuration of the run's result, or of the folder that it began with, says; empty of what is not here."""
    begun_from = Path(str(draft.get("model.name_or_path", "")))
    return _model_type_in(lambda: _of_result(run)) or _model_type_in(lambda: _of_folder(begun_from))


def _model_type_in(read: Callable[[], bytes]) -> str:
    try:
        found = json.loads(read())
    except (OSError, ValueError, RecursionError):
        return ""
    kind = found.get("model_type") if isinstance(found, dict) else None
    return kind if isinstance(kind, str) else ""


def _of_result(run: RunFolder) -> bytes:
    with os.fdopen(open_inside(run.path, f"{run.model.name}/{_CONFIG}", os.O_RDONLY), "rb") as file:
        return file.read(MAX_SPEC)


def _of_folder(folder: Path) -> bytes:
    check_inside(folder / _CONFIG, folder)
    return read_regular(folder / _CONFIG, MAX_SPEC)
