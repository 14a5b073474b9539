"""Loads the rows of a run: reads, splits and checks them, chooses their columns, and fits the task."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from backend import registry
from backend.contract.catalog import Column
from backend.contract.errors import InputError
from backend.contract.messages import join, message
from backend.contract.places import cache_folder, is_offline
from backend.contract.spec import DataSection, RunSpec, validate
from backend.data import mojibake
from backend.data.data_files import ignored_files, split_of
from backend.data.rows import Rows
from backend.data.sources.source import ReadOptions, Report, Source
from backend.data.split import split_off
from backend.models import inspection
from backend.models.config import longest_sequence
from backend.preflight import task_facts
from backend.preflight.column_check import check_columns, find_missing_labels
from backend.preflight.column_guess import ColumnGuess, GuessReason, guessed_columns
from backend.preflight.resolve import SPLITS
from backend.preflight.task_facts import FittedFacts
from backend.preflight.task_guess import describe_other_tasks, guess_other_tasks
from backend.tasks.task import Columns, Facts, Task, Use, split_key, split_labels, spread_columns, used_columns

Given = Mapping[str, str | list[str] | None]
"""Role → the column that a person chose for it, or several; None where there should be none."""


def ignore_progress(done: int, total: int, unit: str) -> None:
    """Ignore progress reports."""


def make_task(spec: RunSpec) -> Task:
    """The spec's task with its settings."""
    kind = registry.find("task", spec.task["type"], "task.type")
    return kind(validate(kind.Settings, spec.task, "task"))


def make_source(spec: RunSpec) -> Source:
    """The spec's source with its settings."""
    kind = registry.find("source", spec.data.source, "data.source")
    own = {key: value for key, value in (spec.data.model_extra or {}).items() if key in kind.Settings.model_fields}
    return kind(validate(kind.Settings, own, "data"))


def reading(report: Report = ignore_progress) -> ReadOptions:
    """How sources read here: with the user's cache, and the network unless it is disabled."""
    return ReadOptions(cache_folder() / "tables", report, offline=is_offline())


_USES: dict[str, Use] = {"train": "training", "validation": "measuring", "test": "predicting"}


@dataclass(frozen=True)
class Splits:
    """The rows of a run, checked and split, and what the task learned from them."""

    rows: dict[str, Rows]
    """`train`, and `validation` and `test` where there are any."""
    columns: Columns
    facts: Facts
    fitted: FittedFacts
    """What the facts were made of, to be kept in the run folder."""
    notes: tuple[str, ...] = ()
    """What a person should know of how the task took the data, in sentences."""
    guessed: str = ""
    """Which columns were guessed and why, as one of the notes; empty where a person has named all."""


def load_splits(
    spec: RunSpec, model_folder: Path | None, report: Report = ignore_progress, kept: FittedFacts | None = None
) -> Splits:
    """Read every split, drop unusable rows, fit the task unless `kept` facts fit the same rows. Raises InputError.

    Test rows need no label: unlabelled ones are predicted but not scored.
    """
    task, source = make_task(spec), make_source(spec)
    rows = {split: found for split in SPLITS if (found := source.read(split, spec.data, reading(report))) is not None}
    if "train" not in rows:
        raise InputError("data.train: specify the training data, for example a CSV file", "data.train")
    columns, guesses = _choose(task, spec.data.columns, rows["train"], to_predict=False)
    if kept is None:  # a run that was started with these columns is resumed with them
        check_columns(task, spec.data, rows, columns)
    for split in rows:
        _check_columns(task, rows[split], columns, split)
        rows[split] = drop_unusable(task, rows[split], columns, split, _USES[split])
    if isinstance(spec.data.validation, float | int):
        rows |= _split_off(spec, task, rows["train"], columns)
    fitted = task_facts.fit(task, spec, rows["train"], columns, model_labels(model_folder), kept)
    facts = dict(fitted.facts)
    for split in sorted(rows.keys() - {"train"}, reverse=True):
        task.check(rows[split], columns, facts, split)
    guessed = guessed_columns(used_columns(task), guesses)
    notes = (*facts.pop("notes", ()), *filter(None, [guessed, _unread_validation(spec), misread(rows, spec.data)]))
    return Splits(rows, columns, with_max_length(task, facts, model_folder), fitted, notes, guessed)


