"""Builds a data report from the source's rows, the task's columns and the model's tokenizer."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from backend import registry
from backend.contract.errors import InputError
from backend.contract.heads import Head
from backend.contract.messages import message
from backend.contract.places import cache_folder
from backend.contract.rpc.data import DataReport, LabelShare, SplitReport
from backend.contract.spec import DataSection, RunSpec, validate
from backend.data.rows import Rows
from backend.data.sources.source import Report, Source
from backend.data.split import split_off
from backend.data.split_statistics import CountTokens, SplitMeasure
from backend.preflight.datasets import choose_columns, ignore_progress, make_source, make_task, misread, reading
from backend.preflight.resolve import SPLITS, absolute
from backend.tasks.task import Columns, Task, Use, label_counts, split_labels, used_columns
from backend.tokenizers.loading import open_tokenizer


@dataclass(frozen=True)
class ReportRequest:
    """The subject of a report."""

    data: DataSection
    source: Source
    task: Task | None = None
    task_name: str = ""
    tokenizer: str | None = None
    tokenizer_revision: str = "main"
    tokenizer_options: dict[str, Any] = field(default_factory=dict)
    needs_tokenizer: bool = True
    """Whether a tokenizer that cannot be opened ends the report; else a note says so."""
    seed: int = 42


def request_of_spec(spec: RunSpec) -> ReportRequest:
    """A spec's data, task and tokenizer; a tokenizer that is not available is left out."""
    return ReportRequest(
        data=spec.data,
        source=make_source(spec),
        task=make_task(spec),
        task_name=spec.task["type"],
        tokenizer=spec.model.tokenizer or spec.model.name_or_path,
        tokenizer_revision=spec.model.revision,
        tokenizer_options=spec.model.tokenizer_options,
        needs_tokenizer=False,
        seed=spec.training.seed,
    )


def request_of_data(data: dict[str, Any], task: dict[str, Any], tokenizer: str | None, base: Path) -> ReportRequest:
    """Data alone: a `data` section, a task section or an empty one, and a tokenizer if tokens are to be counted.

    Relative paths are relative to `base`. Raises InputError.
    """
    section = validate(DataSection, data, "data")
    kind = registry.find("source", section.source, "data.source")
    settings = validate(kind.Settings, section.model_extra or {}, "data")
    values = {**section.model_dump(), **settings.model_dump()}
    paths = {name: absolute(values[name], base) for name in kind.path_fields if values.get(name) is not None}
    name = task.get("type", "")
    task_kind = registry.find("task", name, "task.type") if name else None
    return ReportRequest(
        data=section.model_copy(update={**settings.model_dump(), **paths}),
        source=kind(settings),
        task=task_kind(validate(task_kind.Settings, task, "task")) if task_kind else None,
        task_name=name,
        tokenizer=tokenizer,
    )


def source_keys(source: str, target: str) -> dict[str, Any]:
    """The `data` settings for a source to read one file, folder or data set."""
    kind = registry.find("source", source, "data.source")
    if "train" in kind.path_fields:
        return {"train": target}
    if kind.path_fields:
        return {kind.path_fields[0]: target}
    return {"name": target, "train": "train"}


def data_report(subject: ReportRequest, report: Report = ignore_progress) -> DataReport:
    """Measure every split. Raises InputError; `report` may raise to stop it."""
    started = time.monotonic()
    count_tokens, notes = _token_counter(subject)
    splits, columns = _splits(subject, report)
    inputs = inputs_of(subject.task, columns, next(iter(splits.values()))[0])
    targets = targets_of(subject.task, columns)
    tagged = frozenset(targets) if subject.task and subject.task.head is Head.TOKEN_CLASSIFICATION else frozenset[str]()
    reports: dict[str, SplitReport] = {}
    train: SplitMeasure | None = None
    measures: list[SplitMeasure] = []
    kinds: dict[str, str] = {}
    try:
        for split, (rows, unusable) in splits.items():
            names = set(rows.table.column_names)
            there = [name for name in inputs if name in names]
            measure = SplitMeasure(rows, there, count_tokens, cache_folder() / "report", report, tagged)
            measures.append(measure)
            kinds = {**measure.kinds(targets), **kinds}
            parts = {column: part for part, column in columns.items()}
            compared = train if there == inputs else None
            report_of_split = measure.build_report(parts, kinds, unusable, compared)
            reports[split] = _with_label_counts(report_of_split, subject.task, rows, columns)
            train = measure if split == "train" else train
    finally:
        for measure in measures:
            measure.close()
    return DataReport(
        splits=reports,
        inputs=inputs,
        task=subject.task_name,
        tokenizer=subject.tokenizer or "" if count_tokens else "",
        notes=[
            *notes,
            *_sheets(subject.data, splits),
            *filter(None, [misread({split: rows for split, (rows, _) in splits.items()}, subject.data)]),
        ],
        seconds=time.monotonic() - started,
    )


