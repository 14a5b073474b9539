"""Answers `filter_predictions`: which rows match all conditions, and in which order."""

import os
import re
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backend.contract.arrow_numbers import numbers, whole_numbers
from backend.contract.errors import InputError
from backend.contract.rpc.predictions import RIGHT, PredictionRows
from backend.helper.queries import predictions
from backend.helper.queries.derived_columns import add_column, has_label
from backend.helper.query import Arguments, Query, ReportProgress, require

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

FEW_VALUES = 200
"""Different values in the first rows of a column whose values are looked at once each instead of in every row."""
_LOOKED_AT = 5000
_Match = tuple[str, Any]
"""A kernel of pyarrow that looks for a text, and its options."""
_WORD = (r"(?:^|[^\pL\pN_])", r"(?:$|[^\pL\pN_])")
"""Around a whole word; RE2's own word borders know ASCII alone."""


def _filter(arguments: Arguments, report: ReportProgress) -> PredictionRows:
    import pyarrow as pa

    rows = select_rows(arguments, report)
    return PredictionRows(arrow=_write_pages(pa.table({"row": whole_numbers(rows)})), count=len(rows))


def select_rows(arguments: Arguments, report: ReportProgress = lambda progress: None) -> "np.ndarray":
    """Numbers of the matching rows, in the requested order. Raises InputError."""
    import numpy as np

    path = require(arguments, "parquet")
    table = predictions.read(path, report)
    keep = _filter_mask(table, arguments)
    sort_by = arguments.get("sort_by")
    if not sort_by:
        return np.flatnonzero(keep)
    order = _order(predictions.version(Path(path)), path, str(sort_by), bool(arguments.get("descending")))
    return order[keep[order]]


@lru_cache(maxsize=6)
def _order(version: str, path: str, column: str, descending: bool) -> "np.ndarray":
    """All rows in the order of a column; rows without a value come last."""
    import pyarrow.compute as compute

    table = add_column(predictions.read(path), column)
    _check(table, column)
    key = table[column]
    if _is_text(key) and _has_few_values(key):
        key = _ranks(key)
    direction = "descending" if descending else "ascending"
    order = compute.call_function("sort_indices", [key], compute.SortOptions([("", direction)]))
    return numbers(order)


def _ranks(column: Any) -> Any:
    """Each value's rank among the few distinct ones: numbers sort faster than text."""
    import pyarrow as pa
    import pyarrow.compute as compute

    values = compute.call_function("unique", [column]).drop_null()
    values = values.take(compute.call_function("array_sort_indices", [values]))
    return compute.index_in(column, values) if len(values) else pa.nulls(len(column), pa.int32())


def _filter_mask(table: "pa.Table", arguments: Arguments) -> "np.ndarray":
    import numpy as np

    keep = np.ones(table.num_rows, dtype=bool)
    right = arguments.get("right")
    if right is not None:
        table = add_column(table, RIGHT)
        if RIGHT not in table.column_names:
            raise InputError("there are no actual values in this file to compare the predictions with")
        keep &= _flags(table[RIGHT] if right else _not(table[RIGHT]))
    for name in ("actual", "prediction"):
        label = arguments.get(name)
        if label is not None and (separator := predictions.separator_of(table.schema)):
            _check(table, name)
            keep &= _flags(has_label(table[name], str(label), separator))
        elif label is not None:
            keep &= _compare(table, {"column": name, "is": "is", "value": str(label)})
    for condition in arguments.get("conditions") or []:
        keep &= _compare(table, condition)
    if arguments.get("text"):
        keep &= _containing(table, arguments)
    if arguments.get("slice") is not None:
        keep &= np.isin(
            np.arange(table.num_rows), predictions.slice_rows(str(arguments["parquet"]), int(arguments["slice"]))
        )
    return keep


def _compare(table: "pa.Table", condition: Any) -> "np.ndarray":
    """One condition: `is`, `is_not`, `at_least`, `above`, `at_most` or `below` a value; a value of none is an empty cell."""
    import pyarrow as pa
    import pyarrow.compute as compute

    name, operation, value = str(condition["column"]), str(condition["is"]), condition.get("value")
    table = add_column(table, name)
    _check(table, name)
    column = table[name]
    if value is None:
        return _flags(compute.call_function("is_null" if operation == "is" else "is_valid", [column]))
    function = _OPERATIONS.get(operation)
    if function is None:
        raise InputError(
            "{operation} is not a comparison operator; choose one of {operations}",
            operation=repr(operation),
            operations=", ".join(_OPERATIONS),
        )
    if isinstance(value, str) or not _is_plain_number(column.type):
        column, value = _as_text(column), str(value)
    found = compute.call_function(function, [column, pa.scalar(value)])
    return _flags(compute.fill_null(found, True) if operation == "is_not" else found)


