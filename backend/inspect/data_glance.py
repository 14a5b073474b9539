"""Summarizes the chosen data: every row of every split counted, labels, lengths, duplicates."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.contract.rpc.data import DataSummary, LengthSummary, SplitSummary, UnusableRow
from backend.contract.safe_files import user_path
from backend.data.column_summary import MAX_LABELS, count_labels
from backend.data.rows import Rows
from backend.data.sources.source import Report
from backend.data.split import split_off
from backend.data.split_statistics import count_repeated, count_shared, row_numbers, summarise_counts
from backend.inspect.data_report import ReportRequest, inputs_of, targets_of
from backend.inspect.messages import warnings_of
from backend.models.config import longest_sequence
from backend.models.inspection import read_config
from backend.preflight.datasets import choose_columns, ignore_progress, misread, reading
from backend.preflight.resolve import SPLITS
from backend.tasks.task import Columns, Task, Use, label_counts, limits, split_labels
from backend.tokenizers.loading import open_tokenizer

LISTED = 1000
"""Unusable rows that are listed per split; a file has all of them."""
MEASURED = 2000
"""Rows whose tokens are counted, evenly from all."""
BINS = 24
_USES: dict[str, Use] = {"train": "training", "validation": "measuring", "test": "predicting"}


@dataclass
class _Split:
    """The rows that were read, and those that cannot be used."""

    rows: Rows
    unusable: list[UnusableRow] = field(default_factory=list)


def data_glance(subject: ReportRequest, model: str | None = None, report: Report = ignore_progress) -> DataSummary:
    """All rows that a run on this data would read; `model` provides the tokenizer and the limit. Raises InputError."""
    assert subject.task is not None
    splits, columns = _read(subject, subject.task, report)
    inputs = inputs_of(subject.task, columns, splits["train"].rows)
    label = next(iter(targets_of(subject.task, columns)), "")
    if not label and label_counts(subject.task, splits["train"].rows, columns):
        label = subject.task.label_column(columns) or ""  # the first of several columns with a label each
    glances: list[SplitSummary] = []
    numbers: dict[str, np.ndarray] = {}
    for split, found in splits.items():
        names = set(found.rows.table.column_names)
        there = [name for name in inputs if name in names]
        numbers[split] = row_numbers(found.rows.table, there, report)
        known = numbers["train"] if split != "train" and there == inputs else None
        glances.append(
            _summarise_split(split, found, _Seen(subject.task, columns, label, numbers[split], known), glances)
        )
    if _is_running_text(subject.task, splits["train"].rows):
        glances = [replace(one, repeated=0, in_train=None, empty={}) for one in glances]
    lengths, notes = _lengths(subject, inputs, splits["train"].rows, model)
    summary = DataSummary(splits=glances, lengths=lengths, label_column=label, inputs=inputs, notes=notes)
    wrong = misread({split: found.rows for split, found in splits.items()}, subject.data)
    return _add_warnings(summary, subject.task, wrong)


def _is_running_text(task: Task, rows: Rows) -> bool:
    """Whether rows are lines that are joined: that one is empty, or like another, says nothing about the text."""
    return rows.continuous and any(limit.beyond == "blocks" for limit in limits(task))


def unusable_rows(subject: ReportRequest, report: Report = ignore_progress) -> list[tuple[str, UnusableRow]]:
    """Split and row of everything left out. Raises InputError."""
    assert subject.task is not None
    splits, _ = _read(subject, subject.task, report)
    return [(split, row) for split, found in splits.items() for row in found.unusable]


def _add_warnings(summary: DataSummary, task: Task, wrong: str) -> DataSummary:
    weighs = "class_weights" in type(task).Settings.model_fields if hasattr(type(task), "Settings") else False
    return DataSummary(
        splits=summary.splits,
        lengths=summary.lengths,
        label_column=summary.label_column,
        inputs=summary.inputs,
        notes=summary.notes,
        warnings=[
            *([wrong] if wrong else []),
            *warnings_of(summary, can_weigh=weighs and getattr(task.settings, "class_weights", None) is None),
        ],
    )


def _read(subject: ReportRequest, task: Task, report: Report) -> tuple[dict[str, _Split], Columns]:
    """The usable rows of every split, as a run would read them."""
    data = subject.data
    read = {split: subject.source.read(split, data, reading(report)) for split in SPLITS}
    if read["train"] is None:
        raise InputError("data.train: specify the training data, for example a CSV file", "data.train")
    columns = choose_columns(task, data.columns, read["train"])
    splits = {split: _select_parts(task, rows, columns, split) for split, rows in read.items() if rows is not None}
    fraction = data.validation
    if isinstance(fraction, float | int) and 0 < fraction < 1 and len(splits["train"].rows) > 1:
        train = splits["train"]
        labels = split_labels(task, train.rows, columns)
        kept, taken = split_off(train.rows, float(fraction), subject.seed, task.split_by, labels)
        splits = {"train": _Split(kept, train.unusable), "validation": _Split(taken), **_later_splits(splits)}
    return splits, columns


def _later_splits(splits: dict[str, _Split]) -> dict[str, _Split]:
    return {split: one for split, one in splits.items() if split not in ("train", "validation")}


def _select_parts(task: Task, rows: Rows, columns: Columns, split: str) -> _Split:
    there = {part: column for part, column in columns.items() if column in rows.table.column_names}
    use = _USES[split] if there == dict(columns) else "predicting"
    unusable = task.unusable(rows, there, use)
    places = [(one.place, one.reason) for one in rows.skipped] + [(rows.place(row), reason) for row, reason in unusable]
    return _Split(rows.without(unusable, f"{rows.fingerprint}-{use}"), [_to_unusable_row(*one) for one in places])


def _to_unusable_row(place: str, reason: str) -> UnusableRow:
    file, _, line = place.rpartition(":")
    return UnusableRow(file, int(line), reason)


@dataclass(frozen=True)
class _Seen:
    """What is known about a split besides its rows."""

    task: Task
    columns: Columns
    label: str
    numbers: np.ndarray
    known: np.ndarray | None


def _summarise_split(split: str, found: _Split, seen: _Seen, before: list[SplitSummary]) -> SplitSummary:
    table = found.rows.table
    several = label_counts(seen.task, found.rows, seen.columns)
    labels = dict(several.most_common(MAX_LABELS)) if several is not None else _labels(table, seen.label)
    train = before[0].labels if before else labels
    # In a column for each label an empty cell says that the row lacks it.
    chosen = [name for role, name in seen.columns.items() if several is None or not role.startswith("labels_")]
    used = [name for name in dict.fromkeys(chosen) if name in table.column_names]
    return SplitSummary(
        split=split,
        rows=len(found.rows),
        unusable=len(found.unusable),
        reasons=dict(Counter(one.reason for one in found.unusable).most_common(20)),
        first_unusable=found.unusable[:LISTED],
        labels=labels,
        label_count=len(labels),
        repeated=count_repeated(seen.numbers),
        in_train=count_shared(seen.numbers, seen.known) if seen.known is not None else None,
        only_here=[label for label in labels if label not in train] if train else [],
        empty={name: count for name in used if (count := _empty(table[name]))},
    )


def _labels(table: pa.Table, name: str) -> dict[str, int]:
    """Label → frequency; for texts with several tags, each tag counts."""
    if name not in table.column_names:
        return {}
    return count_labels(table[name])


def _empty(column: pa.ChunkedArray) -> int:
    if pa.types.is_string(column.type):
        filled = pc.fill_null(pc.not_equal(pc.utf8_trim_whitespace(column), ""), False)
        return len(column) - int(pc.sum(filled).as_py() or 0)
    return column.null_count


def _lengths(
    subject: ReportRequest, inputs: list[str], rows: Rows, model: str | None
) -> tuple[LengthSummary | None, list[str]]:
    places = np.unique(np.linspace(0, len(rows) - 1, min(MEASURED, len(rows))).astype(np.int64)) if len(rows) else []
    sample = rows.take(np.asarray(places, dtype=np.int64), "glance").table
    names = set(sample.column_names)
    texts = [[_text(cell) for cell in sample[name].to_pylist()] for name in inputs if name in names]
    if not texts:
        return None, []
    counts, limit, notes = _tokens(subject, texts, model)
    unit = "tokens" if counts is not None else "words"
    counts = (
        counts if counts is not None else [sum(len(text.split()) for text in row) for row in zip(*texts, strict=True)]
    )
    spread = summarise_counts(Counter(counts))
    if spread is None:
        return None, notes
    width = max(1.0, (max(spread.p99_9, limit or 0) if limit and limit < 2 * spread.max else spread.p99_9) / BINS)
    bins = np.minimum((np.array(counts) / width).astype(np.int64), BINS - 1)
    return LengthSummary(
        unit=unit,
        rows=len(counts),
        spread=spread,
        limit=limit,
        over=sum(count > limit for count in counts) if limit else 0,
        counts=np.bincount(bins, minlength=BINS).tolist(),
        width=width,
    ), notes


def _tokens(
    subject: ReportRequest, texts: list[list[str]], model: str | None
) -> tuple[list[int] | None, int | None, list[str]]:
    """Tokens of each row, the truncation limit, and why they could not be counted."""
    if not model or not user_path(model).is_dir():
        return None, None, []
    try:
        tokenizer = open_tokenizer(model)
    except InputError as error:
        return None, None, [message("Tokens were not counted: {error}", error=error)]
    given: Any = texts[:2] if len(texts) > 1 else texts[:1]
    ids = tokenizer(*given, return_attention_mask=False, verbose=False)["input_ids"]
    own = getattr(subject.task.settings, "max_length", None) if subject.task else None
    # What is longer than the limit is cut off and lost; other heads continue in another window or block.
    cuts = subject.task is not None and subject.task.head.targets in ("class", "number")
    limit = (own or longest_sequence(read_config(user_path(model)))) if cuts else None
    return [len(one) for one in ids], limit, []


def _text(cell: Any) -> str:
    if isinstance(cell, str):
        return cell
    return " ".join(map(str, cell)) if isinstance(cell, list) else "" if cell is None else str(cell)
