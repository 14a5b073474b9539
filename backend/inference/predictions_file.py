"""Owns `predictions.csv` and its Parquet twin: the input's columns first, then the prediction, rows in input order."""

import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv
import pyarrow.parquet as parquet

from backend.data.rows import Rows
from backend.tasks.task import Predictions

GROUP_ROWS = 5000
"""Rows of a Parquet row group: a page that the window decodes at once."""
_RESERVED = ("prediction", "actual")


def joined(rows: Rows, predictions: Predictions) -> pa.Table:
    """Every input column under its own name, then `prediction`, `actual` where any is known, then the task's own.

    An input column named `prediction` or `actual` becomes `input_prediction`, `input_actual`; an own column whose name
    the input already bears is prefixed `predicted_`. Several files add a first column `file`.
    """
    own = predictions.table
    if own["actual"].null_count == own.num_rows:
        own = own.drop_columns(["actual"])
    columns = {"file": pa.array([rows.files[index] for index in rows.file_index])} if len(rows.files) > 1 else {}
    for name in rows.table.column_names:
        columns[_free(f"input_{name}" if name in _RESERVED else name, columns)] = rows.table[name]
    for name in own.column_names:
        columns[name if name in _RESERVED else _free(name, columns, "predicted_")] = own[name]
    return pa.table(columns)


def _free(name: str, taken: dict[str, object], prefix: str = "input_") -> str:
    while name in taken:
        name = prefix + name
    return name


def write(
    table: pa.Table, csv: Path, parquet_path: Path | None = None, documents: dict[str, Any] | None = None
) -> None:
    """Write the CSV (UTF-8), its Parquet twin and a task's further documents, each beside and renamed.

    A document of `predictions_test.csv` is called `name_test.json`, one of `mine.csv` `name_mine.json`.
    """
    _renamed(csv, lambda path: arrow_csv.write_csv(flat(table), path))
    if parquet_path is not None:
        _renamed(parquet_path, lambda path: parquet.write_table(table, path, row_group_size=GROUP_ROWS))
    for name, content in (documents or {}).items():
        text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, indent=1)
        _renamed(_beside(csv, name), partial(_write_text, text))


def _beside(csv: Path, name: str) -> Path:
    suffix, plain = csv.stem.removeprefix("predictions").lstrip("_"), Path(name)
    return csv.with_name(f"{plain.stem}_{suffix}{plain.suffix}" if suffix else name)


def _write_text(text: str, path: Path) -> None:
    path.write_text(text, encoding="utf-8")


def _renamed(path: Path, write_to: Callable[[Path], None]) -> None:
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        write_to(beside)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def flat(table: pa.Table) -> pa.Table:
    """Nested values as JSON text, since a CSV cell is text."""
    for index, field in enumerate(table.schema):
        if pa.types.is_nested(field.type) or pa.types.is_binary(field.type):
            table = table.set_column(index, field.name, as_json(table[field.name]))
        elif pa.types.is_dictionary(field.type):
            table = table.set_column(index, field.name, pc.cast(table[field.name], field.type.value_type))
    return table


def as_json(column: pa.ChunkedArray) -> pa.Array:
    """Nested values as JSON text."""
    return pa.array(
        [None if value is None else json.dumps(value, ensure_ascii=False, default=str) for value in column.to_pylist()],
        pa.string(),
    )
