"""Answers queries about data being chosen: what files are, their first rows, a summary of all rows, a report.

`recognise_data`, `preview_data`, `data_row`, `data_glance`, `export_unusable`, `data_report`.
"""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from backend.contract.catalog import Column, is_used
from backend.contract.errors import Fix, InputError
from backend.contract.messages import message
from backend.contract.output_file import whole_file
from backend.contract.rpc.data import (
    DataPreview,
    DataReport,
    DataRow,
    DataSummary,
    GuessedColumn,
    OtherTask,
    RecognisedData,
)
from backend.contract.rpc.protocol import ErrorReply, ExportedFile
from backend.contract.safe_files import user_path
from backend.helper.query import Arguments, Query, ReportProgress, reporting, require

ROWS = 100
CELL_CHARACTERS = 2000
WHOLE_CHARACTERS = 200_000
"""Of a cell of a row that is looked at alone; more would be slow to show."""
CHARACTERS = 200_000
"""Of all cells together: however long and wide the rows are, the answer is a short line."""


def _preview(arguments: Arguments, report: ReportProgress) -> DataPreview:
    from backend.data.data_files import ignored_files  # these load the data room
    from backend.preflight.column_guess import ColumnGuess
    from backend.tasks.task import spread_columns

    section, kind, rows = _training_rows(arguments, report)
    roles = _task_columns(arguments.get("task"))
    given, parts = spread_columns(roles, section.columns)
    guess = ColumnGuess(rows.table)
    guesses, alone = guess.guesses(parts, given), guess.guesses(roles, {})
    columns = {part: one.column for part, one in guesses.items() if one.column is not None}
    sheet = _suggest_sheet(section) if rows.sheets else None
    # A title page says nothing about the task of the table behind it.
    others = [] if sheet else _other_tasks(parts, guess, columns, arguments.get("task"))
    return DataPreview(
        columns=list(rows.table.column_names),
        rows=_first_rows(rows.table),
        row_count=len(rows),
        guessed_columns={part: column for part, column in columns.items() if part in {role.name for role in roles}},
        guess_reasons={part: _reason(one, alone.get(part)) for part, one in guesses.items()},
        best_guesses={
            part: GuessedColumn(one.column, one.reason)
            for part, one in alone.items()
            if one.column is not None
            and one.column != columns.get(part)
            and not isinstance(section.columns.get(part), list)
        },
        summaries=[guess.summaries[name] for name in rows.table.column_names],
        unfit=guess.unfit_columns(roles),
        label_counts=_label_counts(rows, arguments.get("task"), columns),
        skipped_count=len(rows.skipped),
        skipped=[message("{place}: {reason}", place=one.place, reason=one.reason) for one in rows.skipped[:100]],
        files=list(rows.files),
        passed_over=ignored_files(section.train) if "train" in kind.path_fields else [],
        wrong_column=_wrong_column(parts, guess, columns, section, arguments.get("task"))
        or (_missing_labels(parts, guess, columns) if not (sheet or others) else None),
        other_tasks=others,
        fix=sheet,
    )


def _wrong_column(
    parts: Sequence[Column], guess: Any, columns: dict[str, str], section: Any, task: Any
) -> ErrorReply | None:
    """The column that cannot play its role; a label that separate validation rows may confirm is left to the plan."""
    from backend.preflight.column_check import find_wrong_column  # loads the data room

    listed = bool(isinstance(task, dict) and task.get("labels"))
    is_split = isinstance(section.validation, float | int)
    wrong = find_wrong_column(list(parts), guess, columns, labels_are_listed=listed, is_split=is_split)
    needs_more = section.validation is not None and not is_split
    if wrong is None or (wrong.role.holds == "label" and needs_more):
        return None
    error = wrong.error()
    return ErrorReply(str(error), error.field, fix=error.fix)


