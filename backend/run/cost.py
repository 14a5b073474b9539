"""Owns the answer to "what will it cost": steps, tokens, memory by parts and time, before anything is written."""

import time

import numpy as np

from backend.contract.catalog import Device
from backend.contract.places import is_offline
from backend.contract.queries import Placement, PlanPart, RunPlan
from backend.contract.spec import RunSpec
from backend.data.lengths import Widths, of_order
from backend.data.order import Order
from backend.data.rows import Rows
from backend.data.sources.source import Report
from backend.engines.engine import Split
from backend.hardware import devices, planner
from backend.run import options, throughput, time_parts
from backend.run.material import Material, make_task, quiet, read_material
from backend.run.model_to_plan import download_note, model_to_plan
from backend.run.preparation import check_model
from backend.run.remedies import Measured, remedies
from backend.run.schedule import steps_per_epoch, total_steps
from backend.run.truncation import truncation_notes
from backend.tasks.task import encoded
from backend.tokenizers.loading import open_tokenizer

SAMPLE_ROWS = 2000
"""Rows that are tokenised to estimate lengths; the rest is taken to be alike."""


def plan(spec: RunSpec, here: list[Device], report: Report = quiet) -> RunPlan:
    """What training `spec` on one of the devices that are `here` would take. Raises InputError."""
    model, spec = model_to_plan(spec, report)
    check_model(spec, model.folder)
    options.check_model_options(spec, model.folder)
    material = read_material(spec, model.folder, report)
    lengths, per_row, cut, tokenising = _sample_lengths(spec, material, str(model.folder))
    choice = devices.choose(spec, here)
    rows = len(material.rows["train"])
    features = max(1, round(rows * per_row))
    task = make_task(spec)
    parameters = (model.remote and model.remote.parameters) or planner.count_parameters(spec, model.folder)
    available = planner.available_mb(spec, choice.device)
    longest, batch_size = int(lengths.max()), min(spec.training.batch_size, features)
    split = planner.split(spec, model.folder, len(choice.names))
    work = planner.Work(spec, model.folder, task.head, longest, parameters, choice.precision, split)
    micro = min(work.micro_batch_size(available), -(-batch_size // split.replicas))
    memory = work.memory(micro)
    needed = planner.total(memory)
    epoch = steps_per_epoch(spec.training, features)
    total = total_steps(spec.training, epoch)
    tokens_per_epoch = int(lengths.mean() * features)
    speed = throughput.expected(spec, model.folder, choice.words, choice.precision)
    parts = time_parts.time_parts(
        spec, {split: len(part) for split, part in material.rows.items()}, float(lengths.mean() * per_row),
        total / epoch, total, tokenising, speed,
    )  # fmt: skip
    fits = needed <= available
    ways = [] if fits else remedies(spec, Measured(model.folder, task.head, lengths, here))
    return RunPlan(
        rows=rows,
        features=features,
        steps_per_epoch=epoch,
        total_steps=total,
        batch_size=batch_size,
        micro_batch_size=micro,
        accumulation=-(-batch_size // (micro * split.replicas)),
        tokens_per_epoch=tokens_per_epoch,
        parameters=parameters,
        trainable=work.trainable,
        device=choice.words,
        precision=choice.precision,
        precision_reason=choice.reason,
        memory=memory,
        memory_mb=needed,
        available_mb=available,
        fits=fits,
        placement=placed(choice.names, split, memory, min(batch_size, micro * split.replicas)),
        seconds=time_parts.whole(parts),
        time=parts,
        longest=longest,
        padding=_padding(spec, lengths),
        remedies=ways,
        notes=[
            *material.notes,
            *_notes(spec, material, rows, micro * split.replicas, batch_size),
            *_filler_note(split, batch_size),
            *cut,
            *download_note(model),
            *filter(None, [choice.warning]),
        ],
        problems=_problems(needed, available, micro, any(way.fits for way in ways)),
    )


def _sample_lengths(spec: RunSpec, material: Material, folder: str) -> tuple[np.ndarray, float, list[str], float]:
    """Tokens per feature over the first rows, features per row, what truncation leaves out, and seconds a row."""
    train, task = material.rows["train"], make_task(spec)
    sample: Rows = train.take(np.arange(min(SAMPLE_ROWS, len(train))), "sample")
    tokenizer = open_tokenizer(
        spec.model.tokenizer or folder, options=spec.model.tokenizer_options, offline=is_offline()
    )
    started = time.perf_counter()
    batches = list(encoded(task, sample, material.columns, tokenizer, material.facts, to_train=True))
    seconds = (time.perf_counter() - started) / len(sample)
    lengths = [len(ids) for batch in batches for ids in batch.column("input_ids")]
    which = "training rows" if len(sample) == len(train) else "training rows at the beginning"
    return np.array(lengths or [1]), len(lengths) / len(sample), truncation_notes(batches, which), seconds


def _padding(spec: RunSpec, lengths: np.ndarray) -> float | None:
    """Which part of the tokens of an epoch is padding, if all rows are like these."""
    training = spec.training
    if spec.task.get("packing"):
        return None
    order = Order(lengths, training.batch_size, training.seed, "plan", training.length_buckets, training.drop_last)
    used, computed = of_order([Widths(lengths, lengths, 1, 1, None)], order)
    return 1 - used / computed if computed else None


def placed(names: tuple[str, ...], split: Split, memory: list[PlanPart], rows: int) -> list[Placement]:
    """What lies on each of several devices in a pass of `rows` rows; devices of one group read the same rows."""
    if split.hosts > 1:
        names = tuple(f"host {host} {name}" for host in range(split.hosts) for name in names)
    if len(names) < 2:
        return []
    size, per_group = len(names) // split.replicas, -(-rows // split.replicas)
    parts = {part.name: part.megabytes for part in memory}
    return [
        Placement(name, min(per_group, max(0, rows - number // size * per_group)), parts["Weights"], parts["Optimizer"])
        for number, name in enumerate(names)
    ]


def _filler_note(split: Split, batch_size: int) -> list[str]:
    """What a batch that the devices cannot share evenly costs, and the nearest that they can."""
    left = batch_size % split.replicas
    if not left:
        return []
    fitting = [size for size in (batch_size - left, batch_size - left + split.replicas) if size]
    return [
        f"{batch_size} rows a step do not divide over {split.replicas}: {split.replicas - left} filler rows are computed and "
        f"count for nothing; {' or '.join(map(str, fitting))} rows would need none."
    ]


def _notes(spec: RunSpec, material: Material, rows: int, micro: int, batch_size: int) -> list[str]:
    notes = [
        f"{len(part.skipped):,} {split} rows cannot be used, the first: {part.skipped[0].place} ({part.skipped[0].reason})."
        for split, part in material.rows.items()
        if part.skipped
    ]
    if spec.training.batch_size > rows:
        notes.append(
            f"The batch of {spec.training.batch_size} is larger than the data ({rows} rows); every step uses all rows."
        )
    if micro < batch_size:
        notes.append(
            f"{batch_size} rows per step go through in {-(-batch_size // micro)} passes of up to {micro}, so that they fit."
        )
    return notes


def _problems(needed: float, available: float, micro: int, remedied: bool) -> list[str]:
    if needed <= available:
        return []
    advice = "take one of the settings that make it fit" if remedied else "choose a smaller model"
    return [
        f"It needs about {needed / 1000:.2f} GB and {available / 1000:.2f} GB are free, even with {micro} "
        f"{'row' if micro == 1 else 'rows'} at a time: {advice}."
    ]
