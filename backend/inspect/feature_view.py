"""Features as people look at them: a line for each of many, and one of them token by token, from the batch's arrays."""

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


def rows_in_order(look: BatchPreview, start: int, count: int) -> TrainingRows:
    """The features from `start`, at most MAX_LINES, as they stand."""
    begin = max(0, min(start, len(look.features) - 1))
    indices = np.arange(begin, min(begin + min(count, MAX_LINES), len(look.features)))
    return TrainingRows(
        split=look.split,
        splits=list(look.splits.rows),
        rows=len(look.rows),
        features=len(look.features),
        start=begin,
        lines=_lines(look, indices),
        steps=look.total_steps,
    )


def rows_of_step(look: BatchPreview, step: int, start: int = 0, count: int = MAX_LINES) -> TrainingRows:
    """The features of optimizer step `step`, in the order in which the engine gets them. Raises InputError."""
    indices = look.indices(step)
    begin = max(0, min(start, len(indices) - 1))
    return TrainingRows(
        split=look.split,
        splits=list(look.splits.rows),
        rows=len(look.rows),
        features=len(indices),
        start=begin,
        lines=_lines(look, indices[begin : begin + min(count, MAX_LINES)]),
        step=_step(look, step, indices),
        steps=look.total_steps,
    )


def _step(look: BatchPreview, step: int, indices: np.ndarray) -> TrainingStep:
    passes, past, order = look.passes(step), look.past.step(step), look.order
    assert order is not None
    tokens = int(look.features.lengths[indices].sum())
    computed = sum(one["input_ids"].size for one in passes)
    seen = sum(int(one["attention_mask"].sum()) for one in passes)
    return TrainingStep(
        step=step,
        total_steps=look.total_steps,
        steps_per_epoch=order.steps_per_epoch,
        epoch=look.epoch(step) + 1,
        tokens=tokens,
        padding=1 - seen / computed,
        shapes=[one["input_ids"].shape for one in passes],
        loss=None if past is None or np.isnan(past[1]) else past[1],
        differs=_difference(past[0], tokens) if past is not None and past[0] != tokens else "",
    )


def _difference(counted: int, tokens: int) -> str:
    return message(
        "The run counted {counted:,} tokens in this step, and these rows have {tokens:,}: its tokenizer or its "
        "data has changed, so these may be different rows.",
        counted=counted,
        tokens=tokens,
    )


def _lines(look: BatchPreview, indices: np.ndarray) -> list[FeatureLine]:
    features, pieces = look.features, PieceTexts(look.session.tokenizer)
    ids = features.lists["input_ids"].take(indices)
    rows, parts = features.scalars["row"][indices], features.scalars["part"][indices]
    targets = _targets(look, indices)
    return [
        FeatureLine(
            int(feature),
            int(row),
            int(part),
            look.rows.place(int(row)),
            int(features.lengths[feature]),
            count,
            label(look, int(feature)),
            pieces.decode(one[:LINE_TOKENS]) + ("…" if len(one) > LINE_TOKENS else ""),
        )
        for feature, row, part, count, one in zip(indices, rows, parts, targets, ids, strict=True)
    ]


def _targets(look: BatchPreview, indices: np.ndarray) -> list[int]:
    """How many targets each feature has; -1 where they are drawn in every epoch."""
    head, features = look.session.task.head, look.features
    if head.targets == "span":
        return (features.scalars["start_positions"][indices] != IGNORE).astype(int).tolist()
    if "labels" in features.lists:
        first = 1 if head.targets == "next_token" else 0
        return [int(np.count_nonzero(one[first:] != IGNORE)) for one in features.lists["labels"].take(indices)]
    if "labels" not in features.scalars:
        return [-1 if draws(look.session.task) else 0] * len(indices)
    labels = features.scalars["labels"][indices]
    return (~np.isnan(labels) if labels.dtype.kind == "f" else labels != IGNORE).astype(int).tolist()


def label(look: BatchPreview, feature: int) -> str:
    """What a feature's row is to be answered with, where that is one thing: a label, a number, a choice, a passage."""
    head, scalars = look.session.task.head, look.features.scalars
    if head.targets == "span":
        return _span(look, feature)
    if "labels" not in scalars:
        return ""
    value = scalars["labels"][feature]
    if head.targets == "number":
        return "unknown" if np.isnan(value) else f"{float(value):g}"
    if value == IGNORE:
        return "unknown"
    names = look.session.facts.get("labels") or []
    return message("choice {value}", value=int(value) + 1) if head.targets == "choice" else str(names[int(value)])


def _span(look: BatchPreview, feature: int) -> str:
    scalars = look.features.scalars
    start, end = int(scalars["start_positions"][feature]), int(scalars["end_positions"][feature])
    if start == IGNORE:
        return "unknown"
    if start == int(scalars["null_index"][feature]):
        return message("no answer here")
    [ids] = look.features.lists["input_ids"].take(np.array([feature]))
    return PieceTexts(look.session.tokenizer).decode(ids[start : end + 1])


@dataclass(frozen=True)
class _Place:
    """One row of a batch."""

    batch: Batch
    number: int

    def arrays(self) -> Batch:
        """Its arrays."""
        return {name: np.asarray(values[self.number]) for name, values in self.batch.items()}


def view_feature(look: BatchPreview, feature: int, step: int | None = None, most: int | None = None) -> TrainingFeature:
    """One feature as the model gets it: in the batch of its step, or by itself. Raises InputError.

    Of its arrays at most the first `most` numbers are told.
    """
    arrays = _Place(*look.batch_around(feature, step)).arrays()
    scalars = look.features.scalars
    row, part = int(scalars["row"][feature]), int(scalars["part"][feature])
    return TrainingFeature(
        feature=feature,
        row=row,
        part=part,
        parts=int(np.count_nonzero(scalars["row"][look.features_of(row)] == row)),
        place=look.rows.place(row),
        cells=row_cells(look, row),
        values=_values(look, feature, arrays),
        sequences=sequences(look, feature, arrays),
        arrays={name: _to_json_numbers(values.reshape(-1)[:most]) for name, values in arrays.items()},
        shapes={name: list(values.shape) for name, values in arrays.items()},
    )


def _to_json_numbers(values: np.ndarray) -> list[int | float | None]:
    """Numbers as JSON has them, (n,)."""
    flat: list[Any] = values.tolist()
    return [
        None if isinstance(one, float) and np.isnan(one) else int(one) if isinstance(one, bool) else one for one in flat
    ]


def _values(look: BatchPreview, feature: int, arrays: Batch) -> list[tuple[str, str]]:
    head, scalars = look.session.task.head, look.features.scalars
    found = [("Tokens", _counts(arrays))]
    if head.targets == "span":
        start, end = int(arrays["start_positions"]), int(arrays["end_positions"])
        shown = label(look, feature)
        if start != IGNORE:
            shown = message("{label} (start_positions {start}, end_positions {end})", label=shown, start=start, end=end)
        found.append(("Answer", shown))
    elif "labels" in scalars:
        number = scalars["labels"][feature]
        shown = label(look, feature)
        if head.targets != "number":
            shown = message("{label} (labels {number})", label=shown, number=int(number))
        found.append(("Label", shown))
    elif head.targets in ("token", "next_token", "sequence") and "labels" in arrays:
        counted = arrays["labels"][1:] if head.targets == "next_token" else arrays["labels"]
        found.append(
            (message("Learned from"), message("{value:,} tokens", value=int(np.count_nonzero(counted != IGNORE))))
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
        message("{seen:,} and {padding:,} of padding", seen=seen, padding=padding)
        if padding
        else message("{seen:,}", seen=seen)
    )
