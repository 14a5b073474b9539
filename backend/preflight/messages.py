"""The sentences of a plan and of a starting run: learning rate, truncation, batches, memory, downloads."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from backend.contract.spec import RunSpec, TrainingSection
from backend.engines.engine import Split
from backend.models.location import ModelLocation
from backend.preflight.datasets import Splits


@dataclass(frozen=True)
class UsualRange:
    """What an optimizer usually gets; beyond `least` and `most` a run is likely to learn nothing."""

    least: float
    most: float
    words: str


ALL_WEIGHTS = {
    "adamw": UsualRange(1e-7, 1e-2, "1e-5 to 5e-4 with AdamW"),
    "adam": UsualRange(1e-7, 1e-2, "1e-5 to 5e-4 with Adam"),
    "lion": UsualRange(1e-8, 3e-3, "2e-6 to 1e-4 with Lion"),
    "sgd": UsualRange(1e-6, 1.0, "1e-3 to 1e-1 with SGD"),
}
ADAPTER = UsualRange(1e-6, 5e-2, "1e-4 to 1e-3 for an adapter")
COUNTS = "cut_"
"""A feature's column `cut_target` (int32) says how many tokens of its target were left out."""


def rate_note(spec: RunSpec) -> list[str]:
    """The sentence, where there is something to say; optimizers that others add, and Adafactor's own scales, are not judged."""
    rate, usual = spec.training.learning_rate, _usual(spec.training, adapted=spec.adapter is not None)
    if usual is None or usual.least <= rate <= usual.most:
        return []
    if rate > usual.most:
        return [f"The learning rate {rate:g} is far above the usual {usual.words}: training is likely to diverge."]
    return [f"The learning rate {rate:g} is far below the usual {usual.words}: the model will hardly learn."]


def _usual(training: TrainingSection, *, adapted: bool) -> UsualRange | None:
    usual = ALL_WEIGHTS.get(training.optimizer)
    return ADAPTER if usual is not None and adapted and training.optimizer in ("adamw", "adam") else usual


def truncation_notes(batches: list[pa.RecordBatch], rows: str) -> list[str]:
    """One sentence for each part that was cut anywhere; `rows` says which rows these are, such as `training rows`."""
    names = [name for name in batches[0].schema.names if name.startswith(COUNTS)] if batches else []
    notes = []
    for name in names:
        features = pa.Table.from_batches([batch.select([name]) for batch in batches])
        cut = pc.sum(pc.greater(features[name], 0)).as_py() or 0
        if cut:
            notes.append(
                f"{cut:,} of {features.num_rows:,} {rows} lose the end of their {name.removeprefix(COUNTS)}, "
                f"{pc.sum(features[name]).as_py():,} tokens in all: they are longer than the task's limit."
            )
    return notes


def plan_notes(spec: RunSpec, material: Splits, split: Split, micro: int, batch_size: int) -> list[str]:
    """What the data and its batches need said; a pass on all devices together has `micro` rows of each group."""
    rows, together = len(material.rows["train"]), micro * split.replicas
    notes = [
        *material.notes,
        *(
            f"{len(part.skipped):,} {name} rows cannot be used, the first: {part.skipped[0].place} ({part.skipped[0].reason})."
            for name, part in material.rows.items()
            if part.skipped
        ),
    ]
    if spec.training.batch_size > rows:
        notes.append(
            f"The batch of {spec.training.batch_size} is larger than the data ({rows} rows); every step uses all rows."
        )
    if together < batch_size:
        notes.append(
            f"{batch_size} rows per step go through in {-(-batch_size // together)} passes of up to {together}, so that they fit."
        )
    return [*notes, *_filler_note(split, batch_size)]


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


def download_note(model: ModelLocation) -> list[str]:
    """What the run will fetch first, as a sentence."""
    if model.remote is None:
        return []
    return [f"The run first downloads the model's weights: {model.remote.size / 1e6:,.0f} MB"]


def memory_problems(needed: float, available: float, micro: int, remedied: bool) -> list[str]:
    """Why it cannot be trained here: it needs more memory than is free, and what to do."""
    if needed <= available:
        return []
    advice = "take one of the settings that make it fit" if remedied else "choose a smaller model"
    return [
        f"It needs about {_size(needed)} and {_size(available)} are free, even with {micro} "
        f"{'row' if micro == 1 else 'rows'} at a time: {advice}."
    ]


def _size(megabytes: float) -> str:
    return f"{megabytes:,.0f} MB" if megabytes < 1000 else f"{megabytes / 1000:.1f} GB"
