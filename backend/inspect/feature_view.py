"""Features for display: a line for each of many, and one of them token by token, from the batch's arrays."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from backend.contract.heads import IGNORE
from backend.contract.messages import message
from backend.contract.rpc.training_data import FeatureLine, TrainingFeature, TrainingRows, TrainingStep
from backend.engines.engine import Batch
from backend.inspect.batch_preview import BatchPreview, row_cells
from backend.inspect.token_view import PieceTexts, sequences
from backend.tasks.task import draws

LINE_TOKENS = 48
"""Of a feature whose beginning is written out in its line."""
MAX_LINES = 500


def rows_in_order(preview: BatchPreview, start: int, count: int) -> TrainingRows:
    """The features from `start`, at most MAX_LINES, in storage order."""
    begin = max(0, min(start, len(preview.features) - 1))
    indices = np.arange(begin, min(begin + min(count, MAX_LINES), len(preview.features)))
    return TrainingRows(
        split=preview.split,
        splits=list(preview.splits.rows),
        rows=len(preview.rows),
        features=len(preview.features),
        start=begin,
        lines=_lines(preview, indices),
        steps=preview.total_steps,
    )


def rows_of_step(preview: BatchPreview, step: int, count: int = MAX_LINES) -> TrainingRows:
    """The features of optimizer step `step`, in the order in which the engine receives them. Raises InputError."""
    indices = preview.indices(step)
    return TrainingRows(
        split=preview.split,
        splits=list(preview.splits.rows),
        rows=len(preview.rows),
        features=len(indices),
        start=0,
        lines=_lines(preview, indices[: min(count, MAX_LINES)]),
        step=_step(preview, step, indices),
        steps=preview.total_steps,
    )


def _step(preview: BatchPreview, step: int, indices: np.ndarray) -> TrainingStep:
    passes, past, order = preview.passes(step), preview.past.step(step), preview.order
    assert order is not None
    tokens = int(preview.features.lengths[indices].sum())
    computed = sum(one["input_ids"].size for one in passes)
    seen = sum(int(one["attention_mask"].sum()) for one in passes)
    return TrainingStep(
        step=step,
        total_steps=preview.total_steps,
        steps_per_epoch=order.steps_per_epoch,
        epoch=preview.epoch(step) + 1,
        tokens=tokens,
        padding=1 - seen / computed,
        shapes=[one["input_ids"].shape for one in passes],
        loss=None if past is None or np.isnan(past[1]) else past[1],
        differs=_difference(past[0], tokens) if past is not None and past[0] != tokens else "",
    )


def _difference(counted: int, tokens: int) -> str:
    return message(
        "The run counted {counted:,} tokens in this step, but these rows have {tokens:,}: the "
        "run's tokenizer or data has changed, so these may be different rows.",
        counted=counted,
        tokens=tokens,
    )


def _lines(preview: BatchPreview, indices: np.ndarray) -> list[FeatureLine]:
    features, pieces = preview.features, PieceTexts(preview.session.tokenizer)
    ids = features.lists["input_ids"].take(indices)
    rows, parts = features.scalars["row"][indices], features.scalars["part"][indices]
    targets = _targets(preview, indices)
    return [
        FeatureLine(
            int(feature),
            int(row),
            int(part),
            preview.rows.place(int(row)),
            int(features.lengths[feature]),
            count,
            label(preview, int(feature)),
            pieces.decode(one[:LINE_TOKENS]) + ("…" if len(one) > LINE_TOKENS else ""),
        )
        for feature, row, part, count, one in zip(indices, rows, parts, targets, ids, strict=True)
    ]


def _targets(preview: BatchPreview, indices: np.ndarray) -> list[int]:
    """How many targets each feature has; -1 if they are drawn again every epoch."""
    head, features = preview.session.task.head, preview.features
    if head.targets == "span":
        return (features.scalars["start_positions"][indices] != IGNORE).astype(int).tolist()
    if "labels" in features.lists:
        first = 1 if head.targets == "next_token" else 0
        return [int(np.count_nonzero(one[first:] != IGNORE)) for one in features.lists["labels"].take(indices)]
    if "labels" not in features.scalars:
        return [-1 if draws(preview.session.task) else 0] * len(indices)
    labels = features.scalars["labels"][indices]
    return (~np.isnan(labels) if labels.dtype.kind == "f" else labels != IGNORE).astype(int).tolist()


def label(preview: BatchPreview, feature: int) -> str:
    """A feature row's target, if it is a single thing: a label, a number, a choice, a passage."""
    head, scalars = preview.session.task.head, preview.features.scalars
    if head.targets == "span":
        return _span(preview, feature)
    if "labels" not in scalars:
        return ""
    value = scalars["labels"][feature]
    if head.targets == "number":
        return "unknown" if np.isnan(value) else f"{float(value):g}"
    if value == IGNORE:
        return "unknown"
    names = preview.session.facts.get("labels") or []
    return message("choice {value}", value=int(value) + 1) if head.targets == "choice" else str(names[int(value)])


