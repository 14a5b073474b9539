"""Owns `preview_data` (the first rows, and which column could play which part) and `data_report` (what all rows hold)."""

from collections import Counter
from pathlib import Path
from typing import Any

from backend.contract.catalog import Column, plays_a_part
from backend.contract.errors import InputError
from backend.contract.heads import Head
from backend.contract.queries import DataPreview, DataReport
from backend.data.cells import cell_text
from backend.queries.query import Arguments, Query, Tell, needed, reporting

ROWS = 100
LABELS = 200
CELL_CHARACTERS = 2000
LABEL_CHARACTERS = 200
LABELLING = {Head.SEQUENCE_CLASSIFICATION, Head.TOKEN_CLASSIFICATION, Head.MULTIPLE_CHOICE}
CHARACTERS = 200_000
"""Of all cells together: however long and wide the rows are, the answer stays below the size of an Arrow file."""


def _preview(arguments: Arguments, tell: Tell) -> DataPreview:
    from backend import registry  # these load the data room
    from backend.contract.spec import DataSection, validated
    from backend.run import material

    section = validated(DataSection, needed(arguments, "data", dict), "data")
    kind = registry.find("source", section.source, "data.source")
    settings = validated(kind.Settings, section.model_extra or {}, "data")
    section = _with_paths(section, settings, kind)
    rows = kind(settings).read("train", section, material.reading(reporting(tell)))
    if rows is None:
        raise InputError("data.train: name the training data, for example a CSV file", "data.train")
    columns, reasons = _guessed(arguments.get("task"), section.columns, rows.table.column_names)
    first = rows.table.slice(0, ROWS)
    most = min(CELL_CHARACTERS, CHARACTERS // max(1, first.num_rows * first.num_columns))
    cells = [[cell_text(value, most) for value in column.to_pylist()] for column in first.columns]
    return DataPreview(
        columns=list(first.column_names),
        rows=[list(row) for row in zip(*cells, strict=True)],
        row_count=len(rows),
        guessed_columns=columns,
        guess_reasons=reasons,
        label_counts=_label_counts(rows.table, arguments.get("task"), columns),
        skipped_count=len(rows.skipped),
        skipped=[f"{one.place} {one.reason}" for one in rows.skipped[:100]],
        files=list(rows.files),
    )


def _with_paths(section: Any, settings: Any, kind: Any) -> Any:
    from backend.run import resolving

    values = {**section.model_dump(), **settings.model_dump()}
    return section.model_copy(
        update={
            **settings.model_dump(),
            **{name: resolving.absolute(values[name], Path.home()) for name in kind.path_fields if values.get(name)},
        }
    )


def _guessed(task: Any, given: dict[str, str | None], there: list[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Role → column, and for each role why."""
    from backend import registry
    from backend.run import material

    name = task.get("type") if isinstance(task, dict) else task
    if not name:
        return {}, {}
    chosen: dict[str, str] = {}
    reasons: dict[str, str] = {}
    kind = registry.find("task", str(name), "task.type")
    for column in _playing(kind, task if isinstance(task, dict) else {}):
        wanted = given.get(column.name)
        if wanted is None and column.name in given:
            continue  # a person has said that no column plays this part
        found = wanted if wanted in there else material.guess_column(column.usual_names, there, set(chosen.values()))
        if found:
            chosen[column.name] = found
            reasons[column.name] = "as chosen" if found == wanted else f"{found} is a usual name for it"
    return chosen, reasons


def _playing(kind: Any, settings: dict[str, Any]) -> list[Column]:
    """The task's columns under these settings, as far as they are given: a form is still being filled."""
    fields = kind.Settings.model_fields
    return [
        column
        for column in kind.columns
        if plays_a_part(column, lambda name: settings.get(name, fields[name].default))
    ]  # fmt: skip


def _label_counts(table: Any, task: Any, columns: dict[str, str]) -> dict[str, int]:
    """How often each label is there, or each tag of the words; nothing where the task learns no labels."""
    from backend import registry

    name = task.get("type") if isinstance(task, dict) else task
    if not name:
        return {}
    kind = registry.find("task", str(name), "task.type")
    targets = [one.name for one in kind.columns if one.required and not one.needed_to_predict]
    column = next((columns[part] for part in targets if part in columns), None)
    if column is None or kind.head not in LABELLING:
        return {}
    values = table[column].to_pylist()
    labels = [label for value in values for label in (value if isinstance(value, list) else [value])]
    return dict(Counter(cell_text(label, LABEL_CHARACTERS) for label in labels).most_common(LABELS))


def _report(arguments: Arguments, tell: Tell) -> DataReport:
    """Of a whole spec (`spec`, `folder`), or of a `data` section with `task` and `tokenizer` where they are known."""
    from backend.run import data_report, resolving

    folder = Path(str(arguments.get("folder") or Path.home()))
    if arguments.get("spec"):
        subject = data_report.subject_of(resolving.resolve(needed(arguments, "spec", dict), folder))
    else:
        task = arguments.get("task") or {}
        section = task if isinstance(task, dict) else {"type": str(task)}
        tokenizer = arguments.get("tokenizer")
        subject = data_report.subject_of_data(
            needed(arguments, "data", dict), section, str(tokenizer) if tokenizer else None, folder
        )
    return data_report.data_report(subject, reporting(tell))


QUERIES = (Query("preview_data", _preview), Query("data_report", _report))
