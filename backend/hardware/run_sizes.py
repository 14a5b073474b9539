"""What a spec says of a run's sizes: its parameters, the formats of its weights, the optimizer's state, and what a device has free."""

from math import prod
from pathlib import Path
from typing import Any

from backend import registry
from backend.contract.catalog import Device
from backend.contract.errors import InputError
from backend.contract.spec import RunSpec, Section, validate
from backend.contract.spec.training import STOCHASTIC
from backend.engines.engine import Split
from backend.engines.weight_formats import Format, frozen_format
from backend.hardware.activations import ModelShape
from backend.hardware.devices import count_processes
from backend.models import inspection
from backend.models.config import check_changed
from backend.models.frozen_parameters import frozen_names
from backend.models.weights import read_weights


def split(spec: RunSpec, folder: Path | None, devices: int) -> Split:
    """How this many devices divide the work. Raises InputError if the engine's settings do not fit them or the model."""
    engine = registry.find("engine", spec.hardware.engine, "hardware.engine")
    shapes = read_weights(folder).shapes if folder is not None and spec.model.initialise == "pretrained" else {}
    config = {**inspection.read_config(folder), **spec.model.config} if folder is not None else {}
    return engine.split(engine_settings(spec), devices, shapes, config)


def trains_a_part(spec: RunSpec) -> bool:
    """Whether an adapter is trained, or some weights are frozen."""
    return spec.adapter is not None or bool(spec.model.frozen)


def weight_format(spec: RunSpec, folder: Path, precision: str) -> Format:
    """The format in which the run's engine holds the weights that are not trained, or all if they are rounded."""
    if spec.training.master_weights == STOCHASTIC:
        return "bfloat16"
    kind = frozen_format(spec.model, read_weights(folder), precision, trains_all=not trains_a_part(spec))
    engine = registry.find("engine", spec.hardware.engine, "hardware.engine")
    return kind if kind in engine.weight_formats else "float32"


def engine_settings(spec: RunSpec) -> Section:
    """The engine's own settings in the `hardware` section, complete. Raises InputError."""
    engine = registry.find("engine", spec.hardware.engine, "hardware.engine")
    return validate(engine.Settings, spec.hardware.model_extra or {}, "hardware")


def state_per_weight(spec: RunSpec) -> float:
    """Numbers that the optimizer keeps for each trained parameter."""
    kind = registry.find("optimizer", spec.training.optimizer, "training.optimizer")
    return kind.state_per_weight(validate(kind.Settings, spec.training.optimizer_options, "training.optimizer_options"))


def adapter_copies(spec: RunSpec) -> int:
    """How many times an adapter's matrices are held: those that took anything over from the model, as they were too."""
    return 1 if (spec.adapter or {}).get("initialization", "default") == "default" else 2


def optimizer_state(spec: RunSpec, folder: Path, trained: int) -> float:
    """Numbers that the optimizer keeps for all trained parameters; an adapter's are taken for large matrices."""
    kind = registry.find("optimizer", spec.training.optimizer, "training.optimizer")
    each, rest = state_per_weight(spec), trained
    if not hasattr(kind, "state_of") or spec.adapter is not None:
        return each * trained
    options = validate(kind.Settings, spec.training.optimizer_options, "training.optimizer_options")
    if spec.model.initialise == "from_config":
        shape = ModelShape(read_config(folder, spec))
        shapes = {"embeddings": (shape.vocabulary, shape.hidden)}
    else:
        shapes = dict(read_weights(folder).shapes)
        for name in frozen_names(shapes, spec.model.frozen):
            del shapes[name]
    rest -= sum(map(prod, shapes.values()))
    return sum(kind.state_of(name, shape, options) for name, shape in shapes.items()) + each * max(0, rest)


def available_mb(spec: RunSpec, device: Device) -> float:
    """Free memory of the device for each process, or what `hardware.memory_limit` leaves."""
    limit = spec.hardware.memory_limit
    free = device.free_mb if limit is None else min(device.free_mb, limit * 1000)
    return free / (count_processes(spec.hardware) if device.kind == "cpu" else 1)


def read_config(folder: Path, spec: RunSpec) -> dict[str, Any]:
    """The model's configuration with the spec's changes. Raises InputError if there is none."""
    if reason := inspection.config_problem(folder):
        raise InputError("model.name_or_path: {reason}", "model.name_or_path", reason=reason)
    config = inspection.read_config(folder)
    check_changed(config, spec.model.config)
    return {**config, **spec.model.config}


def count_parameters(spec: RunSpec, folder: Path) -> int:
    """Counted in the weights' header, else estimated from the configuration."""
    if spec.model.initialise == "pretrained":
        counted = inspection.count_parameters(folder)
        if counted:
            return counted
    return ModelShape(read_config(folder, spec)).parameters()
