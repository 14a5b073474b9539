"""Replaces integer labels with the names that `datasets` stores beside them.

They are in the Arrow schema's metadata under `huggingface`, in Parquet and in Arrow files alike. -1 marks an unknown
label (hidden test labels of GLUE on the hub), which becomes null. The order of the names stays with the column: binary
F1 is computed for the second of two.
"""

import json
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_ORDER = b"labels"


def class_names(schema: pa.Schema) -> dict[str, list[str]]:
    """Column → its label names in id order, for columns of labels and of lists of labels."""
    try:
        features = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
    except (KeyError, ValueError, TypeError):
        return {}
    found = {name: _names(features.get(name)) for name in schema.names}
    return {name: names for name, names in found.items() if names}


def _names(feature: Any) -> list[str] | None:
    if isinstance(feature, list) and len(feature) == 1:  # how older versions write a list
        feature = feature[0]
    elif isinstance(feature, dict) and feature.get("_type") in {"Sequence", "LargeList", "List"}:
        feature = feature.get("feature")
    if isinstance(feature, dict) and feature.get("_type") == "ClassLabel":
        return feature.get("names")
    return None


def named_field(field: pa.Field, names: list[str]) -> pa.Field:
    """The column after its labels are named; it keeps their order."""
    return pa.field(field.name, named_type(field.type), metadata={_ORDER: json.dumps(names)})


def names_in_order(field: pa.Field) -> list[str]:
    """All label names of a column in id order; none if the labels were not integers."""
    return json.loads((field.metadata or {}).get(_ORDER, b"[]"))


def named_type(kind: pa.DataType) -> pa.DataType:
    """The type of a column after its labels are named."""
    return pa.list_(pa.string()) if _is_list(kind) else pa.string()


def name_labels(column: pa.Array, names: list[str]) -> pa.Array:
    """Replace label ids with names; an id without a name becomes null."""
    if _is_list(column.type):
        filled = column.fill_null([]) if column.null_count else column
        values = _name_values(filled.flatten(), names)
        lists = pa.ListArray.from_arrays(_offsets(filled), values)
        return pc.if_else(column.is_valid(), lists, pa.scalar(None, lists.type)) if column.null_count else lists
    return _name_values(column, names)


def _name_values(numbers: pa.Array, names: list[str]) -> pa.Array:
    known = pc.and_(pc.greater_equal(numbers, 0), pc.less(numbers, len(names)))
    return pa.array(names, pa.string()).take(pc.if_else(known, numbers, None).cast(pa.int64()))


def _offsets(lists: pa.Array) -> pa.Array:
    lengths = pc.list_value_length(lists).to_numpy(zero_copy_only=False)
    return pa.array([0, *lengths.cumsum().tolist()], pa.int32())


def _is_list(kind: pa.DataType) -> bool:
    return pa.types.is_list(kind) or pa.types.is_large_list(kind)