def _span(preview: BatchPreview, feature: int) -> str:
    scalars = preview.features.scalars
    start, end = int(scalars["start_positions"][feature]), int(scalars["end_positions"][feature])
    if start == IGNORE:
        return "unknown"
    if start == int(scalars["null_index"][feature]):
        return message("no answer here")
    [ids] = preview.features.lists["input_ids"].take(np.array([feature]))
    return PieceTexts(preview.session.tokenizer).decode(ids[start : end + 1])


@dataclass(frozen=True)
class _Place:
    """One row of a batch."""

    batch: Batch
    number: int

    def arrays(self) -> Batch:
        """The arrays of this row."""
        return {name: np.asarray(values[self.number]) for name, values in self.batch.items()}


def view_feature(
    preview: BatchPreview, feature: int, step: int | None = None, most: int | None = None
) -> TrainingFeature:
    """One feature as the model receives it: in the batch of its step, or alone. Raises InputError.

    At most the first `most` numbers of its arrays are included.
    """
    arrays = _Place(*preview.batch_around(feature, step)).arrays()
    scalars = preview.features.scalars
    row, part = int(scalars["row"][feature]), int(scalars["part"][feature])
    return TrainingFeature(
        feature=feature,
        row=row,
        part=part,
        parts=int(np.count_nonzero(scalars["row"][preview.features_of(row)] == row)),
        place=preview.rows.place(row),
        cells=row_cells(preview, row),
        values=_values(preview, feature, arrays),
        sequences=sequences(preview, feature, arrays),
        arrays={name: _to_json_numbers(values.reshape(-1)[:most]) for name, values in arrays.items()},
        shapes={name: list(values.shape) for name, values in arrays.items()},
    )


def _to_json_numbers(values: np.ndarray) -> list[int | float | None]:
    """Numbers converted for JSON, (n,)."""
    flat: list[Any] = values.tolist()
    return [
        None if isinstance(one, float) and np.isnan(one) else int(one) if isinstance(one, bool) else one for one in flat
    ]


def _values(preview: BatchPreview, feature: int, arrays: Batch) -> list[tuple[str, str]]:
    head, scalars = preview.session.task.head, preview.features.scalars
    found = [("Tokens", _counts(arrays))]
    if head.targets == "span":
        start, end = int(arrays["start_positions"]), int(arrays["end_positions"])
        label_text = label(preview, feature)
        if start != IGNORE:
            label_text = message(
                "{label} (start_positions {start}, end_positions {end})", label=label_text, start=start, end=end
            )
        found.append(("Answer", label_text))
    elif "labels" in scalars:
        number = scalars["labels"][feature]
        label_text = label(preview, feature)
        if head.targets != "number":
            label_text = message("{label} (labels {number})", label=label_text, number=int(number))
        found.append(("Label", label_text))
    elif head.targets in ("token", "next_token", "sequence") and "labels" in arrays:
        counted = arrays["labels"][1:] if head.targets == "next_token" else arrays["labels"]
        found.append(
            (message("Tokens in the loss"), message("{value:,} tokens", value=int(np.count_nonzero(counted != IGNORE))))
        )
    for name, values in scalars.items():
        if name.startswith("cut_") and values[feature]:
            found.append(
                (
                    "Cut",
                    message(
                        "{values:,} tokens of the {name}", values=int(values[feature]), name=name.removeprefix("cut_")
                    ),
                )
            )
    return found


def _counts(arrays: Batch) -> str:
    mask = arrays["attention_mask"]
    seen, padding = int(mask.sum()), int(mask.size - mask.sum())
    return (
        message("{seen:,} and {padding:,} padding", seen=seen, padding=padding)
        if padding
        else message("{seen:,}", seen=seen)
    )