def misread(rows: Mapping[str, Rows], data: DataSection) -> str:
    """The first text that was or seems to be read with the wrong encoding, in a sentence that says what to do."""
    encoding = str((data.model_extra or {}).get("encoding", "auto"))
    for found in rows.values():
        if sentence := next(mojibake.warnings(found.table, found.place, encoding), ""):
            return sentence
    return ""


def _unread_validation(spec: RunSpec) -> str:
    """Validation files in the training data's folder that no split of the spec reads."""
    kind = registry.find("source", spec.data.source, "data.source")
    if "train" not in kind.path_fields or isinstance(spec.data.validation, str | list):
        return ""
    found = ignored_files(spec.data.train)
    names = [name for name in found if split_of(Path(name)) == "validation"]
    return (
        message(
            "data.train: {names} in this folder looks like validation data because of its name, so "
            "it is not used; to evaluate on it, set data.validation to it",
            names=names[0],
        )
        if names
        else ""
    )


def _split_off(spec: RunSpec, task: Task, train: Rows, columns: Columns) -> dict[str, Rows]:
    fraction = spec.data.validation
    assert isinstance(fraction, float | int)
    if not 0 < fraction < 1:
        raise InputError(
            "data.validation: {fraction} is not a fraction between 0 and 1, such as 0.1",
            "data.validation",
            fraction=fraction,
        )
    label, labels = task.label_column(columns), split_labels(task, train, columns)
    seed = spec.training.seed if spec.data.split_seed is None else spec.data.split_seed
    kept, taken = split_off(train, float(fraction), seed, task.split_by, labels)
    for name, part in (("train", kept), ("validation", taken)):
        if len(part) == 0 and name == "validation" and labels is not None and len(train) > 1:
            raise InputError(
                "data.validation: each of the {train:,} rows has its own label in the column {label}, so "
                "no row can be held out; set data.columns.label to the column with the labels, or use a "
                "file with validation rows",
                "data.validation",
                train=len(train),
                label=repr(label),
            )
        if len(part) == 0:
            raise InputError(
                "data.validation: {fraction} of {train} rows leaves no {name} row; use more data or another fraction",
                "data.validation",
                fraction=fraction,
                train=len(train),
                name=name,
            )
    return {"train": kept, "validation": taken}


def choose_columns(task: Task, given: Given, rows: Rows, to_predict: bool = False) -> dict[str, str]:
    """Role → column: as given, else guessed (`column_guess`). Raises InputError that lists the available columns."""
    return _choose(task, given, rows, to_predict)[0]


def _choose(task: Task, given: Given, rows: Rows, to_predict: bool) -> tuple[dict[str, str], dict[str, GuessReason]]:
    there = rows.table.column_names
    there_are = (
        message("the columns are {there} ({sheets})", there=", ".join(there), sheets=rows.sheets)
        if rows.sheets
        else message("the columns are {there}", there=", ".join(there))
    )
    given, used = spread_columns(used_columns(task), given)
    roles = {column.name: column for column in used}
    for role in given:
        if role not in roles:
            raise InputError(
                "data.columns.{role}: this task has no such column; its columns are {roles}",
                f"data.columns.{role}",
                role=role,
                roles=", ".join(roles),
            )
    # What need not be there is not guessed by content: prediction would take any column for the answers.
    parts = [_column_for(column, to_predict) for column in roles.values()]
    guessing = ColumnGuess(rows.table)
    guesses = guessing.guesses(parts, given)
    chosen: dict[str, str] = {}
    for part in parts:
        role, name, guess = part.name, given.get(part.name), guesses.get(part.name)
        if name is not None and name not in there:
            if part.needed_to_predict or not to_predict:
                key = role.rstrip("0123456789").rstrip("_") if part.several else role
                raise InputError(
                    "data.columns.{role}: there is no column {name}; {there_are}",
                    f"data.columns.{key}",
                    role=key,
                    name=repr(name),
                    there_are=there_are,
                )
        elif guess is not None and guess.column is not None:
            chosen[role] = guess.column
        elif part.required:
            others = [] if to_predict else guess_other_tasks(str(task.settings.type), parts, guessing, chosen)
            is_label = part.holds == "label" and not others
            no_labels = find_missing_labels(parts, guessing, chosen) if is_label else None
            raise no_labels or _no_column(part, guess, describe_other_tasks(others), there_are)
    return chosen, guesses


