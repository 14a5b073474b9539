"""Writes predictions: `predictions.csv` and its Parquet twin, the GLUE server's file, and tables for other programs."""

import json
import os
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv
import pyarrow.parquet as parquet

from backend.contract.messages import message
from backend.contract.output_file import whole_file
from backend.contract.run.folder import RunFolder
from backend.data.csv_file import BOM, FORMULA_STARTS
from backend.data.rows import Rows
from backend.tasks.task import Predictions

GROUP_ROWS = 5000
"""Rows of a Parquet row group: a page that the window decodes at once."""
_RESERVED = ("prediction", "actual")
_OWN_NAMES = ("validation", "test")
_LONGEST_NAME = 60
_GLUE_INDEX_NAMES = ("index", "id")
"""The columns of GLUE's test files that number their rows; without one a file's rows are numbered from 0."""
PART_ROWS = 4 * GROUP_ROWS
"""Rows that are written between two looks at the progress."""
_STARTS = "^[" + "".join(f"\\x{ord(letter):02x}" for letter in FORMULA_STARTS) + "]"


def write(
    table: pa.Table, csv: Path, parquet_path: Path | None = None, documents: dict[str, Any] | None = None
) -> None:
    """Write the CSV (UTF-8), its Parquet twin and a task's other documents, each atomically.

    A document of `predictions_test.csv` is called `name_test.json`, one of `mine.csv` `name_mine.json`.
    """
    _write_and_rename(csv, lambda path: arrow_csv.write_csv(flat(table), path))
    if parquet_path is not None:
        _write_and_rename(parquet_path, lambda path: parquet.write_table(table, path, row_group_size=GROUP_ROWS))
    for name, content in (documents or {}).items():
        text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, indent=1)
        _write_and_rename(_sibling(csv, name), partial(_write_text, text))


def join_predictions(rows: Rows, predictions: Predictions) -> pa.Table:
    """Every input column under its own name, then `prediction`, `actual` if any is known, then the task's own columns.

    An input column named `prediction` or `actual` becomes `input_prediction`, `input_actual`; a task column whose name
    is already taken by the input is prefixed with `predicted_`. Several files add a first column `file`.
    """
    own = predictions.table
    if own["actual"].null_count == own.num_rows:
        own = own.drop_columns(["actual"])
    columns = {"file": pa.array([rows.files[index] for index in rows.file_index])} if len(rows.files) > 1 else {}
    for name in rows.table.column_names:
        columns[_free_name(f"input_{name}" if name in _RESERVED else name, columns)] = rows.table[name]
    for name in own.column_names:
        columns[name if name in _RESERVED else _free_name(name, columns, "predicted_")] = own[name]
    return pa.table(columns).replace_schema_metadata(own.schema.metadata)


def _free_name(name: str, taken: dict[str, object], prefix: str = "input_") -> str:
    while name in taken:
        name = prefix + name
    return name


def _sibling(csv: Path, name: str) -> Path:
    suffix, plain = csv.stem.removeprefix("predictions").lstrip("_"), Path(name)
    return csv.with_name(f"{plain.stem}_{suffix}{plain.suffix}" if suffix else name)


def _write_text(text: str, path: Path) -> None:
    path.write_text(text, encoding="utf-8")


def _write_and_rename(path: Path, write_to: Callable[[Path], None]) -> None:
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        write_to(beside)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def flat(table: pa.Table) -> pa.Table:
    """Nested values as JSON text, because a CSV cell is text."""
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


def free_name(folder: RunFolder, data: Path) -> str:
    """The file's name as an unused predictions name: `reviews`, then `reviews-2`."""
    plain = unicodedata.normalize("NFC", data.name.partition(".")[0])
    stem = re.sub(r"[^\w-]+", "-", plain).strip("-_")[:_LONGEST_NAME] or "file"
    for number in range(1, 10_000):
        name = stem if number == 1 else f"{stem}-{number}"
        taken = name in _OWN_NAMES or any(folder.predictions(name, suffix).exists() for suffix in ("csv", "parquet"))
        if not taken:
            return name
    raise RuntimeError(
        message("{path} already contains ten thousand predictions named {stem}", path=folder.path, stem=stem)
    )


# The file that the GLUE benchmark's server takes: `index<TAB>prediction`


