"""Owns a run that goes on with another engine: what of its last checkpoint goes with it, and the spec from then on."""

from backend import registry
from backend.contract.catalog import DEVICES_OF_EVERY_ENGINE
from backend.contract.errors import InputError
from backend.contract.run_folder import RunFolder
from backend.contract.spec import HardwareSection, RunSpec
from backend.run.checkpoints import Checkpoints
from backend.run.resolving import read_spec, resolve


def with_engine(folder: RunFolder, engine: str, *, new_optimizer: bool) -> RunSpec | None:
    """The run's spec for that engine, or None where it is the run's own.

    Raises InputError where the engine cannot go on from the run's last checkpoint, or where it would take its weights
    alone and nobody has agreed to that (`new_optimizer`).
    """
    spec = read_spec(folder.spec)
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
    hardware = spec.hardware.model_dump(mode="json")
    known = HardwareSection.model_fields.keys() | kind.Settings.model_fields.keys()
    kept = {key: value for key, value in hardware.items() if key in known} | {"engine": engine}
    if kept["device"] not in DEVICES_OF_EVERY_ENGINE:
        kept["device"] = "auto"
    if not kind.several_devices and len(kept["devices"] or []) > 1:
        kept["devices"] = None
    return resolve({**spec.model_dump(mode="json"), "hardware": kept}, folder.path)
