"""Owns what is known of the chosen engine before its framework is imported: whether it is here and takes the spec."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from backend import registry
from backend.catalogue_building import engine_entry, missing
from backend.contract.catalog import EngineEntry, refusal
from backend.contract.errors import InputError
from backend.contract.heads import Head
from backend.contract.spec import HardwareSection, RunSpec, Section
from backend.hardware.planner import engine_settings
from backend.models.inspection import read_config

_FIELD = "hardware.engine"


def check_engine(spec: RunSpec, folder: Path | None = None, head: Head | None = None, *, trains: bool = True) -> None:
    """Raises InputError where the engine is not installed, or does not know the optimizer, the model in `folder` or its head."""
    name = spec.hardware.engine
    engine = registry.find("engine", name, _FIELD)
    entry = engine_entry(name, engine)
    model_type = str(read_config(folder).get("model_type", "")) if folder is not None else ""
    settings = engine_settings(spec)
    found = refusal(entry, model_type, spec.training.optimizer if trains else "", bridged=_is_bridged(entry, settings))
    if found is not None:
        helps = [found.way_out, "choose PyTorch" if found.field == _FIELD and not entry.missing else ""]
        way_out = ", or ".join(filter(None, helps))
        raise InputError(f"{found.field}: {found.reason}{way_out and f'; {way_out}'}", found.field)
    if model_type and head is not None:
        engine.check(model_type, head, settings)


def _is_bridged(entry: EngineEntry, settings: Section) -> bool:
    return bool(getattr(settings, _bridge_key(entry), False))


def to_ask(hardware: Mapping[str, Any], engine: str | None = None) -> dict[str, Any]:
    """The `hardware` section with which a run is asked that was trained with this one, here or elsewhere.

    A model is the same in every engine: `engine` is the wish for another one, and where the run's own is not installed
    it is one that is. Several devices, or hosts, were for training; one is enough to ask.
    """
    engines = registry.all_of("engine")
    own = hardware.get("engine", "torch")
    usable = [name for name, one in engines.items() if not missing(one) and not _lacks_bridge(one, hardware)]
    if engine is None and own not in usable and own in engines and usable:
        return {"engine": usable[0]}
    chosen = engine or own
    several = len(hardware.get("devices") or []) > 1 or hardware.get("hosts", 1) > 1
    common = HardwareSection.model_fields.keys() - ({"devices"} if several else set())
    settings = set(engines[chosen].Settings.model_fields) if chosen in engines else set()
    if several:
        settings &= {_bridge_key(engines[chosen])}
    return {key: value for key, value in hardware.items() if key in common or key in settings}


def _lacks_bridge(engine: Any, hardware: Mapping[str, Any]) -> bool:
    """Whether the run was trained through a bridge of the engine that is not here."""
    return bool(hardware.get(_bridge_key(engine)) and missing(engine.bridge))


def _bridge_key(engine: Any) -> str:
    """The key of `hardware` that switches the bridge on; empty where there is none."""
    return engine.bridge.setting.rpartition(".")[2] if engine.bridge is not None else ""
