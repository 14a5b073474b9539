"""Owns `filter_predictions`, `confusion` and `export_predictions`: what is too much for the window to do between two frames."""

import os
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backend.contract.errors import InputError
from backend.contract.queries import Confusion, Exported, PredictionRows, Progress
from backend.queries.derived_columns import with_column
from backend.queries.query import Arguments, Query, Tell, needed

if TYPE_CHECKING:
    import pyarrow as pa

MOST_LABELS = 100
"""Labels of a confusion matrix; more cannot be read, and seldom are labels."""


def _filter(arguments: Arguments, tell: Tell) -> PredictionRows:
    import pyarrow as pa
    import pyarrow.compute as compute

    table = _read(arguments)
    keep = _kept(table, arguments)
    sort_by = arguments.get("sort_by")
    if sort_by:
        table = with_column(table, str(sort_by))
        if sort_by not in table.column_names:
            raise InputError(f"{sort_by!r} is no column of this file; there are {', '.join(table.column_names)}")
        direction = "descending" if arguments.get("descending") else "ascending"
        order = compute.call_function("sort_indices", [table], compute.SortOptions([(sort_by, direction)]))
        rows = order.filter(keep.take(order))
    else:
        rows = compute.call_function("indices_nonzero", [keep])
    rows = compute.cast(rows, pa.int64())
    return PredictionRows(arrow=_written(pa.table({"row": rows})), count=len(rows))


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
    for name in ("actual", "prediction"):
        if arguments.get(name) is not None:
            keep = compute.call_function("and", [keep, _equal(table, name, str(arguments[name]))])
    text = arguments.get("text")
    if text:
        keep = compute.call_function("and", [keep, _containing(table, str(text))])
    return keep.combine_chunks()


def _equal(table: "pa.Table", name: str, value: str) -> Any:
    import pyarrow as pa
    import pyarrow.compute as compute

    if name not in table.column_names:
        raise InputError(f"there is no column {name!r} in this file")
    values = compute.cast(table[name], pa.string())
    return compute.fill_null(compute.call_function("equal", [values, pa.scalar(value, pa.string())]), False)


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


def _confusion(arguments: Arguments, tell: Tell) -> Confusion:
    import pyarrow as pa
    import pyarrow.compute as compute

    pair = ["actual", "prediction"]
    table = _read(arguments, pair)
    known = pa.table([compute.cast(table[name], pa.string()) for name in pair], names=pair).drop_null()
    cells = known.group_by(pair).aggregate([([], "count_all")]).to_pylist()
    totals: Counter[str] = Counter()
    for cell in cells:
        totals[cell["actual"]] += cell["count_all"]
        totals[cell["prediction"]] += 0
    labels = sorted(label for label, _ in totals.most_common(MOST_LABELS))
    places = {label: place for place, label in enumerate(labels)}
    counts = [[0] * len(labels) for _ in labels]
    for cell in cells:
        if cell["actual"] in places and cell["prediction"] in places:
            counts[places[cell["actual"]]][places[cell["prediction"]]] = cell["count_all"]
    return Confusion(labels=labels, counts=counts, left_out=known.num_rows - sum(map(sum, counts)))


def _export(arguments: Arguments, tell: Tell) -> Exported:
    from backend.data.csv_file import write_csv

    table = _chosen(_read(arguments), arguments.get("indices"))
    output = Path(needed(arguments, "output")).expanduser().absolute()
    defuse, bom = bool(arguments.get("defuse", False)), bool(arguments.get("bom", False))
    try:
        write_csv(table, output, defuse, bom, lambda done: tell(Progress(done, table.num_rows, "rows")))
    except OSError as error:
        raise InputError(f"{output} cannot be written: {error.strerror}; choose another file") from None
    return Exported(path=str(output), rows=table.num_rows)


def _chosen(table: "pa.Table", indices: Any) -> "pa.Table":
    import pyarrow as pa

    if indices is None:
        return table
    if isinstance(indices, str):
        with pa.memory_map(indices) as source:
            indices = pa.ipc.open_file(source).read_all().column(0).combine_chunks()
            return table.take(indices)
    return table.take(pa.array(indices, pa.int64()))


def _read(arguments: Arguments, columns: list[str] | None = None) -> "pa.Table":
    import pyarrow as pa
    import pyarrow.parquet as parquet

    path = needed(arguments, "parquet")
    try:
        missing = set(columns or ()) - set(parquet.read_schema(path).names)
        if missing:
            raise InputError(f"{path}: these predictions have no {min(missing)!r} to compare with")
        return parquet.read_table(path, columns=columns)
    except (OSError, pa.ArrowInvalid) as error:
        first = str(error).splitlines()[0]
        raise InputError(f"{path}: these predictions cannot be read: {first}; run burnish predict again") from None


def _written(table: "pa.Table") -> str:
    import pyarrow as pa

    descriptor, path = tempfile.mkstemp(prefix="burnish-", suffix=".arrow")
    with os.fdopen(descriptor, "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    return path


QUERIES = (
    Query("filter_predictions", _filter),
    Query("export_predictions", _export),
    Query("confusion", _confusion),
)
