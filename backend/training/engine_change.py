"""Owns a run that goes on with another engine: what of its last checkpoint goes with it, and the spec from then on."""

from dataclasses import dataclass
from pathlib import Path

from backend import registry
from backend.contract.catalog import DEVICES_OF_EVERY_ENGINE
from backend.contract.errors import InputError
from backend.contract.run.folder import RunFolder
from backend.contract.spec import HardwareSection, RunSpec
from backend.preflight.resolve import read_run, resolve
from backend.training.checkpoints import Checkpoints


@dataclass(frozen=True)
class Change:
    """The spec from now on, and the file in which the present one is to be kept."""

    spec: RunSpec
    kept: Path


def to_engine(folder: RunFolder, engine: str, *, new_optimizer: bool) -> Change | None:
    """The run's change to that engine, or None where it is the run's own.

    Raises InputError where the engine cannot go on from the run's last checkpoint, or where it would take its weights
    alone and nobody has agreed to that (`new_optimizer`).
    """
    spec = read_run(folder)
    kind = registry.find("engine", engine, "--engine")
    if engine == spec.hardware.engine:
        if new_optimizer:
            raise InputError(
                f"--new-optimizer: this run trains with {kind.title} already, which keeps its optimizer; leave it out"
            )
        return None
    checkpoints = Checkpoints(folder)
    step = checkpoints.latest()
    if step is not None:
        writer = checkpoints.written_by(step) or spec.hardware.engine
        if writer not in (engine, *kind.continues):
            raise InputError(
                f"--engine: {kind.title} cannot read the checkpoint of step {step}, which another engine wrote; resume "
                "without --engine, or train a new run"
            )
        if writer != engine and not new_optimizer:
            raise InputError(
                f"--engine: with {kind.title} the model goes on from step {step}, but the optimizer's state is another "
                "engine's and starts new; agree with --new-optimizer, or resume without --engine"
            )
    earlier = _kept(folder, engine)
    hardware = read_run(folder, kept=earlier).hardware if earlier.is_file() else _for_engine(spec, engine)
    changed = {**spec.model_dump(mode="json"), "hardware": hardware.model_dump(mode="json")}
    return Change(resolve(changed, folder.path), _kept(folder, spec.hardware.engine))


def _kept(folder: RunFolder, engine: str) -> Path:
    """Where the spec stays that the run had with an engine: with its hardware the run comes back to it to the bit."""
    return folder.path / f"spec.{engine}.yaml"


def _for_engine(spec: RunSpec, engine: str) -> HardwareSection:
    kind, hardware = registry.find("engine", engine, "--engine"), spec.hardware.model_dump(mode="json")
    known = HardwareSection.model_fields.keys() | kind.Settings.model_fields.keys()
    kept = {key: value for key, value in hardware.items() if key in known} | {"engine": engine}
    if kept["device"] not in DEVICES_OF_EVERY_ENGINE:
        kept["device"] = "auto"
    if not kind.several_devices and len(kept["devices"] or []) > 1:
        kept["devices"] = None
    return HardwareSection.model_validate(kept)
