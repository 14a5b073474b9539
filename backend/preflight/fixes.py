"""Finds settings that would make a run fit in memory, each with the planner's estimate."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from backend import registry
from backend.contract.catalog import Device
from backend.contract.errors import InputError
from backend.contract.heads import Head
from backend.contract.messages import message
from backend.contract.rpc.plan import AutoSetting
from backend.contract.run.cost import MemoryFix, format_size
from backend.contract.spec import RunSpec
from backend.contract.spec.auto import AUTO
from backend.contract.spec.training import ADAM, STOCHASTIC
from backend.contract.spec_file import set_values
from backend.engines.weight_formats import QUANTIZER
from backend.hardware import devices, planner, run_sizes
from backend.preflight import model_options, resolve
from backend.preflight.auto_settings import AutoResolution, with_chosen
from backend.preflight.engine_choice import check_engine

SHORTEST = 32
"""Tokens; a shorter limit says too little of most texts to be advised."""
LORA = {"type": "lora"}
CHECKPOINTING = "training.gradient_checkpointing"
MASTER_WEIGHTS = "training.master_weights"


@dataclass(frozen=True)
class MemoryFacts:
    """What is known about a training run before alternative settings are tried."""

    folder: Path
    head: Head
    lengths: np.ndarray
    """(features,) tokens of the rows that were looked at."""
    local_devices: list[Device]
    counts: Mapping[str, int]
    """Features of the training data, and rows of the other splits."""


def memory_fixes(spec: RunSpec, measured: MemoryFacts) -> list[MemoryFix]:
    """Settings with which `spec` needs less memory, least intrusive first; all combined if none alone is enough."""
    now = _memory_needed(spec, measured)
    found = [
        remedy
        for title, changes, note in _candidates(spec, measured)
        if (remedy := _try_changes(spec, measured, title, changes, note)) is not None and remedy.memory_mb < now
    ]
    if found and not any(remedy.fits for remedy in found) and (all_of_them := _combine(spec, measured, found)):
        found.append(all_of_them)
    return found


def choose_checkpointing(auto: AutoResolution, measured: MemoryFacts) -> AutoResolution:
    """Choose gradient checkpointing if it is `auto`: on only if the run fits with it, and not without it."""
    if auto.spec.training.gradient_checkpointing != AUTO:
        return auto
    off, on = (_try_changes(auto.spec, measured, "", {CHECKPOINTING: value}, "") for value in (False, True))
    if off is None or on is None or off.fits or not on.fits:
        return without_checkpointing(auto)
    reason = message(
        "gradient checkpointing on: with it the run needs about {needed} of memory, without it {more}, which is "
        "not free; each step takes about a third longer",
        needed=format_size(on.memory_mb),
        more=format_size(off.memory_mb),
    )
    return _with_checkpointing(auto, is_on=True, reason=reason)


def without_checkpointing(auto: AutoResolution) -> AutoResolution:
    """Gradient checkpointing off, for a run that is known to fit, or of which nothing is known."""
    return _with_checkpointing(auto, is_on=False)


def _with_checkpointing(auto: AutoResolution, *, is_on: bool, reason: str = "") -> AutoResolution:
    chosen = AutoSetting(CHECKPOINTING, is_on, reason)
    return AutoResolution(with_chosen(auto.spec, [chosen]), (*auto.chosen, chosen))


def _candidates(spec: RunSpec, measured: MemoryFacts) -> Iterator[tuple[str, dict[str, Any], str]]:
    if spec.hardware.micro_batch_size is not None and spec.hardware.micro_batch_size > 1:
        yield (
            message("Automatic micro-batch size"),
            {"hardware.micro_batch_size": None},
            message("The result stays the same; each step takes longer."),
        )
    if spec.training.gradient_checkpointing is not True:
        yield (
            "Gradient checkpointing",
            {CHECKPOINTING: True},
            message("The result stays the same; each step takes about a third longer."),
        )
    if devices.choose(spec, measured.local_devices).precision == "float32":
        yield (
            message("Half precision"),
            {"hardware.precision": "bfloat16"},
            message("Computes at lower precision; the weights keep full precision."),
        )
    if spec.adapter is None:
        yield message("LoRA adapter"), with_lora(spec), message("Trains a few added weights instead of all of them.")
    if _can_round(spec, measured):
        yield (
            message("Master weights in bfloat16"),
            {MASTER_WEIGHTS: STOCHASTIC},
            message("Halves the memory of weights and gradients; each update is rounded at random."),
        )
    yield from _weight_formats(spec)
    yield from _shorter(spec, measured)
    if spec.training.optimizer in ("adamw", "adam"):
        yield (
            message("8-bit AdamW"),
            {"training.optimizer": "adamw_8bit"},
            message("Keeps a quarter of the state per weight, except for embeddings; on a CPU each step takes longer."),
        )
    if spec.training.optimizer in ADAM:
        yield (
            message("Adafactor optimizer"),
            {"training.optimizer": "adafactor", "training.optimizer_options": {}},
            message("Keeps far less state per weight than Adam; the best learning rate may differ."),
        )


def with_lora(spec: RunSpec) -> dict[str, Any]:
    """What to change so that an adapter is trained instead of all weights."""
    return {"adapter": LORA, **({MASTER_WEIGHTS: "float32"} if spec.training.master_weights == STOCHASTIC else {})}


def _can_round(spec: RunSpec, measured: MemoryFacts) -> bool:
    """Whether the weights that train may be held in bfloat16, and are not yet."""
    changed = spec.model_copy(update={"training": spec.training.model_copy(update={"master_weights": STOCHASTIC})})
    try:
        model_options.check_master_weights(changed, devices.choose(spec, measured.local_devices).precision)
    except InputError:
        return False
    return changed != spec


def _weight_formats(spec: RunSpec) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Formats that take less memory, if the engine has them, for weights that are not trained."""
    engine = registry.find("engine", spec.hardware.engine, "hardware.engine")
    if "bfloat16" in engine.weight_formats and run_sizes.trains_a_part(spec):
        yield (
            message("Frozen weights in bfloat16"),
            {"model.weights": "bfloat16"},
            message("Half of float32's memory; a model whose file is in bfloat16 loses nothing."),
        )
    if "nf4" in engine.weight_formats and find_spec(QUANTIZER) is not None:
        adapter = {} if run_sizes.trains_a_part(spec) else with_lora(spec)
        yield (
            message("Frozen weights in 4 bits") if not adapter else message("LoRA on weights in 4 bits (QLoRA)"),
            {**adapter, "model.weights": "nf4"},
            message("An eighth of float32's memory; answers become slightly less exact."),
        )


