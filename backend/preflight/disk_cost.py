"""Estimates what a run writes (checkpoints, model, predictions, cache, download), whether there is room, and what needs less."""

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from backend.contract.errors import InputError
from backend.contract.heads import Head
from backend.contract.messages import message
from backend.contract.places import cache_folder, runs_folder
from backend.contract.rpc.plan import DiskPart, DiskPlan, DiskVolume
from backend.contract.run.cost import DiskFix, format_size
from backend.contract.spec import RunSpec
from backend.contract.spec.training import ADAM, ADAMW, STOCHASTIC
from backend.contract.spec_file import set_values
from backend.data.rows import Rows
from backend.hardware import planner, run_sizes
from backend.models.location import ModelLocation
from backend.preflight import model_options, resolve
from backend.preflight.datasets import Splits, make_task
from backend.preflight.fixes import with_lora
from backend.preflight.sample_lengths import SAMPLE_ROWS, SampleLengths
from backend.preflight.time_estimate import Amounts

MB = 1e6
RUNS, CACHE, HUB = "runs", "cache", "hub"
_NUMBER = 4
"""Bytes: checkpoints and the final model are float32."""
_COMPRESSED = 0.9
"""Part of its size that a float takes in Orbax's files, which zstd compresses."""
_STEP_BYTES, _RUN_BYTES = 260, 30_000
"""Of the events of a step, and of a run's small files."""
_TOKEN_BYTES, _FEATURE_BYTES = 5, 32
"""Of a prepared token (ID and type), and of its feature."""
_PREDICTED_ROW_BYTES = 120
"""Of a row's predictions in CSV and Parquet, without the input."""
_SPARSE_FROM = 1 << 20
"""Weights of an embedding."""
_NEW_WORDS = 0.5
"""The number of different words grows with this power of a text's length (Heaps' law)."""
_TOKENIZER_FILES = ("tokenizer.json", "vocab.txt", "vocab.json", "merges.txt", "*.model", "tokenizer_config.json")


@dataclass(frozen=True)
class DiskFacts:
    """What is known about a run before its settings are changed."""

    folder: Path
    """The model's."""
    head: Head
    parameters: int
    features: int
    tokens: int
    """Of all features of the training data."""
    distinct: int
    """Different tokens among the rows that were tokenized."""
    device: str
    amounts: Amounts
    rows: Mapping[str, Rows]
    download_mb: float = 0.0


@dataclass(frozen=True)
class Place:
    """A folder that a run writes to, and the room on its disk."""

    folder: Path
    device: int
    free_mb: float
    total_mb: float


def find_places(*, downloads: bool) -> dict[str, Place]:
    """The folders that a run writes to, with the room on their disks; those that cannot be read are left out."""
    folders = {RUNS: runs_folder(), CACHE: cache_folder()}
    if downloads:
        from huggingface_hub import constants  # takes a fifth of a second, which a local model need not wait for

        folders[HUB] = Path(constants.HF_HUB_CACHE)
    found = {}
    for name, folder in folders.items():
        there = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
        try:
            usage, device = shutil.disk_usage(there), there.stat().st_dev
        except OSError:
            continue
        found[name] = Place(folder, device, usage.free / MB, usage.total / MB)
    return found


def plan_here(
    spec: RunSpec,
    model: ModelLocation,
    splits: Splits,
    sample: SampleLengths,
    amounts: Amounts,
    device: str,
    parameters: int,
) -> DiskPlan:
    """What a run of `spec` writes to the disks of this computer."""
    features = max(1, round(len(splits.rows["train"]) * sample.per_row))
    facts = DiskFacts(
        model.folder, make_task(spec).head, parameters, features, int(sample.lengths.mean() * features), sample.distinct,
        device, amounts, splits.rows, model.remote.size / MB if model.remote else 0.0,
    )  # fmt: skip
    return plan_disk(spec, facts, find_places(downloads=facts.download_mb > 0))


def plan_disk(spec: RunSpec, facts: DiskFacts, places: Mapping[str, Place]) -> DiskPlan:
    """The parts of what a run of `spec` writes, and settings that need less if a disk has no room for them."""
    parts = _list_parts(spec, facts)
    volumes = _sum_volumes(parts, places)
    short = next((volume for volume in volumes if not volume.fits), None)
    if short is None:
        return DiskPlan(parts=[part for _, part in parts], volumes=volumes)
    fixes = _find_fixes(spec, facts, places)
    return DiskPlan(
        parts=[part for _, part in parts], volumes=volumes, problem=_describe_shortage(short, fixes), fixes=fixes
    )


