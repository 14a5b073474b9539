"""Owns what is known of the chosen engine before its framework is imported: whether it is here and takes the spec."""

from pathlib import Path

from backend import registry
from backend.catalogue_building import engine_entry
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
