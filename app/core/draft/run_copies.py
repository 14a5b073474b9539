"""Runs made from other runs: the next free name, the differences, and the same run on another engine."""

import json
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from app.core import json_schema
from app.core.backend_messages import translate_messages
from app.core.draft.draft import SEARCH, Draft, Values, read_draft
from app.core.draft.draft_settings import differences
from app.core.runs.run_library import RunSummary
from backend.contract.catalog import DEVICES_OF_EVERY_ENGINE, Catalog, EngineEntry, find_refusal
from backend.contract.errors import InputError
from backend.contract.run.folder import RunFolder
from backend.contract.run.group import RunGroup
from backend.contract.safe_files import MAX_SPEC, check_inside, open_inside, read_regular, read_unlinked

LONGEST_NAME = 100
"""What a spec allows."""
MAX_DIFFERENCES = 6
_NO_DIFFERENCES = ("version", "name")


def stem(name: str) -> str:
    """`reviews` for `reviews 2`."""
    return re.sub(r"(?<=\S) \d+$", "", name)


def next_name(name: str, taken: Iterable[str]) -> str:
    """`reviews 2` for `reviews`, or `reviews 3` for either if 2 is taken."""
    known, number = set(taken), 2
    while (found := f"{stem(name)[: LONGEST_NAME - 1 - len(str(number))]} {number}") in known:
        number += 1
    return found


def copy_of(run: Path, runs: Iterable[RunSummary]) -> Values:
    """The spec of a run's or group's folder under the next free name. Raises InputError if it cannot be read."""
    group = RunGroup(run)
    values = group.read()[0] if group.exists() else read_draft(run / "spec.yaml").values()
    values |= _search_of(RunFolder(run))
    return {**values, "name": next_name(str(values.get("name", "run")), (one.title for one in runs))}


def _search_of(run: RunFolder) -> Values:
    """The section of a search, in a spec's place for it; nothing of a run. Raises InputError."""
    if not run.search.exists():
        return {}
    from backend.contract import spec_file  # YAML, not wanted before the first paint

    try:
        text = read_unlinked(run.search, MAX_SPEC).decode("utf-8", "replace")
    except OSError as error:
        raise InputError("{path}: {reason}", path=run.search, reason=error.strerror) from None
    section = spec_file.parse(text, run.search.name)
    return {SEARCH: section} if isinstance(section, dict) else {}


def previous_run(run: RunSummary, runs: Sequence[RunSummary]) -> RunSummary | None:
    """The latest earlier run with the same name, ignoring its number."""
    if run.started is None:
        return None
    earlier = [
        one
        for one in runs
        if one.path != run.path and one.started is not None and one.started < run.started
        and stem(one.title) == stem(run.title)
    ]  # fmt: skip
    return max(earlier, key=lambda one: one.started or 0.0, default=None)


def list_differences(run: RunSummary, before: RunSummary) -> list[str]:
    """`Learning rate: 2e-5 → 0.0002` for each setting that differs; none if a spec cannot be read."""
    try:
        found = differences({}, _spec(before.path), _spec(run.path))
    except (InputError, OSError):
        return []
    kept = [one for one in found if one.setting.key not in _NO_DIFFERENCES]
    words = [one.words for one in kept[:MAX_DIFFERENCES]]
    return words + (["…"] if len(kept) > MAX_DIFFERENCES else [])


def _spec(run: Path) -> Draft:
    path = run / "spec.yaml"
    return _read(path, path.stat().st_mtime_ns)


@lru_cache(256)
def _read(path: Path, changed: int) -> Draft:
    return read_draft(path)


# The same run on another engine

_CONFIG = "config.json"


@dataclass(frozen=True)
class EngineOffer:
    """Another engine for a run; `reason` is why it is not available, empty if it is."""

    engine: str
    title: str
    reason: str = ""
    continues: bool = False
    """Whether it can continue from the run's last checkpoint."""


@dataclass(frozen=True)
class Duplicate:
    """A run's spec for another engine, and the keys that do not apply to it and were left out."""

    values: Values
    left_out: tuple[str, ...] = ()


def offer_engine(catalog: Catalog, run: RunFolder) -> EngineOffer | None:
    """The alternative to the run's engine; None if there is none, or the run's spec cannot be read."""
    draft = _draft(run)
    other = _other(catalog, draft) if draft is not None else None
    if draft is None or other is None:
        return None
    found = translate_messages(
        find_refusal(other, _model_type(run, draft), str(draft.get("training.optimizer", "adamw")))
    )
    reason = f"{found.reason[:1].upper()}{found.reason[1:]}." if found else ""
    own = draft.get("hardware.engine", "torch")
    return EngineOffer(other.name, other.title, reason, continues=not reason and own in other.continues)


def duplicate_for_engine(catalog: Catalog, run: RunFolder, engine: str) -> Duplicate:
    """The run's spec with that engine. Raises InputError if it cannot be read."""
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
    """The model type in the configuration of the run's result, or of its starting folder; empty if it is not here."""
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
