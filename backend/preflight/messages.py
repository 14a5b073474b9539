"""The sentences of a plan and of a starting run: learning rate, truncation, batches, memory, downloads."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from backend.contract.messages import message, plural
from backend.contract.run.cost import format_size
from backend.contract.spec import RunSpec, TrainingSection
from backend.contract.spec.training import ADAM, ADAMW
from backend.engines.engine import Split
from backend.models.location import ModelLocation
from backend.preflight.datasets import Splits


@dataclass(frozen=True)
class UsualRange:
    """An optimizer's usual learning rates; outside of `least` and `most` a run is unlikely to learn."""

    least: float
    most: float
    words: str


ALL_WEIGHTS = {
    **dict.fromkeys(ADAMW, UsualRange(1e-7, 1e-2, message("1e-5 to 5e-4 with AdamW"))),
    "adam": UsualRange(1e-7, 1e-2, message("1e-5 to 5e-4 with Adam")),
    "lion": UsualRange(1e-8, 3e-3, message("2e-6 to 1e-4 with Lion")),
    "sgd": UsualRange(1e-6, 1.0, message("1e-3 to 1e-1 with SGD")),
}
ADAPTER = UsualRange(1e-6, 5e-2, message("1e-4 to 1e-3 for an adapter"))
COUNTS = "cut_"
"""A feature's column `cut_target` (int32) says how many tokens of its target were left out."""


def rate_note(spec: RunSpec) -> list[str]:
    """A warning about the learning rate, if any; plugin optimizers and Adafactor's relative rates are not judged."""
    rate, usual = spec.training.learning_rate, _usual_range(spec.training, adapted=spec.adapter is not None)
    if usual is None or usual.least <= rate <= usual.most:
        return []
    if rate > usual.most:
        return [
            message(
                "The learning rate {rate:g} is far above the usual {words}: training is likely to diverge.",
                rate=rate,
                words=usual.words,
            )
        ]
    return [
        message(
            "The learning rate {rate:g} is far below the usual {words}: the model will learn very little.",
            rate=rate,
            words=usual.words,
        )
    ]


def _usual_range(training: TrainingSection, *, adapted: bool) -> UsualRange | None:
    usual = ALL_WEIGHTS.get(training.optimizer)
    return ADAPTER if usual is not None and adapted and training.optimizer in ADAM else usual


def truncation_notes(batches: list[pa.RecordBatch], rows: str) -> list[str]:
    """One sentence for each input that was truncated anywhere; `rows` names the rows, such as `training rows`."""
    names = [name for name in batches[0].schema.names if name.startswith(COUNTS)] if batches else []
    notes = []
    for name in names:
        features = pa.Table.from_batches([batch.select([name]) for batch in batches])
        cut = pc.sum(pc.greater(features[name], 0)).as_py() or 0
        if cut:
            notes.append(
                message(
                    "{cut:,} of {num_rows:,} {rows} lose the end of their {name}, {features:,} tokens in "
                    "total, because they are longer than the task's limit.",
                    cut=cut,
                    num_rows=features.num_rows,
                    rows=rows,
                    name=name.removeprefix(COUNTS),
                    features=pc.sum(features[name]).as_py(),
                )
            )
    return notes


def plan_notes(spec: RunSpec, splits: Splits, split: Split, micro: int, batch_size: int) -> list[str]:
    """Notes about the data and its batches; a pass on all devices has `micro` rows per group."""
    rows, together = len(splits.rows["train"]), micro * split.replicas
    notes = [
        *splits.notes,
        *(
            message(
                "{skipped:,} {split} rows cannot be used; the first one: {place} ({reason}).",
                skipped=len(part.skipped),
                split=name,
                place=part.skipped[0].place,
                reason=part.skipped[0].reason,
            )
            for name, part in splits.rows.items()
            if part.skipped
        ),
    ]
    if spec.training.batch_size > rows:
        notes.append(
            message(
                "The batch size {batch_size} is larger than the data ({rows} rows); every step uses all rows.",
                batch_size=spec.training.batch_size,
                rows=rows,
            )
        )
    if together < batch_size:
        notes.append(
            message(
                "{batch_size} rows per step are computed in {value} passes of up to {together} to fit in memory.",
                batch_size=batch_size,
                value=-(-batch_size // together),
                together=together,
            )
        )
    return [*notes, *_filler_note(split, batch_size)]


def _filler_note(split: Split, batch_size: int) -> list[str]:
    """The cost of a batch that the devices cannot share evenly, and the nearest even size."""
    left = batch_size % split.replicas
    if not left:
        return []
    fitting = [size for size in (batch_size - left, batch_size - left + split.replicas) if size]
    return [
        message(
            "{batch_size} rows per step cannot be divided evenly among {replicas}: {replicas_2} padding rows are "
            "computed but not counted; {fitting} rows would need none.",
            batch_size=batch_size,
            replicas=split.replicas,
            replicas_2=split.replicas - left,
            fitting=" or ".join(map(str, fitting)),
        )
    ]


def download_note(model: ModelLocation) -> list[str]:
    """What the run will download first, as a sentence."""
    if model.remote is None:
        return []
    return [message("The run first downloads the model's weights: {size:,.0f} MB", size=model.remote.size / 1000000.0)]


def memory_problems(needed: float, available: float, micro: int, remedied: bool) -> list[str]:
    """Why it cannot be trained here: it needs more memory than is free, and what to do."""
    if needed <= available:
        return []
    advice = message("choose one of the settings that make it fit") if remedied else message("choose a smaller model")
    return [
        plural(
            "Even with {count} row at a time, it needs about {needed}, but only {available} is free: {advice}.",
            "Even with {count} rows at a time, it needs about {needed}, but only {available} is free: {advice}.",
            micro,
            needed=format_size(needed),
            available=format_size(available),
            advice=advice,
        )
    ]
