"""Owns how often each label occurs in a column, counted without a Python object per row."""

import pyarrow as pa
import pyarrow.compute as pc

from backend.data.cells import cell_text

MAX_LABELS = 200
LABEL_CHARACTERS = 200


def counted_labels(column: pa.ChunkedArray, most: int = MAX_LABELS) -> dict[str, int]:
    """Label → rows, or of lists the members, the most frequent first; empty cells are no label."""
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
            return {}  # these are no labels, and nobody reads them
    return dict(sorted(counts.items(), key=lambda each: -each[1])[:most])
