"""Writes a table as a CSV file, atomically, and safe for spreadsheets on request."""

import csv
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from backend.contract.output_file import whole_file

EXPORT_ROWS = 20_000
"""Rows that are written between two looks at the progress."""
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
"""A spreadsheet runs a cell that starts with one of these (https://owasp.org/www-community/attacks/CSV_Injection)."""
BOM = b"\xef\xbb\xbf"


def write_csv(
    table: pa.Table,
    path: Path,
    defuse: bool = False,
    bom: bool = False,
    report: Callable[[int], None] = lambda done: None,
    option: str = "",
) -> None:
    """Write all columns; `defuse` puts an apostrophe before texts that a spreadsheet would run. Raises InputError."""
    with whole_file(path, option) as beside, beside.open("wb") as file:
        for done, content in _csv(table, defuse, bom):
            file.write(content)
            report(done)


def _csv(table: pa.Table, defuse: bool, bom: bool) -> Iterator[tuple[int, bytes]]:
    cell = escape_formula if defuse else to_plain_cell
    yield 0, (BOM if bom else b"") + _lines([[cell(name) for name in table.column_names]])
    for start in range(0, table.num_rows, EXPORT_ROWS):
        part = table.slice(start, EXPORT_ROWS)
        columns = [[cell(value) for value in column.to_pylist()] for column in part.columns]
        yield start + part.num_rows, _lines(zip(*columns, strict=True))


def _lines(rows: Any) -> bytes:
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\r\n").writerows(rows)
    return stream.getvalue().encode("utf-8", errors="replace")


def to_plain_cell(value: Any) -> Any:
    """A value as one cell: lists and mappings as JSON."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value


def escape_formula(value: Any) -> Any:
    """The same, with an apostrophe before a text that a spreadsheet would run."""
    # Numbers are unchanged: -0.5 starts with a minus, but is not a formula.
    value = to_plain_cell(value)
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA_STARTS) else value