def glue_paths(rows: Rows, path: Path) -> list[Path]:
    """The file, or one per part: `mnli.tsv` becomes `mnli_test_matched.tsv` and `mnli_test_mismatched.tsv`."""
    if len(rows.files) == 1:
        return [path]
    return [path.with_name(f"{path.stem}_{Path(file).stem}{path.suffix}") for file in rows.files]


def write_glue(rows: Rows, predictions: Predictions, path: Path) -> list[Path]:
    """Write every row's prediction under its index: a label by name, a score with three decimals.

    Atomic: an older file stays whole until it is replaced.
    """
    written = glue_paths(rows, path)
    answers = predictions.table["prediction"].to_pylist()
    for number, one in enumerate(written):
        own = np.flatnonzero(rows.file_index == number)
        indices = _glue_indices(rows, own, rows.files[number])
        lines = [f"{index}\t{_glue_text(answers[row])}\n" for index, row in zip(indices, own, strict=True)]
        beside = one.with_name(f".{one.name}.{os.getpid()}")
        try:
            beside.write_text("index\tprediction\n" + "".join(lines), encoding="utf-8", newline="\n")
            beside.replace(one)
        finally:
            beside.unlink(missing_ok=True)
    return written


def _glue_indices(rows: Rows, own: np.ndarray, file: str) -> list[Any]:
    """The rows' numbers in their file; unusable rows leave gaps."""
    column = next((name for name in _GLUE_INDEX_NAMES if name in rows.table.column_names), None)
    if column:
        return rows.table[column].take(own).to_pylist()
    places = [one.place.rpartition(":") for one in rows.skipped]
    unused = np.array([int(line) for name, _, line in places if name == file], dtype=np.int64)
    lines = rows.lines[own]
    return np.searchsorted(np.sort(np.concatenate([lines, unused])), lines).tolist()


def _glue_text(answer: Any) -> str:
    return f"{answer:.3f}" if isinstance(answer, float) else str(answer)


# A table as a file for other programs, harmless to spreadsheets where asked


@dataclass(frozen=True)
class TableOptions:
    """How a table is written; `bom` and `defuse` are for spreadsheets and do not affect Parquet files."""

    csv: bool = True
    bom: bool = False
    defuse: bool = False


def write_table(
    table: pa.Table, path: Path, options: TableOptions, report: Callable[[int, int], None] = lambda done, total: None
) -> None:
    """Write all rows; a CSV without options equals the one that `write` makes. Raises InputError."""
    put = _csv if options.csv else _parquet
    with whole_file(path) as beside, beside.open("wb") as file:
        put(table, file, options, report)


def _csv(table: pa.Table, file: pa.NativeFile, options: TableOptions, report: Callable[[int, int], None]) -> None:
    if options.bom:
        file.write(BOM)
    names = [_escape_formulas(pa.array(table.column_names))[place].as_py() for place in range(table.num_columns)]
    schema = _prepare(table.slice(0, 0).rename_columns(names if options.defuse else table.column_names), options)
    with arrow_csv.CSVWriter(file, schema.schema) as writer:
        for start in range(0, table.num_rows, PART_ROWS):
            part = _prepare(table.slice(start, PART_ROWS), options)
            writer.write_table(part.rename_columns(schema.column_names).cast(schema.schema))
            report(min(table.num_rows, start + PART_ROWS), table.num_rows)


def _prepare(part: pa.Table, options: TableOptions) -> pa.Table:
    part = flat(part)
    if not options.defuse:
        return part
    for place, field in enumerate(part.schema):
        if pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
            part = part.set_column(place, field.name, _escape_formulas(part[field.name]))
    return part


def _escape_formulas(texts: pa.Array) -> pa.Array:
    """Put an apostrophe before formulas. Numbers are unchanged: -0.5 starts with a minus, but is not a formula."""
    runs = pc.match_substring_regex(texts, _STARTS)
    return pc.if_else(runs, pc.binary_join_element_wise("'", texts, ""), texts)


def _parquet(table: pa.Table, file: pa.NativeFile, options: TableOptions, report: Callable[[int, int], None]) -> None:
    with parquet.ParquetWriter(file, table.schema) as writer:
        for start in range(0, table.num_rows, PART_ROWS):
            writer.write_table(table.slice(start, PART_ROWS), row_group_size=GROUP_ROWS)
            report(min(table.num_rows, start + PART_ROWS), table.num_rows)