def _missing_labels(parts: Sequence[Column], guess: Any, columns: dict[str, str]) -> ErrorReply | None:
    """That no column looks like the labels that are needed."""
    from backend.preflight.column_check import find_missing_labels  # loads the data room

    error = find_missing_labels(list(parts), guess, columns)
    return ErrorReply(str(error), error.field, fix=error.fix) if error is not None else None


def _other_tasks(parts: Sequence[Column], guess: Any, columns: dict[str, str], task: Any) -> list[OtherTask]:
    """The tasks that the data is made for; none before a task is named, or if labels are listed for it."""
    from backend.preflight.task_guess import guess_other_tasks  # loads the data room

    name = task.get("type") if isinstance(task, dict) else task
    listed = bool(isinstance(task, dict) and task.get("labels"))
    return guess_other_tasks(str(name), parts, guess, columns) if name and not listed else []


def _suggest_sheet(section: Any) -> Fix | None:
    """A fix that selects the intended sheet if the current one looks like a title page; none if the user chose it."""
    from backend.data.formats.workbook import suggest_sheet

    is_file = isinstance(section.train, str) and Path(section.train).is_file()
    return suggest_sheet(Path(section.train)) if is_file and not (section.model_extra or {}).get("sheet") else None


def _training_rows(arguments: Arguments, report: ReportProgress) -> tuple[Any, Any, Any]:
    """The `data` section with absolute paths, its source and the training rows. Raises InputError."""
    from backend import registry  # these load the data room
    from backend.contract.spec import DataSection, validate
    from backend.preflight import datasets

    section = validate(DataSection, require(arguments, "data", dict), "data")
    kind = registry.find("source", section.source, "data.source")
    settings = validate(kind.Settings, section.model_extra or {}, "data")
    section = _resolve_paths(section, settings, kind)
    rows = kind(settings).read("train", section, datasets.reading(reporting(report)))
    if rows is None:
        raise InputError("data.train: specify the training data, for example a CSV file", "data.train")
    return section, kind, rows