def _shorter(spec: RunSpec, measured: MemoryFacts) -> Iterator[tuple[str, dict[str, Any], str]]:
    """The largest fitting half, quarter … of the length limit, else the smallest."""
    if "max_length" not in spec.task:
        return
    longest = int(measured.lengths.max())
    limit = 1 << max(0, longest - 1).bit_length()
    while (limit := limit // 2) >= SHORTEST:
        cut = float(np.mean(measured.lengths >= limit))
        note = (
            message("About {cut:.0%} of the rows are truncated.", cut=cut)
            if cut >= 0.005
            else message("Hardly any rows are truncated.")
        )
        candidate = message("At most {limit} tokens", limit=limit), {"task.max_length": limit}, note
        tried = _try_changes(spec, measured, *candidate)
        if tried is None:
            return
        if tried.fits or limit // 2 < SHORTEST:
            yield candidate
            return


def _combine(spec: RunSpec, measured: MemoryFacts, found: list[MemoryFix]) -> MemoryFix | None:
    changes = {key: value for remedy in found for key, value in remedy.changes.items()}
    if "adapter" in changes:
        # An adapter has so few weights that its optimizer hardly matters.
        changes = {key: value for key, value in changes.items() if not key.startswith("training.optimizer")}
        if changes.get(MASTER_WEIGHTS) == STOCHASTIC:
            del changes[MASTER_WEIGHTS]
    return _try_changes(
        spec, measured, message("All options together"), changes, message("None of these is enough on its own.")
    )


def _try_changes(
    spec: RunSpec, measured: MemoryFacts, title: str, changes: Mapping[str, Any], note: str
) -> MemoryFix | None:
    """The memory of a run with these changes; None if they do not fit the model, the engine or the device."""
    try:
        changed = resolve.resolve(set_values(spec.model_dump(mode="json"), changes), Path("/"))
        check_engine(changed)
        model_options.check_weights(changed)
        model_options.check_adapter(changed)
        model_options.check_model_options(changed, measured.folder)
        choice = devices.choose(changed, measured.local_devices)
        device = choice.device
        model_options.check_optimizer(changed, device.kind)
        model_options.check_master_weights(changed, choice.precision)
        needed = _memory_needed(changed, measured)
        free = run_sizes.available_mb(changed, device)
    except InputError:
        return None
    return MemoryFix(title=title, changes=dict(changes), memory_mb=needed, fits=needed <= free, note=note)


def _memory_needed(spec: RunSpec, measured: MemoryFacts) -> float:
    choice = devices.choose(spec, measured.local_devices)
    split = run_sizes.split(spec, measured.folder, len(choice.names))
    limit = spec.task.get("max_length") or int(measured.lengths.max())
    parameters = run_sizes.count_parameters(spec, measured.folder)
    longest = min(int(measured.lengths.max()), limit)
    work = planner.TrainingLoad(
        spec, measured.folder, measured.head, longest, parameters, choice.precision, split,
        choice.device.kind == "cpu", measured.counts,
    )  # fmt: skip
    rows = work.micro_batch_size(run_sizes.available_mb(spec, choice.device))
    return planner.total(work.memory(rows))
