"""Answers "what will it cost": steps, tokens, memory by parts and time, before anything is written."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

from backend.contract.catalog import Device
from backend.contract.messages import message
from backend.contract.places import cache_folder, is_offline
from backend.contract.rpc.plan import Placement, PlanPart, RunPlan
from backend.contract.run.cost import Measurement, TimePart
from backend.contract.spec import RunSpec
from backend.data.lengths import PaddedLengths, count_in_order
from backend.data.order import DataOrder
from backend.data.sources.source import Report
from backend.engines.engine import Split
from backend.hardware import devices, planner, run_sizes
from backend.models import location
from backend.models.location import ModelLocation
from backend.preflight import auto_settings, disk_cost, measurements, model_options, sample_lengths, time_estimate
from backend.preflight.auto_settings import AutoResolution, choose_compile
from backend.preflight.checks import check_model, count_parameters, locate_model, model_size
from backend.preflight.datasets import Splits, ignore_progress, load_splits, make_task
from backend.preflight.engine_choice import check_compile
from backend.preflight.fixes import MemoryFacts, choose_checkpointing, memory_fixes
from backend.preflight.messages import download_note, memory_problems, plan_notes, rate_note
from backend.preflight.steps import steps_per_epoch, total_steps

MeasureElsewhere = Callable[[float, float], Measurement]
"""Takes the tokens of a step, and of a row."""


def plan(
    spec: RunSpec,
    local_devices: list[Device],
    report: Report = ignore_progress,
    *,
    is_too_much: bool = False,
    measure_elsewhere: MeasureElsewhere | None = None,
) -> RunPlan:
    """What it costs to train `spec` on one of the devices in `here`. Raises InputError.

    The time is that on another computer with `measure_elsewhere`. With `is_too_much`, known from a trial, memory fixes are listed even if it fits.
    """
    model, splits, auto = _read(spec, report)
    spec = auto.spec
    sample = sample_lengths.measure(spec, splits, model, report)
    lengths, head, counts = sample.lengths, make_task(spec).head, sample.count_features(splits)
    choice = _choose_device(spec, local_devices)
    rows, features = {split: len(part) for split, part in splits.rows.items()}, counts["train"]
    facts = MemoryFacts(model.folder, head, lengths, local_devices, counts)
    parameters = count_parameters(spec, model)
    auto = choose_compile(choose_checkpointing(auto, facts), parameters, splits, lambda: choice.device)
    spec = auto.spec
    available = run_sizes.available_mb(spec, choice.device)
    longest, batch_size = int(lengths.max()), min(spec.training.batch_size, features)
    split = run_sizes.split(spec, model.folder, len(choice.names))
    work = planner.TrainingLoad(
        spec, model.folder, head, longest, parameters, choice.precision, split,
        choice.device.kind == "cpu", counts,
    )  # fmt: skip
    micro = min(work.micro_batch_size(available), -(-batch_size // split.replicas))
    memory = work.with_copy(work.memory(micro), micro, available)
    needed = planner.total(memory)
    amounts = _amounts(spec, rows, features, sample)
    known, parts = _time(amounts, model.folder, choice, lengths, measure_elsewhere)
    seconds, least, most = time_estimate.sum_parts(parts)
    fits = needed <= available
    notes = [*rate_note(spec), *plan_notes(spec, splits, split, micro, batch_size), *sample.cut]
    remedies = [] if fits and not is_too_much else memory_fixes(spec, facts)
    return RunPlan(
        rows=rows["train"],
        features=features,
        steps_per_epoch=amounts.steps_per_epoch,
        total_steps=amounts.total_steps,
        batch_size=batch_size,
        micro_batch_size=micro,
        accumulation=-(-batch_size // (micro * split.replicas)),
        tokens_per_epoch=int(lengths.mean() * features),
        parameters=parameters,
        trainable=work.trainable,
        device=choice.words,
        precision=choice.precision,
        precision_reason=choice.reason,
        memory=memory,
        memory_mb=needed,
        available_mb=available,
        fits=fits,
        placement=place_parts(choice.names, split, memory, min(batch_size, micro * split.replicas)),
        seconds=seconds,
        least_seconds=least,
        most_seconds=most,
        time=parts,
        measured=known,
        longest=longest,
        padding=_padding(spec, lengths),
        auto=list(auto.chosen),
        remedies=remedies,
        disk=disk_cost.plan_here(spec, model, splits, sample, amounts, choice.device.kind, parameters),
        notes=[*notes, *download_note(model), *filter(None, [choice.warning, model_options.describe_merging(spec)])],
        problems=memory_problems(needed, available, micro, any(remedy.fits for remedy in remedies)),
    )


def _choose_device(spec: RunSpec, local_devices: list[Device]) -> devices.DeviceChoice:
    choice = devices.choose(spec, local_devices)
    model_options.check_optimizer(spec, choice.device.kind)
    model_options.check_master_weights(spec, choice.precision)
    check_compile(spec, choice.device.kind)
    return choice


def _read(given: RunSpec, report: Report) -> tuple[ModelLocation, Splits, AutoResolution]:
    """The model, the rows, and the spec with numbers to use for planning."""
    # What a start would refuse, the plan says first.
    model_options.check_weights(given)
    model_options.check_adapter(given)
    model_options.check_optimizer(given)
    model_options.check_master_weights(given)
    check_compile(given)
    model, spec = model_to_plan(given, report)
    fitted = auto_settings.fit_to_model(spec, model.folder)
    spec, given = fitted.spec, auto_settings.with_chosen(given, fitted.chosen)
    check_model(spec, model.folder)
    model_options.check_model_options(spec, model.folder)
    splits = load_splits(spec, model.folder, report)
    auto = auto_settings.resolve(given, splits, lambda: model_size(spec, model))
    chosen = (*fitted.chosen, *auto.chosen)
    return model, splits, AutoResolution(auto_settings.with_chosen(spec, auto.chosen), chosen)


def model_to_plan(spec: RunSpec, report: Report) -> tuple[ModelLocation, RunSpec]:
    """The model's folder, and the spec to use for planning.

    For a hub model whose weights are not local, only the small files and a spec that needs no weights: sizes then come
    from the configuration. If only some weights train, it downloads the weights, which it needs. Raises InputError.
    """
    if spec.model.initialise != "pretrained" or run_sizes.trains_a_part(spec):
        model = locate_model(spec, report)
        model_options.check_new_weights(spec, model.folder)
        return model, spec
    found = location.locate_small_files(
        spec.model.name_or_path, spec.model.revision, cache=cache_folder() / "weights", offline=is_offline()
    )
    if found.remote is None or found.remote.weights_format == "none":
        return locate_model(spec, report), spec
    weightless = spec.model.model_copy(update={"initialise": "from_config"})
    return found, spec.model_copy(update={"model": weightless})


def _amounts(
    spec: RunSpec, rows: dict[str, int], features: int, sample: sample_lengths.SampleLengths
) -> time_estimate.Amounts:
    epoch, mean = steps_per_epoch(spec.training, features), float(sample.lengths.mean() * sample.per_row)
    total = total_steps(spec.training, epoch)
    return time_estimate.Amounts(spec, rows, mean, epoch, total, sample.seconds, sample.made())


def _time(
    amounts: time_estimate.Amounts,
    folder: Path,
    choice: devices.DeviceChoice,
    lengths: np.ndarray,
    elsewhere: MeasureElsewhere | None,
) -> tuple[Measurement | None, list[TimePart]]:
    """The measurement for such a training run, and the parts of its time based on it, else on a comparable run."""
    if elsewhere is not None:
        known = elsewhere(amounts.tokens_per_step, amounts.tokens_per_row)
        return known, time_estimate.estimate_parts(amounts, known)
    key = measurements.key_of(amounts.spec, folder, choice.words, choice.precision)
    known = measurements.recall(key, float(lengths.mean()), int(lengths.max()))
    a_row = amounts.tokens_per_row
    similar = known or measurements.recall_similar(
        amounts.spec,
        folder,
        choice.words,
        choice.precision,
        amounts.tokens_per_step,
        a_row,
    )
    if similar is None:
        return None, time_estimate.unknown_parts(amounts)
    return known, time_estimate.estimate_parts(amounts, similar)


def _padding(spec: RunSpec, lengths: np.ndarray) -> float | None:
    """The share of padding among an epoch's tokens, if all rows are like these."""
    training = spec.training
    if spec.task.get("packing"):
        return None
    order = DataOrder(lengths, training.batch_size, training.seed, "plan", training.length_buckets, training.drop_last)
    used, computed = count_in_order([PaddedLengths(lengths, lengths, 1, 1, None)], order)
    return 1 - used / computed if computed else None


def place_parts(names: tuple[str, ...], split: Split, memory: list[PlanPart], rows: int) -> list[Placement]:
    """What each of several devices holds in a pass of `rows` rows; devices of one group read the same rows."""
    if split.hosts > 1:
        names = tuple(
            message("host {host} {name}", host=host, name=name) for host in range(split.hosts) for name in names
        )
    if len(names) < 2:
        return []
    size, per_group = len(names) // split.replicas, -(-rows // split.replicas)
    parts = {part.name: part.megabytes for part in memory}
    shares = Counter(
        (name, min(per_group, max(0, rows - number // size * per_group))) for number, name in enumerate(names)
    )
    return [
        Placement(name, own_rows, parts["Weights"], parts["Optimizer"], processes)
        for (name, own_rows), processes in shares.items()
    ]