_OPERATIONS = {
    "is": "equal", "is_not": "not_equal", "at_least": "greater_equal", "above": "greater", "at_most": "less_equal",
    "below": "less",
}  # fmt: skip


def _containing(table: "pa.Table", arguments: Arguments) -> "np.ndarray":
    import numpy as np

    matches = _matching(arguments)
    chosen = arguments.get("text_column")
    if chosen:
        _check(table, str(chosen))
    found = np.zeros(table.num_rows, dtype=bool)
    for name in [str(chosen)] if chosen else _searched_columns(table):
        found |= _match(_as_text(table[name]), matches)
    return found


def _searched_columns(table: "pa.Table") -> list[str]:
    """Columns to search for a text if none is named: floats are left out."""
    import pyarrow as pa

    kinds = {field.name: field.type for field in table.schema}
    return [
        name
        for name, kind in kinds.items()
        if not pa.types.is_floating(kind) and not pa.types.is_boolean(kind) and name != "wrong_tags"
    ]  # fmt: skip


def _matching(arguments: Arguments) -> list[_Match]:
    """The conditions on a cell, the fastest first. Raises InputError for an invalid pattern."""
    import pyarrow as pa
    import pyarrow.compute as compute

    text, case = str(arguments["text"]), bool(arguments.get("case"))
    words, regex = bool(arguments.get("words")), bool(arguments.get("regex"))
    plain: list[_Match] = [("match_substring", compute.MatchSubstringOptions(text, ignore_case=not case))]
    if not words and not regex:
        return plain
    pattern = text if regex else re.escape(text)
    if words:
        pattern = f"{_WORD[0]}(?:{pattern}){_WORD[1]}"
    options = compute.MatchSubstringOptions(pattern, ignore_case=not case)
    try:
        compute.call_function("match_substring_regex", [pa.array([""])], options)
    except pa.ArrowInvalid as error:
        reason = str(error).splitlines()[0].rpartition("Invalid regular expression: ")[2]
        raise InputError(
            "{text} is not a valid regular expression: {reason}; fix it or search for plain text",
            text=text,
            reason=reason,
        ) from None
    return [*([] if regex else plain), ("match_substring_regex", options)]


def _match(column: Any, matches: list[_Match]) -> "np.ndarray":
    import numpy as np
    import pyarrow.compute as compute

    if _has_few_values(column):
        values = compute.call_function("unique", [column])
        places = np.flatnonzero(_match(values, matches))
        return _flags(compute.is_in(column, value_set=values.take(whole_numbers(places)), skip_nulls=True))
    (function, options), *rest = matches
    found = _flags(compute.call_function(function, [column], options))
    if rest and found.any():
        found[found] = _match(column.take(whole_numbers(np.flatnonzero(found))), rest)
    return found


def _has_few_values(column: Any) -> bool:
    import pyarrow.compute as compute

    first = column.slice(0, _LOOKED_AT)
    return len(first) == _LOOKED_AT and compute.call_function("count_distinct", [first]).as_py() <= FEW_VALUES


def _as_text(column: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as compute

    if pa.types.is_nested(column.type):
        from backend.inference.predictions_file import as_json

        return pa.chunked_array([as_json(column)])
    return column if _is_text(column) else compute.cast(column, pa.string())


def _is_text(column: Any) -> bool:
    import pyarrow as pa

    return pa.types.is_string(column.type) or pa.types.is_large_string(column.type)


def _is_plain_number(kind: Any) -> bool:
    import pyarrow as pa

    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)


def _not(column: Any) -> Any:
    import pyarrow.compute as compute

    return compute.call_function("invert", [column])


def _flags(column: Any) -> "np.ndarray":
    return numbers(column)  # of which those without a value are False


def _check(table: "pa.Table", column: str) -> None:
    if column not in table.column_names:
        there = ", ".join(name for name in table.column_names if name != RIGHT)
        raise InputError(
            "{column} is not a column of this file; its columns are {there}", column=repr(column), there=there
        )


def _write_pages(table: "pa.Table") -> str:
    import pyarrow as pa

    descriptor, path = tempfile.mkstemp(prefix="burnish-", suffix=".arrow")
    with os.fdopen(descriptor, "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    return path


QUERIES = (Query("filter_predictions", _filter, warm_by="parquet"),)
