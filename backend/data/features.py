"""Tokenized features: an Arrow cache that is written once and memory-mapped, with fast access to its columns.

Columns: `row`, `part` (int32), `input_ids` (list of int32), where the tokenizer makes them `token_type_ids` (list of
int8), where known `labels` (int64 or float32 per row, or a list of int32), or `has_label` (a list of int8 of the same
length in every row, -100 unknown), and whatever else a head needs.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from backend.contract.errors import InputError
from backend.data.cache import DamagedCacheError, open_or_write
from backend.data.fingerprint import fingerprint
from backend.data.row_cache import map_array, map_table, read_facts
from backend.data.sources.source import Report

VERSION = 1
_BATCH_ROWS = 1 << 16
_BATCH_BYTES = 1 << 25
_TYPES = {
    "row": pa.int32(),
    "part": pa.int32(),
    "input_ids": pa.list_(pa.int32()),
    "token_type_ids": pa.list_(pa.int8()),
}


@dataclass(frozen=True)
class Features:
    """All features of one split, ordered by row and part."""

    table: pa.Table
    lengths: np.ndarray  # (features,) int32, tokens of each
    fingerprint: str
    """Changes with the data, the tokenizer and the task's settings."""
    cached: bool = False
    """Made before; nothing was tokenised now."""

    def __len__(self) -> int:
        return self.table.num_rows

    @cached_property
    def lists(self) -> dict[str, "ListColumn"]:
        """The columns that hold a list of numbers for each feature, by name."""
        return {
            field.name: ListColumn(self.table[field.name])
            for field in self.table.schema
            if pa.types.is_list(field.type) and _is_number(field.type.value_type)
        }

    @cached_property
    def scalars(self) -> dict[str, np.ndarray]:
        """The columns that hold one number for each feature, by name."""
        return {
            field.name: self.table[field.name].to_numpy()
            for field in self.table.schema
            if _is_number(field.type)
        }  # fmt: skip

    @cached_property
    def vectors(self) -> dict[str, np.ndarray]:
        """The columns that hold as many numbers for every feature, by name, each (features, numbers)."""
        return {
            field.name: self.table[field.name].combine_chunks().flatten().to_numpy().reshape(-1, field.type.list_size)
            for field in self.table.schema
            if pa.types.is_fixed_size_list(field.type)
        }


class ListColumn:
    """The lists of a column as views into the file, looked up by number without going through Arrow."""

    def __init__(self, column: pa.ChunkedArray) -> None:
        chunks = [chunk for chunk in column.chunks if len(chunk)]
        self._starts = np.cumsum([0] + [len(chunk) for chunk in chunks])[:-1]
        self._offsets = [chunk.offsets.to_numpy() for chunk in chunks]
        self._values = [chunk.values.to_numpy(zero_copy_only=True) for chunk in chunks]

    @cached_property
    def lengths(self) -> np.ndarray:
        """(features,) int64, the length of each list."""
        return np.concatenate([np.zeros(0, np.int64), *(np.diff(offsets) for offsets in self._offsets)])

    def take(self, indices: np.ndarray) -> list[np.ndarray]:
        """The lists of these features, without copying their values."""
        chunks = np.searchsorted(self._starts, indices, side="right") - 1
        local = indices - self._starts[chunks]
        found = []
        for chunk, number in zip(chunks.tolist(), local.tolist(), strict=True):
            offsets = self._offsets[chunk]
            found.append(self._values[chunk][offsets[number] : offsets[number + 1]])
        return found


def features(
    encode: Callable[[], Iterator[pa.RecordBatch]],
    key: Mapping[str, object],
    cache: Path,
    report: Report,
    total_rows: int,
) -> Features:
    """The features that `encode` makes, from the cache if `key` (plain JSON values) was encoded before."""
    name = name_of(key)
    written: list[Path] = []

    def write(folder: Path) -> None:
        written.append(folder)
        _write(folder, encode(), lambda row: report(row, total_rows, "rows"))

    found = open_or_write(cache / name, lambda folder: _open(folder, name), write, report)
    return replace(found, cached=not written)


def are_made(name: str, cache: Path) -> bool:
    """Whether the cache has features of this name; they are only checked for completeness when opened."""
    return (cache / name).is_dir()


def name_of(key: Mapping[str, object]) -> str:
    """The name of this key's features in the cache."""
    return fingerprint("features", VERSION, dict(key))


def load_into_memory(batches: Iterator[pa.RecordBatch]) -> Features:
    """The features of a few one-off rows; nothing is written. Raises InputError if there are none."""
    kept = [_cast_columns(batch) for batch in batches if batch.num_rows]
    if not kept:
        raise InputError("the tokenizer finds no tokens in this text; enter at least one word that it knows")
    table = pa.Table.from_batches(kept).combine_chunks()
    lengths = pc.list_value_length(table["input_ids"]).to_numpy().astype(np.int32)
    return Features(table, lengths, "typed")


def _open(folder: Path, name: str) -> Features:
    facts = read_facts(folder)
    table, lengths = map_table(folder / "table.arrow"), map_array(folder / "lengths.bin", np.int32)
    if not (table.num_rows == len(lengths) == facts["features"]):
        raise DamagedCacheError(str(folder))
    return Features(table, lengths, name)


def _write(folder: Path, batches: Iterator[pa.RecordBatch], encoded: Callable[[int], None]) -> None:
    count, writer = 0, None
    with pa.OSFile(str(folder / "table.arrow"), "wb") as sink, (folder / "lengths.bin").open("wb") as lengths:
        for batch in _merge_batches(_report_progress(batches, encoded)):
            writer = writer or pa.ipc.new_file(sink, batch.schema)
            writer.write_batch(batch)
            lengths.write(pc.list_value_length(batch["input_ids"]).to_numpy().astype(np.int32).tobytes())
            count += batch.num_rows
        if writer is None:
            raise InputError("the data contains no text: every row is empty; check the columns")
        writer.close()
    sizes = {path.name: path.stat().st_size for path in folder.iterdir()}
    (folder / "facts.json").write_text(json.dumps({"features": count, "sizes": sizes}), encoding="utf-8")


def _report_progress(batches: Iterator[pa.RecordBatch], encoded: Callable[[int], None]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if batch.num_rows:
            yield _cast_columns(batch)
            encoded(batch["row"][-1].as_py() + 1)


def _cast_columns(batch: pa.RecordBatch) -> pa.RecordBatch:
    types = {name: _TYPES.get(name, batch.schema.field(name).type) for name in batch.schema.names}
    return batch.cast(pa.schema(list(types.items())))


def _merge_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same features in fewer batches, which limits the number of views for ten million of them."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(one.num_rows for one in waiting) >= _BATCH_ROWS or sum(one.nbytes for one in waiting) >= _BATCH_BYTES:
            yield from pa.Table.from_batches(waiting).combine_chunks().to_batches()
            waiting = []
    if waiting:
        yield from pa.Table.from_batches(waiting).combine_chunks().to_batches()


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind)
