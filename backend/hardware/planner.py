"""Estimates what a run will cost: memory by parts, micro-batch size, steps, tokens, time."""

from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any

import psutil

from backend import registry
from backend.contract.catalog import Device
from backend.contract.errors import InputError
from backend.contract.heads import Head
from backend.contract.rpc.plan import PlanPart
from backend.contract.spec import RunSpec, Section, validate
from backend.engines.engine import Split
from backend.engines.weight_formats import Format, frozen_bytes, frozen_format
from backend.hardware.devices import count_processes
from backend.models import inspection
from backend.models.config import check_changed, estimate
from backend.models.frozen_parameters import frozen_names
from backend.models.weights import read_weights

MB = 1e6
_BYTES = 4
"""Of a parameter: new weights are drawn in 32 bit."""
LIBRARIES_MB = 450.0
"""Resident memory of Python with PyTorch and transformers before a model is loaded (measured on Linux)."""
SHARE = 0.9
"""Part of the free memory that a plan may fill; the rest is for what it cannot foresee."""


class ModelShape:
    """The sizes that determine memory, read from a Hugging Face configuration whatever its family calls them."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.hidden = _first(config, "hidden_size", "d_model", "n_embd", "dim", default=768)
        encoders = _first(
            config, "num_hidden_layers", "n_layer", "num_layers", "n_layers", "encoder_layers", default=12
        )
        self.decoders = 0
        if config.get("is_encoder_decoder"):
            self.decoders = _first(config, "num_decoder_layers", "decoder_layers", default=encoders)
        self.layers = encoders + self.decoders
        self.heads = _first(config, "num_attention_heads", "n_head", "num_heads", "n_heads", default=12)
        self.vocabulary = _first(config, "vocab_size", default=30_000)
        self.inner = _first(
            config, "intermediate_size", "ffn_dim", "encoder_ffn_dim", "d_ff", "n_inner", "hidden_dim",
            default=4 * self.hidden,
        )  # fmt: skip
        self._embeddings = 1 if config.get("tie_word_embeddings", True) else 2
        self._feed_forward = 3 if str(config.get("feed_forward_proj", "")).startswith("gated") else 2  # T5 1.1, mT5

    def parameters(self) -> int:
        """Approximate number of parameters of a model of this shape; used only if no weights can be counted."""
        per_layer = 4 * self.hidden**2 + self._feed_forward * self.hidden * self.inner
        attention_to_source = 4 * self.hidden**2 * self.decoders
        return int(self._embeddings * self.vocabulary * self.hidden + self.layers * per_layer + attention_to_source)


def _first(config: dict[str, Any], *names: str, default: int) -> int:
    return next((int(config[name]) for name in names if isinstance(config.get(name), int)), default)


@dataclass(frozen=True)
class TrainingLoad:
    """What determines the memory of a training run: the model, the longest sequence, and how it is computed."""

    spec: RunSpec
    folder: Path
    head: Head
    length: int
    """Tokens of the longest sequence."""
    parameters: int
    precision: str
    split: Split = field(default_factory=Split)
    """How several devices divide rows and weights; all numbers here are one device's."""

    def memory(self, rows: int) -> list[PlanPart]:
        """The memory of `rows` sequences in one forward pass on one device, in megabytes.

        Gradients, what the optimizer keeps and the weights that train are float32, other weights in `model.weights`.
        Activations follow Korthikanti et al. 2022 (about
        34 values per token and hidden unit, 2 with checkpointing, plus attention maps); logits of language models count
        thrice (logits, log-probabilities, gradient), as many at once as the engine computes.
        """
        return [
            PlanPart("Weights", self._weights_bytes * self.split.share / MB),
            PlanPart("Gradients", 4 * self.trainable * self.split.share / MB),
            PlanPart("Optimizer", self._optimizer_bytes * self.split.share / MB),
            PlanPart("Activations", self._activations_mb(rows)),
            PlanPart("Libraries", LIBRARIES_MB),
        ]

    @cached_property
    def trainable(self) -> int:
        """Parameters that train: all, or what an adapter adds, or all that are not frozen."""
        if not trains_a_part(self.spec):
            return self.parameters
        shapes = read_weights(self.folder).shapes
        if self.spec.adapter is not None:
            kind = registry.find("adapter", self.spec.adapter["type"], "adapter.type")
            model_type = str(inspection.read_config(self.folder).get("model_type", ""))
            return kind.count_trainable(validate(kind.Settings, self.spec.adapter, "adapter"), shapes, model_type)
        return self.parameters - sum(prod(shapes[name]) for name in frozen_names(shapes, self.spec.model.frozen))

    @cached_property
    def _optimizer_bytes(self) -> float:
        kind = registry.find("optimizer", self.spec.training.optimizer, "training.optimizer")
        if getattr(kind, "paged", False):
            return 0.0  # it leaves the device before anything else lacks memory
        return 4 * optimizer_state(self.spec, self.folder, self.trainable)

    @cached_property
    def _weights_bytes(self) -> float:
        kind = weight_format(self.spec, self.folder, self.precision)
        if kind == "float32":
            return 4 * self.parameters
        shapes, adapted = read_weights(self.folder).shapes, self.spec.adapter is not None
        frozen = [*shapes] if adapted else frozen_names(shapes, self.spec.model.frozen)
        others = (
            self.trainable * adapter_copies(self.spec)
            if adapted
            else self.parameters - sum(prod(shapes[name]) for name in frozen)
        )
        return frozen_bytes(shapes, frozen, kind) + 4 * others

    def _activations_mb(self, rows: int) -> float:
        shape, tokens = ModelShape(read_config(self.folder, self.spec)), rows * self.length
        recomputed = self.spec.training.gradient_checkpointing
        per_layer = tokens * shape.hidden * (2 if recomputed else 17 + 2 * shape.inner / shape.hidden)
        attention = 0 if recomputed else 2.5 * rows * shape.heads * self.length**2
        width = 4 if self.precision == "float32" else 2
        logits = self._logits_bytes(shape, tokens) if self.head.declared.over_vocabulary else 0
        return (shape.layers * (per_layer + attention) * width + logits) / MB

    def _logits_bytes(self, shape: ModelShape, tokens: int) -> int:
        logits = tokens * shape.vocabulary
        at_once = registry.find("engine", self.spec.hardware.engine, "hardware.engine").logits_at_once
        if at_once is None or logits <= at_once:
            return logits * 3 * 4
        # Parts of the logits, each of which makes a gradient of the whole output layer if that trains.
        gradient = 0 if self.spec.adapter is not None else shape.vocabulary * shape.hidden
        return (at_once * 3 + gradient) * 4

    def fits(self, rows: int, available_mb: float) -> bool:
        """Whether this many rows per pass need at most the free memory, with no reserve."""
        return total(self.memory(rows)) <= available_mb

    def micro_batch_size(self, available_mb: float) -> int:
        """Rows per pass on one device: as requested, else its part of the batch, halved until it fits in memory."""
        rows = -(-self.spec.training.batch_size // self.split.replicas)
        if self.spec.hardware.micro_batch_size is not None:
            return min(self.spec.hardware.micro_batch_size, rows)
        while rows > 1 and total(self.memory(rows)) > available_mb * SHARE:
            rows = -(-rows // 2)
        return rows


def split(spec: RunSpec, folder: Path | None, devices: int) -> Split:
    """How this many devices divide the work. Raises InputError if the engine's settings do not fit them."""
    engine = registry.find("engine", spec.hardware.engine, "hardware.engine")
    shapes = read_weights(folder).shapes if folder is not None and spec.model.initialise == "pretrained" else {}
    model_type = str(inspection.read_config(folder).get("model_type", "")) if folder is not None else ""
    return engine.split(engine_settings(spec), devices, shapes, model_type)


def trains_a_part(spec: RunSpec) -> bool:
    """Whether an adapter is trained, or some weights are frozen."""
    return spec.adapter is not None or bool(spec.model.frozen)


def weight_format(spec: RunSpec, folder: Path, precision: str) -> Format:
    """The format in which the run's engine holds the weights that are not trained."""
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


def total(parts: list[PlanPart]) -> float:
    """Megabytes of all parts."""
    return sum(part.megabytes for part in parts)


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


def check_new_weights(spec: RunSpec, folder: Path) -> None:
    """Raises InputError if the weights drawn by `from_config` cannot fit in this computer's memory."""
    if spec.model.initialise != "from_config":
        return
    parameters, there = estimate(read_config(folder, spec)), psutil.virtual_memory().total
    if parameters * _BYTES > there:
        raise InputError(
            "model.initialise: the configuration results in at least {parameters:,.1f} billion "
            "parameters, which would take {parameters_2:,.0f} GB of this computer's {there:,.0f} GB "
            "of memory; make the model smaller in model.config, or choose another model",
            "model.initialise",
            parameters=parameters / 1000000000.0,
            parameters_2=parameters * _BYTES / 1000000000.0,
            there=there / 1000000000.0,
        )


def count_parameters(spec: RunSpec, folder: Path) -> int:
    """Counted in the weights' header, else estimated from the configuration."""
    if spec.model.initialise == "pretrained":
        counted = inspection.count_parameters(folder)
        if counted:
            return counted
    return ModelShape(read_config(folder, spec)).parameters()
