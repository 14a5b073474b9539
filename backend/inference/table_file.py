"""Owns a table as a file for other programs, CSV or Parquet: written beside and renamed, harmless to spreadsheets where asked."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv
import pyarrow.parquet as parquet

from backend.contract.output_file import whole_file
from backend.data.csv_file import BOM, FORMULA_STARTS
from backend.inference.predictions_file import GROUP_ROWS, flat

PART_ROWS = 4 * GROUP_ROWS
"""Rows that are written between two looks at the progress."""
_STARTS = "^[" + "".join(f"\\x{ord(letter):02x}" for letter in FORMULA_STARTS) + "]"


@dataclass(frozen=True)
class Options:
    """How a table is written; `bom` and `defuse` are for spreadsheets and touch no Parquet file."""

    csv: bool = True
    bom: bool = False
    defuse: bool = False


def write(
    table: pa.Table, path: Path, options: Options, report: Callable[[int, int], None] = lambda done, total: None
) -> None:
    """Write all rows; a CSV without options is what `predictions_file.write` makes of the table. Raises InputError."""
    put = _csv if options.csv else _parquet
    with whole_file(path) as beside, beside.open("wb") as file:
        put(table, file, options, report)


def _csv(table: pa.Table, file: pa.NativeFile, options: Options, report: Callable[[int, int], None]) -> None:
    if options.bom:
        file.write(BOM)
    names = [_defused(pa.array(table.column_names))[place].as_py() for place in range(table.num_columns)]
    schema = _prepared(table.slice(0, 0).rename_columns(names if options.defuse else table.column_names), options)
    with arrow_csv.CSVWriter(file, schema.schema) as writer:
        for start in range(0, table.num_rows, PART_ROWS):
            part = _prepared(table.slice(start, PART_ROWS), options)
            writer.write_table(part.rename_columns(schema.column_names).cast(schema.schema))
            report(min(table.num_rows, start + PART_ROWS), table.num_rows)


def _prepared(part: pa.Table, options: Options) -> pa.Table:
    part = flat(part)
    if not options.defuse:
        return part
    for place, field in enumerate(part.schema):
        if pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
            part = part.set_column(place, field.name, _defused(part[field.name]))
    return part


def _defused(texts: pa.Array) -> pa.Array:
    """An apostrophe before what a spreadsheet would run. Numbers stay numbers: -0.5 begins with a minus, but is no formula."""
    runs = pc.match_substring_regex(texts, _STARTS)
    return pc.if_else(runs, pc.binary_join_element_wise("'", texts, ""), texts)


def _parquet(table: pa.Table, file: pa.NativeFile, options: Options, report: Callable[[int, int], None]) -> None:
    with parquet.ParquetWriter(file, table.schema) as writer:
        for start in range(0, table.num_rows, PART_ROWS):
            writer.write_table(table.slice(start, PART_ROWS), row_group_size=GROUP_ROWS)
            report(min(table.num_rows, start + PART_ROWS), table.num_rows)