def _describe_shortage(short: DiskVolume, fixes: list[DiskFix]) -> str:
    advice = (
        message("choose one of the settings that need less")
        if any(fix.fits for fix in fixes)
        else message("free up some space, or choose another folder in Settings (BURNISH_RUNS and BURNISH_CACHE)")
    )
    return message(
        "The disk will be full: the run writes about {needed} to {folder}, where {free} is free; {advice}",
        needed=format_size(short.needed_mb),
        folder=short.folder,
        free=format_size(short.free_mb),
        advice=advice,
    )


def _list_parts(spec: RunSpec, facts: DiskFacts) -> list[tuple[str, DiskPart]]:
    """Place and part; a new checkpoint is whole before an old one is deleted."""
    checkpoint, model = _checkpoint_mb(spec, facts), _model_mb(spec, facts)
    rest = _predictions_mb(facts)
    kept, written = _count_checkpoints(spec, facts)
    parts = [
        (
            RUNS,
            DiskPart(
                "Checkpoints", kept * checkpoint, message("{count} × {size}", count=kept, size=format_size(checkpoint))
            ),
        ),
        (RUNS, DiskPart("Final model", model)),
        (RUNS, DiskPart("Predictions, log", rest)),
    ]
    beside = max(0.0, checkpoint - model - rest) if written > kept else 0.0
    copy = _copy_mb(spec, facts)
    if beside or copy:
        note = message("a new checkpoint before an old one is deleted")
        if copy > beside:
            note = message("weights converted to float32, until the model is written")
        parts.append((RUNS, DiskPart("While saving", max(beside, copy), note)))
    if prepared := _prepared_mb(facts):
        parts.append((CACHE, DiskPart("Prepared data", prepared)))
    if facts.download_mb:
        parts.append((HUB, DiskPart("Download", facts.download_mb)))
    return [(place, part) for place, part in parts if part.megabytes]


def _count_checkpoints(spec: RunSpec, facts: DiskFacts) -> tuple[int, int]:
    """Checkpoints that are kept at the end at most, and those that are written in all."""
    amounts = replace(facts.amounts, spec=spec)
    written = amounts.checkpoints[1]
    has_best = spec.evaluation.best_metric is not None and amounts.evaluations > 0
    return min(written, spec.training.keep_checkpoints + has_best), written


def _checkpoint_mb(spec: RunSpec, facts: DiskFacts) -> float:
    trainable = _trainable(spec, facts)
    state = run_sizes.optimizer_state(spec, facts.folder, trainable)
    each = 2.0 if spec.training.optimizer in ADAM else run_sizes.state_per_weight(spec)  # of an embedding
    state -= each * _weights_without_state(spec, facts)
    weights = trainable / 2 if spec.training.master_weights == STOCHASTIC else trainable
    return _NUMBER * (weights + state) * (_COMPRESSED if spec.hardware.engine == "jax" else 1.0) / MB


def _weights_without_state(spec: RunSpec, facts: DiskFacts) -> int:
    """Weights of words that never occur: torch keeps no state for them (`sparse_embedding.py`), and JAX zeros, which
    are compressed to nothing.
    """
    config = run_sizes.read_config(facts.folder, spec)
    shape = planner.ModelShape(config)
    is_tied = facts.head.declared.over_vocabulary and config.get("tie_word_embeddings", True)
    is_shared = is_tied or bool(config.get("is_encoder_decoder")) or facts.head is Head.MASKED_LM
    if is_shared or run_sizes.trains_a_part(spec) or spec.training.master_weights == STOCHASTIC:
        return 0
    is_sparse = facts.device == "cpu" and spec.training.optimizer in ADAMW
    if spec.hardware.engine == "torch" and (not is_sparse or shape.vocabulary * shape.hidden < _SPARSE_FROM):
        return 0
    train = len(facts.rows["train"])
    seen = min(train, facts.amounts.total_steps * spec.training.batch_size)
    words = facts.distinct * (seen / min(train, SAMPLE_ROWS)) ** _NEW_WORDS
    return max(0, shape.vocabulary - int(words)) * shape.hidden


def _trainable(spec: RunSpec, facts: DiskFacts) -> int:
    return planner.TrainingLoad(spec, facts.folder, facts.head, 1, facts.parameters, "float32").trainable


def _model_mb(spec: RunSpec, facts: DiskFacts) -> float:
    is_alone = spec.adapter is not None and spec.adapter.get("saved") == "adapter"
    numbers = _trainable(spec, facts) * run_sizes.adapter_copies(spec) if is_alone else facts.parameters
    found = {path for pattern in _TOKENIZER_FILES for path in facts.folder.glob(pattern)}
    return (_NUMBER * numbers + sum(path.stat().st_size for path in found)) / MB


