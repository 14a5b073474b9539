"""Owns `filter_predictions` and `export_predictions`: what is too much for the window to do between two frames."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backend.contract.errors import InputError
from backend.contract.queries import Exported, PredictionRows, Progress
from backend.queries.query import Arguments, Query, Tell, needed

if TYPE_CHECKING:
    import pyarrow as pa

EXPORT_ROWS = 20_000
"""Rows that are written between two looks at the progress."""
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
"""A spreadsheet runs a cell that begins so (https://owasp.org/www-community/attacks/CSV_Injection)."""
PROBABILITY = "probability_"
CONFIDENCE = "confidence"
"""No column of the file: the largest probability of a row, by which people sort."""
BOM = b"\xef\xbb\xbf"


def _filter(arguments: Arguments, tell: Tell) -> PredictionRows:
    import pyarrow as pa
    import pyarrow.compute as compute

    table = _read(arguments)
    keep = _kept(table, arguments)
    sort_by = arguments.get("sort_by")
    if sort_by == CONFIDENCE:
        table = _with_confidence(table)
    if sort_by:
        if sort_by not in table.column_names:
            raise InputError(f"{sort_by!r} is no column of this file; there are {', '.join(table.column_names)}")
        direction = "descending" if arguments.get("descending") else "ascending"
        order = compute.call_function("sort_indices", [table], compute.SortOptions([(sort_by, direction)]))
        rows = order.filter(keep.take(order))
    else:
        rows = compute.call_function("indices_nonzero", [keep])
    rows = compute.cast(rows, pa.int64())
    return PredictionRows(arrow=_written(pa.table({"row": rows})), count=len(rows))


def _with_confidence(table: "pa.Table") -> "pa.Table":
    """The table with the largest probability of each row, where it has probabilities and no such column."""
    import pyarrow.compute as compute

    names = [name for name in table.column_names if name.startswith(PROBABILITY)]
    if not names or CONFIDENCE in table.column_names:
        return table
    return table.append_column(CONFIDENCE, compute.max_element_wise(*[table[name] for name in names]))


def _kept(table: "pa.Table", arguments: Arguments) -> Any:
    import pyarrow as pa
    import pyarrow.compute as compute

    keep = pa.chunked_array([pa.array([True] * table.num_rows, pa.bool_())])
    right = arguments.get("right")
    if right is not None:
        if not {"prediction", "actual"} <= set(table.column_names):
            raise InputError("there are no actual values in this file to compare the predictions with")
        pair = [compute.cast(table[name], pa.string()) for name in ("prediction", "actual")]
        equal = compute.call_function("equal", pair)
        wanted = equal if right else compute.call_function("invert", [equal])
        keep = compute.call_function("and", [keep, compute.fill_null(wanted, False)])
    text = arguments.get("text")
    if text:
        keep = compute.call_function("and", [keep, _containing(table, str(text))])
    return keep.combine_chunks()


def _containing(table: "pa.Table", text: str) -> Any:
    import pyarrow as pa
    import pyarrow.compute as compute

    options = compute.MatchSubstringOptions(text, ignore_case=True)
    found = pa.chunked_array([pa.array([False] * table.num_rows, pa.bool_())])
    for column in table.columns:
        if pa.types.is_nested(column.type):
            continue
        hits = compute.call_function("match_substring", [compute.cast(column, pa.string())], options)
        found = compute.call_function("or", [found, compute.fill_null(hits, False)])
    return found


def _export(arguments: Arguments, tell: Tell) -> Exported:
    table = _chosen(_read(arguments), arguments.get("indices"))
    output = Path(needed(arguments, "output")).expanduser().absolute()
    beside = output.with_name(f".{output.name}.{os.getpid()}")
    defuse, bom = bool(arguments.get("defuse", False)), bool(arguments.get("bom", False))
    try:
        with beside.open("wb") as file:
            for done, content in _csv(table, defuse, bom):
                file.write(content)
                tell(Progress(done, table.num_rows, "rows"))
        beside.replace(output)
    except OSError as error:
        raise InputError(f"{output} cannot be written: {error.strerror}; choose another file") from None
    finally:
        beside.unlink(missing_ok=True)
    return Exported(path=str(output), rows=table.num_rows)


def _csv(table: "pa.Table", defuse: bool, bom: bool) -> Iterator[tuple[int, bytes]]:
    import csv
    import io

    def lines(rows: Any) -> bytes:
        stream = io.StringIO()
        csv.writer(stream, lineterminator="\r\n").writerows(rows)
        return stream.getvalue().encode("utf-8", errors="replace")

    cell = _defused if defuse else _plain
    yield 0, (BOM if bom else b"") + lines([[cell(name) for name in table.column_names]])
    for start in range(0, table.num_rows, EXPORT_ROWS):
        part = table.slice(start, EXPORT_ROWS)
        columns = [[cell(value) for value in column.to_pylist()] for column in part.columns]
        yield start + part.num_rows, lines(zip(*columns, strict=True))


def _plain(value: Any) -> Any:
    import json

    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value


def _defused(value: Any) -> Any:
    # Numbers stay numbers: -0.5 begins with a minus, but is no formula.
    value = _plain(value)
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA_STARTS) else value


def _chosen(table: "pa.Table", indices: Any) -> "pa.Table":
    import pyarrow as pa

    if indices is None:
        return table
    if isinstance(indices, str):
        with pa.memory_map(indices) as source:
            indices = pa.ipc.open_file(source).read_all().column(0).combine_chunks()
            return table.take(indices)
    return table.take(pa.array(indices, pa.int64()))


def _read(arguments: Arguments) -> "pa.Table":
    import pyarrow as pa
    import pyarrow.parquet as parquet

    path = needed(arguments, "parquet")
    try:
        return parquet.read_table(path)
    except (OSError, pa.ArrowInvalid) as error:
        first = str(error).splitlines()[0]
        raise InputError(f"{path}: these predictions cannot be read: {first}; run burnish predict again") from None


def _written(table: "pa.Table") -> str:
    import pyarrow as pa

    descriptor, path = tempfile.mkstemp(prefix="burnish-", suffix=".arrow")
    with os.fdopen(descriptor, "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    return path


QUERIES = (Query("filter_predictions", _filter), Query("export_predictions", _export))