def _first_rows(table: Any) -> list[list[str]]:
    """The first rows as text; long cells are truncated before they leave the file."""
    from backend.data.column_summary import cell_text, shorten_texts  # loads pyarrow; the helper does without

    first = table.slice(0, ROWS)
    most = min(CELL_CHARACTERS, CHARACTERS // max(1, first.num_rows * first.num_columns))
    columns = [shorten_texts(column, most + 1).to_pylist() for column in first.columns]
    return [
        list(row) for row in zip(*([cell_text(value, most) for value in column] for column in columns), strict=True)
    ]


def _reason(one: Any, alone: Any) -> str:
    """Why a column is chosen: the guess's reason, also if the user chose the column that would be guessed."""
    return alone.reason if alone is not None and alone.column == one.column else one.reason


def _resolve_paths(section: Any, settings: Any, kind: Any) -> Any:
    from backend.preflight import resolve

    values = {**section.model_dump(), **settings.model_dump()}
    return section.model_copy(
        update={
            **settings.model_dump(),
            **{name: resolve.absolute(values[name], Path.home()) for name in kind.path_fields if values.get(name)},
        }
    )


def _task_columns(task: Any) -> list[Column]:
    """The roles used under the task's settings; none if no task is named."""
    from backend import registry

    name = task.get("type") if isinstance(task, dict) else task
    if not name:
        return []
    return _columns_in_use(registry.find("task", str(name), "task.type"), task if isinstance(task, dict) else {})


def _columns_in_use(kind: Any, settings: dict[str, Any]) -> list[Column]:
    """The task's columns under these settings, as far as they are given: the form may be incomplete."""
    fields = kind.Settings.model_fields
    return [
        column
        for column in kind.columns
        if is_used(column, lambda name: settings.get(name, fields[name].default))
    ]  # fmt: skip


def _label_counts(rows: Any, task: Any, columns: dict[str, str]) -> dict[str, int]:
    """How often each label, or each tag of a word, occurs; empty if the task has no labels."""
    from backend import registry
    from backend.contract.spec import validate
    from backend.data.column_summary import MAX_LABELS, count_labels
    from backend.tasks.task import label_counts

    name = task.get("type") if isinstance(task, dict) else task
    if not name:
        return {}
    kind = registry.find("task", str(name), "task.type")
    with suppress(InputError):  # the form may be incomplete, and the cells may be no labels yet
        made = kind(validate(kind.Settings, task, "task")) if isinstance(task, dict) else None
        if made is not None and (several := label_counts(made, rows, columns)) is not None:
            return dict(several.most_common(MAX_LABELS))
    targets = [one.name for one in kind.columns if one.required and not one.needed_to_predict]
    column = next((columns[part] for part in targets if part in columns), None)
    if column is None or not kind.head.chooses_labels:
        return {}
    return count_labels(rows.table[column])


def _report(arguments: Arguments, report: ReportProgress) -> DataReport:
    """The report on a whole spec (`spec`, `folder`), or on a `data` section with `task` and `tokenizer` if known."""
    from backend.inspect import data_report
    from backend.preflight import resolve

    folder = Path(str(arguments.get("folder") or Path.home()))
    if arguments.get("spec"):
        subject = data_report.request_of_spec(resolve.resolve(require(arguments, "spec", dict), folder))
    else:
        task = arguments.get("task") or {}
        section = task if isinstance(task, dict) else {"type": str(task)}
        tokenizer = arguments.get("tokenizer")
        subject = data_report.request_of_data(
            require(arguments, "data", dict), section, str(tokenizer) if tokenizer else None, folder
        )
    return data_report.data_report(subject, reporting(report))


def _recognise(arguments: Arguments, report: ReportProgress) -> RecognisedData:
    from backend.inspect.recognition import recognise  # loads every source

    split = arguments.get("split")
    return recognise([str(one) for one in require(arguments, "paths", list)], str(split) if split else None)


def _report_request(arguments: Arguments) -> Any:
    from backend.inspect import data_report

    task = arguments.get("task") or {}
    section = task if isinstance(task, dict) else {"type": str(task)}
    if not section.get("type"):
        raise InputError("task.type: specify the task, which determines which rows can be used", "task.type")
    return data_report.request_of_data(require(arguments, "data", dict), section, None, Path.home())


def _summarise_data(arguments: Arguments, report: ReportProgress) -> DataSummary:
    from backend.inspect.data_glance import data_glance  # loads the data room

    model = arguments.get("model")
    return data_glance(_report_request(arguments), str(model) if model else None, reporting(report))


def _export_unusable(arguments: Arguments, report: ReportProgress) -> ExportedFile:
    import csv

    from backend.inspect.data_glance import unusable_rows

    found = unusable_rows(_report_request(arguments), reporting(report))
    output = user_path(require(arguments, "output"))
    with whole_file(output) as beside, beside.open("w", newline="", encoding="utf-8-sig") as file:
        writer = csv.writer(file)
        writer.writerow(("split", "file", "line", "reason"))
        writer.writerows((split, row.file, row.line, row.reason) for split, row in found)
    return ExportedFile(str(output), len(found))


def _row(arguments: Arguments, report: ReportProgress) -> DataRow:
    from backend.data.column_summary import cell_text

    rows = _training_rows(arguments, report)[2]
    number = int(arguments.get("row") or 0)
    if not 0 <= number < len(rows):
        raise InputError("there is no row {number}; the data has {rows}", number=number, rows=len(rows))
    [values] = rows.table.slice(number, 1).to_pylist()
    whole = {name: cell_text(value, WHOLE_CHARACTERS) for name, value in values.items()}
    return DataRow(place=rows.place(number), cells=whole)


QUERIES = (
    Query("preview_data", _preview),
    Query("data_report", _report),
    Query("recognise_data", _recognise),
    Query("data_glance", _summarise_data, warm_by="model"),
    Query("data_row", _row),
    Query("export_unusable", _export_unusable),
)
