"""Owns the Arrow file that stands for an answer above 1 MB: its longest list as a table, the rest in the metadata."""

import os
import tempfile
from typing import Any

import msgspec

FIELD, REST = b"field", b"answer"
"""Metadata of the table: the name of the answer's list, and the answer without it as JSON."""


def written(answer: msgspec.Struct) -> str:
    """Write an answer that has a list; the path of the file, which the reader deletes."""
    import pyarrow as pa

    values = msgspec.to_builtins(answer)
    lists = {name: value for name, value in values.items() if isinstance(value, list)}
    field = max(lists, key=lambda name: len(lists[name]))
    rows = lists[field]
    names = _names(answer, field)
    columns = list(zip(*rows, strict=True)) if rows and isinstance(rows[0], list) else [rows]
    table = pa.table(
        {name: list(column) for name, column in zip(names or map(str, range(len(columns))), columns, strict=True)}
    )
    rest = {name: value for name, value in values.items() if name != field}
    table = table.replace_schema_metadata({FIELD: field.encode(), REST: msgspec.json.encode(rest)})
    descriptor, path = tempfile.mkstemp(prefix="burnish-", suffix=".arrow")
    with os.fdopen(descriptor, "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    return path


def _names(answer: Any, field: str) -> list[str]:
    first = getattr(answer, field)[0]
    return list(first.__struct_fields__) if isinstance(first, msgspec.Struct) else []
