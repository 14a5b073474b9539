"""Owns what is known of the chosen engine before its framework is imported: whether it is here and takes the spec."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from backend import registry
from backend.catalogue_building import engine_entry, missing
from backend.contract.catalog import refusal
from backend.contract.errors import InputError
from backend.contract.spec import RunSpec
from backend.models.inspection import read_config

_FIELD = "hardware.engine"


def check_engine(spec: RunSpec, folder: Path | None = None) -> None:
    """Raises InputError where the engine is not installed, or does not know the optimizer, or the model in `folder`."""
    name = spec.hardware.engine
    entry = engine_entry(name, registry.find("engine", name, _FIELD))
    stored = read_config(folder) if folder is not None else {}
    found = refusal(entry, str(stored.get("model_type", "")), spec.training.optimizer)
    if found is not None:
        way_out = "; choose PyTorch" if found.field == _FIELD and not entry.missing else ""
        raise InputError(f"{found.field}: {found.reason}{way_out}", found.field)


def of_another_machine(hardware: Mapping[str, Any]) -> dict[str, Any]:
    """The `hardware` section of a run that was trained elsewhere: where its engine is not installed, one that is.

    A model is the same in either; what the section says beside the engine was meant for the other machine.
    """
    engines = registry.all_of("engine")
    own = hardware.get("engine", "torch")
    usable = [name for name, engine in engines.items() if not missing(engine)]
    return dict(hardware) if own in usable or own not in engines or not usable else {"engine": usable[0]}