def _no_column(part: Column, guess: GuessReason | None, advice: str, there_are: str) -> InputError:
    """A required role has no column; `advice` is what else would help, and `there_are` says what there is."""
    values = {"role": part.name, "title": part.title.lower()}
    problem = (
        message(
            "data.columns.{role}: specify which column contains the {title}, which {reason}",
            reason=guess.reason,
            **values,
        )
        if guess
        else message("data.columns.{role}: specify which column contains the {title}", **values)
    )
    sentence = join("; ", [join(", ", filter(None, [problem, advice])), there_are])
    return InputError(sentence, f"data.columns.{part.name}")


def _column_for(part: Column, to_predict: bool) -> Column:
    """The role's requirements: columns not needed for prediction are optional when rows are only predicted."""
    return part if part.needed_to_predict or not to_predict else msgspec.structs.replace(part, required=False)


def _check_columns(task: Task, rows: Rows, columns: Columns, split: str) -> None:
    """Raises InputError if a split lacks a column of the training data; test rows may lack labels."""
    there = rows.table.column_names
    for column in spread_columns(used_columns(task), columns)[1]:
        name = columns.get(column.name)
        if name is not None and name not in there and (column.needed_to_predict or split != "test"):
            raise InputError(
                "data.{key}: {files} has no column {name} ({title}), which the training data has; its "
                "columns are {there}",
                f"data.{split}",
                key=split,
                files=rows.files[0],
                name=repr(name),
                title=column.title.lower(),
                there=", ".join(there),
            )


def drop_unusable(task: Task, rows: Rows, columns: Columns, split: str, use: Use) -> Rows:
    """The usable rows; the others are listed in `skipped`. Raises InputError if none is left."""
    use = use if _is_labelled(task, rows, columns) else "predicting"
    unusable = task.unusable(rows, columns, use)
    kept = rows.without(unusable, f"{rows.fingerprint}-{use}")
    if len(kept) == 0:
        why = (
            message(
                "all {unusable} were skipped; the reason for the first one ({rows}): {unusable_2}",
                unusable=len(unusable),
                rows=rows.place(unusable[0][0]),
                unusable_2=unusable[0][1],
            )
            if unusable
            else message("there are no rows")
        )
        raise InputError("{split}: no rows can be used: {why}", split_key(split), split=split_key(split), why=why)
    return kept


def _is_labelled(task: Task, rows: Rows, columns: Columns) -> bool:
    label = task.label_column(columns)
    return label is None or label in rows.table.column_names


def model_labels(folder: Path | None) -> tuple[str, ...]:
    """The labels in a checkpoint, in id order; none if they are the default LABEL_0, LABEL_1 …"""
    return tuple(inspection.labels(inspection.read_config(folder))) if folder else ()


def with_max_length(task: Task, facts: Facts, folder: Path | None) -> Facts:
    """Facts with `max_length`: from the task's settings, else the model's limit, at most 100,000.

    A default above the limit counts as not set, as in `fit_lengths`.
    """
    own = getattr(task.settings, "max_length", None)
    limit = longest_sequence(inspection.read_config(folder) if folder else {})
    if own and limit and "max_length" not in task.settings.model_fields_set:
        own = min(own, limit)
    return {**facts, "max_length": own or limit or 100_000}