def _with_label_counts(report: SplitReport, task: Task | None, rows: Rows, columns: Columns) -> SplitReport:
    """The report with each label counted, if a cell holds several of them; a share is that of the rows."""
    name = columns.get("labels")
    if task is None or name not in report.columns or (counts := label_counts(task, rows, columns)) is None:
        return report
    shares = [LabelShare(label, count, count / max(1, len(rows))) for label, count in counts.most_common()]
    column = msgspec.structs.replace(report.columns[name], kind="label", distinct=len(counts), labels=shares)
    return msgspec.structs.replace(report, columns={**report.columns, name: column})


def _sheets(data: DataSection, splits: dict[str, "_Split"]) -> list[str]:
    """Which sheets were read, for workbooks with several and no choice made."""
    chosen = (data.model_extra or {}).get("sheet")
    return [] if chosen else list(dict.fromkeys(f"{rows.sheets}." for rows, _ in splits.values() if rows.sheets))


_Split = tuple[Rows, list[tuple[str, str]]]
"""The rows that were read, and place and reason of those that cannot be used."""


def _splits(subject: ReportRequest, report: Report) -> tuple[dict[str, _Split], Columns]:
    data, task = subject.data, subject.task
    read = {split: subject.source.read(split, data, reading(report)) for split in SPLITS}
    rows = {split: found for split, found in read.items() if found is not None}
    if not rows:
        raise InputError("data.train: specify the data, for example a CSV file", "data.train")
    first = next(iter(rows.values()))
    columns = choose_columns(task, data.columns, first) if task else {}
    unusable = {
        split: _unusable(task, found, columns, "training" if split == "train" else "measuring")
        for split, found in rows.items()
    }
    if isinstance(data.validation, float | int) and "train" in rows:
        kept, taken = _split_validation(subject, rows["train"], unusable["train"], columns)
        rows = {"train": kept, "validation": taken, **{split: rows[split] for split in rows.keys() - {"train"}}}
        unusable["validation"] = []
    return {split: (found, unusable[split]) for split, found in rows.items()}, columns


def _unusable(task: Task | None, rows: Rows, columns: Columns, use: Use) -> list[tuple[str, str]]:
    found = [(one.place, one.reason) for one in rows.skipped]
    there = {part: column for part, column in columns.items() if column in rows.table.column_names}
    if task is None or any(
        column.name not in there for column in used_columns(task) if column.needed_to_predict and column.required
    ):
        return found
    use = use if there == dict(columns) else "predicting"
    return found + [(rows.place(row), reason) for row, reason in task.unusable(rows, there, use)]


def _split_validation(
    subject: ReportRequest, rows: Rows, unusable: list[tuple[str, str]], columns: Columns
) -> tuple[Rows, Rows]:
    """Training and validation rows as in a run with this fraction."""
    task, fraction = subject.task, subject.data.validation
    assert isinstance(fraction, float | int)
    if task is None:
        return split_off(rows, float(fraction), subject.seed, "random", None)
    usable = rows.without(task.unusable(rows, columns, "training"), f"{rows.fingerprint}-training")
    return split_off(usable, float(fraction), subject.seed, task.split_by, split_labels(task, usable, columns))


def inputs_of(task: Task | None, columns: Columns, rows: Rows) -> list[str]:
    """The model's input columns; without a task all of them."""
    chosen = used_columns(task) if task else ()
    seen = [columns[one.name] for one in chosen if one.name in columns and (one.needed_to_predict or not one.required)]
    return seen or list(rows.table.column_names)


def targets_of(task: Task | None, columns: Columns) -> set[str]:
    """The columns that hold labels, whatever their values look like."""
    if task is None or not task.head.chooses_labels:
        return set()
    return {
        columns[one.name]
        for one in used_columns(task)
        if one.name in columns and not one.needed_to_predict and one.required
    }


def _token_counter(subject: ReportRequest) -> tuple[CountTokens | None, list[str]]:
    if subject.tokenizer is None:
        return None, []
    try:
        tokenizer = open_tokenizer(subject.tokenizer, subject.tokenizer_revision, subject.tokenizer_options)
    except InputError as error:
        if subject.needs_tokenizer:
            raise
        return None, [message("Tokens were not counted: {error}", error=error)]

    def count(texts: Sequence[str | list[str]]) -> list[int]:
        given = [text if isinstance(text, str) else " ".join(text) for text in texts]
        return [len(ids) for ids in tokenizer(given, return_attention_mask=False, verbose=False)["input_ids"]]

    return count, []
