"""Summarizes columns: the kind of their values, example cells as text, and label frequencies."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from backend.contract.messages import message
from backend.contract.rpc.data import ColumnSummary

LOOKED_AT = 20_000
"""Rows, so that a look takes no longer at large data."""
LONGEST = 2_000
"""Characters of a cell that are looked at."""
EXAMPLES, EXAMPLE_CHARACTERS = 3, 60

MAX_LABELS = 200
LABEL_CHARACTERS = 200

MAX_MEMBERS = 200
"""Of a list; what comes after is not read, let alone shown."""


def summarise_columns(table: pa.Table) -> dict[str, ColumnSummary]:
    """Column → a summary of its first rows."""
    first = table.slice(0, LOOKED_AT)
    return {name: _summarise_column(name, first[name]) for name in first.column_names}


def _summarise_column(name: str, column: pa.ChunkedArray) -> ColumnSummary:
    kind = kind_of(column.type)
    column = shorten_texts(column, LONGEST)
    filled = column.filter(_is_filled(column))
    flat = not pa.types.is_nested(column.type)
    return ColumnSummary(
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


def shorten_texts(column: pa.ChunkedArray, most: int) -> pa.ChunkedArray:
    """Truncate texts to this many characters before they become Python strings; other values are unchanged."""
    return pc.utf8_slice_codeunits(column, 0, most) if pa.types.is_string(column.type) else column


def kind_of(kind: pa.DataType) -> str:
    """The kind of a column's values in words, as `ColumnSummary.kind` lists them."""
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "text"
    if pa.types.is_boolean(kind):
        return message("true or false")
    if pa.types.is_integer(kind):
        return message("whole numbers")
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "numbers"
    if pa.types.is_list(kind):
        inner = kind_of(kind.value_type)
        return {
            "text": message("list of text"),
            "whole numbers": message("list of numbers"),
            "numbers": message("list of numbers"),
        }.get(inner, "list")
    return "structure" if pa.types.is_struct(kind) or pa.types.is_map(kind) else "other"


def count_labels(column: pa.ChunkedArray, most: int = MAX_LABELS) -> dict[str, int]:
    """Label → rows (for lists, members), most frequent first; empty cells are not labels."""
    while pa.types.is_list(column.type):
        column = pc.list_flatten(column)
    if pa.types.is_nested(column.type):
        return {}
    counts: dict[str, int] = {}
    for one in pc.value_counts(column):
        value, count = one["values"].as_py(), one["counts"].as_py()
        label = cell_text(value, LABEL_CHARACTERS).strip()
        if not label:
            continue  # a row without a label, which is counted among those that cannot be used
        counts[label] = counts.get(label, 0) + count
        if len(counts) > 50 * most:
            return {}  # these are not labels, and are not shown
    return dict(sorted(counts.items(), key=lambda each: -each[1])[:most])


def cell_text(value: Any, most: int) -> str:
    """At most this many characters of a value; empty for a missing one."""
    text = value if isinstance(value, str) else _text(value)
    return text if len(text) <= most else f"{text[:most]}…"


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, dict):
        return _mapping(value)
    if isinstance(value, list | tuple):
        return _list(list(value[:MAX_MEMBERS]))
    return str(value)


def _list(values: list[Any]) -> str:
    if any(isinstance(value, dict) for value in values):
        return "\n".join(_text(value) for value in values)
    # Words stay one sentence; texts that hold spaces themselves are kept apart.
    apart = any(isinstance(value, str) and " " in value for value in values)
    return (" | " if apart else " ").join(_text(value) for value in values)


def _mapping(value: dict[str, Any]) -> str:
    if {"role", "content"} <= value.keys():
        return f"{value['role']}: {_text(value['content'])}"
    if {"text", "answer_start"} <= value.keys():
        return _answers(value)
    return ", ".join(f"{name}: {_text(inner)}" for name, inner in value.items() if inner is not None)


def _answers(value: dict[str, Any]) -> str:
    """SQuAD answers: each distinct text once, with its start position."""
    texts, starts = value["text"], value["answer_start"]
    pairs = (
        list(zip(texts, starts, strict=False))
        if isinstance(texts, list) and isinstance(starts, list)
        else [(texts, starts)]
    )
    answers = dict.fromkeys(f"{text} (at {start})" for text, start in pairs if text is not None)
    return " | ".join(answers)