def _copy_mb(spec: RunSpec, facts: DiskFacts) -> float:
    """What the engine writes of a model that it does not hold in float32, before it saves it."""
    if spec.adapter is not None and spec.adapter.get("saved") == "adapter":
        return 0.0
    precision = "float32" if facts.device.startswith("cpu") else "bfloat16"  # at most
    is_float32 = run_sizes.weight_format(spec, facts.folder, precision) == "float32"
    return 0.0 if is_float32 else _NUMBER * facts.parameters / MB


def _predictions_mb(facts: DiskFacts) -> float:
    predicted = [facts.rows[split] for split in ("validation", "test") if split in facts.rows]
    inputs = sum(2 * one.table.nbytes for one in predicted)  # CSV and Parquet
    own = _PREDICTED_ROW_BYTES * sum(len(one) for one in predicted)
    return (inputs + own + _STEP_BYTES * facts.amounts.total_steps + _RUN_BYTES) / MB


def _prepared_mb(facts: DiskFacts) -> float:
    """The features of all splits that are not in the cache yet."""
    train = len(facts.rows["train"])
    missing = sum(len(one) for split, one in facts.rows.items() if split not in facts.amounts.tokenised)
    return (_TOKEN_BYTES * facts.tokens + _FEATURE_BYTES * facts.features) * missing / train / MB


def _sum_volumes(parts: list[tuple[str, DiskPart]], places: Mapping[str, Place]) -> list[DiskVolume]:
    found: dict[int, DiskVolume] = {}
    for name, part in parts:
        place = places.get(name)
        if place is None:
            continue
        there = found.get(place.device) or DiskVolume(str(place.folder), 0.0, place.free_mb, place.total_mb)
        found[place.device] = DiskVolume(there.folder, there.needed_mb + part.megabytes, there.free_mb, there.total_mb)
    return list(found.values())


# What would need less


def _find_fixes(spec: RunSpec, facts: DiskFacts, places: Mapping[str, Place]) -> list[DiskFix]:
    """Settings that need less, the gentlest first; those of checkpoints together if none of them alone is enough."""
    now = sum(part.megabytes for _, part in _list_parts(spec, facts))
    gentle = list(_checkpoint_candidates(spec))
    fixes = [_try_changes(spec, facts, places, *candidate) for candidate in gentle]
    if len(gentle) > 1 and not any(fix is not None and fix.fits for fix in fixes):
        together = {key: value for _, changes, _ in gentle for key, value in changes.items()}
        note = message("If the computer crashes, the run starts over; the final model is that of the last step.")
        fixes.append(_try_changes(spec, facts, places, message("Save only the final model"), together, note))
    fixes += [_try_changes(spec, facts, places, *candidate) for candidate in _state_candidates(spec)]
    return [fix for fix in fixes if fix is not None and fix.disk_mb < now]


def _checkpoint_candidates(spec: RunSpec) -> Iterator[tuple[str, dict[str, Any], str]]:
    if spec.training.keep_checkpoints > 1:
        yield (
            message("Keep one checkpoint"),
            {"training.keep_checkpoints": 1},
            message("The newest checkpoint, and the best one, are kept."),
        )
    if spec.training.checkpoint_every != "never":
        yield (
            message("No checkpoints during training"),
            {"training.checkpoint_every": "never"},
            message("If the computer crashes, only a checkpoint of the best evaluation is left, if any."),
        )
    if spec.evaluation.best_metric is not None:
        yield (
            message("Keep the last weights"),
            {"evaluation.best_metric": None},
            message("The final model is that of the last step instead of the best evaluation."),
        )


def _state_candidates(spec: RunSpec) -> Iterator[tuple[str, dict[str, Any], str]]:
    if spec.adapter is None:
        yield message("LoRA adapter"), with_lora(spec), message("Trains a few added weights instead of all of them.")
    if spec.training.optimizer in ADAM:
        yield (
            message("Adafactor optimizer"),
            {"training.optimizer": "adafactor", "training.optimizer_options": {}},
            message("Keeps far less state per weight than Adam; the best learning rate may differ."),
        )


def _try_changes(
    spec: RunSpec, facts: DiskFacts, places: Mapping[str, Place], title: str, changes: dict[str, Any], note: str
) -> DiskFix | None:
    """What a run with these changes writes; None if the model or the engine does not support them."""
    try:
        changed = resolve.resolve(set_values(spec.model_dump(mode="json"), changes), Path("/"))
        model_options.check_model_options(changed, facts.folder)
        parts = _list_parts(changed, facts)
    except InputError:
        return None
    fits = all(volume.fits for volume in _sum_volumes(parts, places))
    needed = sum(part.megabytes for _, part in parts)
    return DiskFix(title=title, changes=changes, disk_mb=needed, fits=fits, note=note)
