"""Owns a look at what columns hold: their kind, how many different values, how long their texts, by their first rows."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from backend.contract.rpc.queries import ColumnLook
from backend.data.cells import cell_text

LOOKED_AT = 20_000
"""Rows, so that a look takes no longer at large data."""
LONGEST = 2_000
"""Characters of a cell that are looked at."""
EXAMPLES, EXAMPLE_CHARACTERS = 3, 60


def looks_of(table: pa.Table) -> dict[str, ColumnLook]:
    """Column → what its first rows hold."""
    first = table.slice(0, LOOKED_AT)
    return {name: _look(name, first[name]) for name in first.column_names}


def shortened(column: pa.ChunkedArray, most: int) -> pa.ChunkedArray:
    """Texts with at most so many characters, cut before they become Python's; other values as they are."""
    return pc.utf8_slice_codeunits(column, 0, most) if pa.types.is_string(column.type) else column


def kind_of(kind: pa.DataType) -> str:
    """The kind of a column's values in words, as `ColumnLook.kind` lists them."""
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "text"
    if pa.types.is_boolean(kind):
        return "true or false"
    if pa.types.is_integer(kind):
        return "whole numbers"
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "numbers"
    if pa.types.is_list(kind):
        inner = kind_of(kind.value_type)
        return {"text": "list of text", "whole numbers": "list of numbers", "numbers": "list of numbers"}.get(
            inner, "list"
        )
    return "structure" if pa.types.is_struct(kind) or pa.types.is_map(kind) else "other"


def _look(name: str, column: pa.ChunkedArray) -> ColumnLook:
    kind = kind_of(column.type)
    column = shortened(column, LONGEST)
    filled = column.filter(_is_filled(column))
    flat = not pa.types.is_nested(column.type)
    return ColumnLook(
        name=name,
        kind=kind,
        rows=len(column),
        empty=len(column) - len(filled),
        distinct=int(pc.count_distinct(filled).as_py()) if flat else None,
        median_words=_median_words(filled) if kind == "text" and len(filled) else None,
        examples=_examples(filled),
    )


def _is_filled(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_string(column.type):
        return pc.fill_null(pc.not_equal(pc.utf8_trim_whitespace(column), ""), False)
    if pa.types.is_floating(column.type):
        return pc.invert(pc.is_null(column, nan_is_null=True))
    if pa.types.is_list(column.type):
        return pc.fill_null(pc.greater(pc.list_value_length(column), 0), False)
    return pc.is_valid(column)


def _median_words(texts: pa.ChunkedArray) -> float:
    words = pc.add(pc.count_substring_regex(texts, r"\S\s+\S"), 1)
    return float(pc.approximate_median(words).as_py())


def _examples(filled: pa.ChunkedArray) -> list[str]:
    values: list[Any] = filled.slice(0, 20).to_pylist()
    return list(dict.fromkeys(cell_text(value, EXAMPLE_CHARACTERS) for value in values))[:EXAMPLES]
