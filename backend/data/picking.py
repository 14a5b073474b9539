"""Owns picking rows out of a table: without joining its columns, and on disk where the picked rows are many.

Joining would copy a whole memory-mapped column, and fails above 2 GB of text.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa

from backend.contract.places import cache_folder

IN_MEMORY_BYTES = 1 << 28
"""Picked rows up to about this size are kept in memory."""


def pick(table: pa.Table, indices: np.ndarray) -> pa.Table:
    """These rows in this order; a view where they lie together."""
    if len(indices) == 0 or bool(np.all(np.diff(indices) == 1)):
        return table.slice(int(indices[0]) if len(indices) else 0, len(indices))
    if not bool(np.all(np.diff(indices) > 0)):
        return table.take(pa.array(indices))
    picked = _by_batch(table, indices)
    if table.nbytes * len(indices) // table.num_rows <= IN_MEMORY_BYTES:
        return pa.Table.from_batches(list(picked), schema=table.schema)
    return _on_disk(picked, table.schema)


def _by_batch(table: pa.Table, indices: np.ndarray) -> Iterator[pa.RecordBatch]:
    start = first = 0
    for batch in table.to_batches():
        cut = int(np.searchsorted(indices, first + batch.num_rows))
        if cut > start:
            yield batch.take(pa.array(indices[start:cut] - first))
        start, first = cut, first + batch.num_rows


def _on_disk(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    # In the cache folder and not in the system's folder for such files, which often lies in memory.
    cache_folder().mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(suffix=".arrow", dir=cache_folder())
    os.close(descriptor)
    try:
        with pa.OSFile(name, "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
        return pa.ipc.open_file(pa.memory_map(name)).read_all()
    finally:
        with suppress(PermissionError):  # Windows keeps a mapped file; elsewhere it goes with its last reader
            Path(name).unlink()
