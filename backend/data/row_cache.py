"""Rows on disk: one Arrow file with an index of the rows, written once and memory-mapped."""

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa

from backend.data.cache import DamagedCacheError, open_or_write
from backend.data.rows import Rows, SkippedRow
from backend.data.sources.source import Report

VERSION = 2
"""Part of every key: raise it when the same bytes are read differently."""


class RowWriter:
    """Appends rows of one schema to a folder, up to `max_rows`."""

    def __init__(self, folder: Path, schema: pa.Schema, max_rows: int | None) -> None:
        self.count = 0
        self.schema = schema
        self._left = max_rows
        self._skipped: list[tuple[int, int, str]] = []
        self._digest = hashlib.blake2b(repr(schema).encode(), digest_size=16)
        self._lines = (folder / "lines.bin").open("wb")
        self._file_index = (folder / "file_index.bin").open("wb")
        self._sink = pa.OSFile(str(folder / "table.arrow"), "wb")
        self._table = pa.ipc.new_file(self._sink, schema)

    @property
    def full(self) -> bool:
        """Whether `max_rows` is reached."""
        return self._left is not None and self.count >= self._left

    def append(self, batch: pa.RecordBatch, lines: np.ndarray, file_number: int) -> None:
        """Append rows of one file with their line numbers."""
        room = batch.num_rows if self._left is None else min(batch.num_rows, self._left - self.count)
        self._table.write_batch(batch.slice(0, room))
        self._lines.write(lines[:room].astype(np.int64).tobytes())
        self._file_index.write(np.full(room, file_number, dtype=np.int32).tobytes())
        self._digest.update(batch.slice(0, room).serialize())
        self.count += room

    def skip(self, file_number: int, line: int, reason: str) -> None:
        """Record a row that could not be used."""
        self._skipped.append((file_number, line, reason))

    def facts(self) -> dict[str, object]:
        """What a reader must know besides the rows."""
        return {"rows": self.count, "content": self._digest.hexdigest(), "skipped": self._skipped}

    def close(self) -> None:
        """Close the files."""
        self._table.close()
        self._sink.close()
        self._lines.close()
        self._file_index.close()


@contextmanager
def open_writer(folder: Path, schema: pa.Schema, max_rows: int | None) -> Iterator[RowWriter]:
    """A writer for a new folder; the facts are written at the end of the block."""
    writer = RowWriter(folder, schema, max_rows)
    try:
        yield writer
    finally:
        writer.close()
    sizes = {path.name: path.stat().st_size for path in folder.iterdir()}
    (folder / "facts.json").write_text(json.dumps({**writer.facts(), "sizes": sizes}), encoding="utf-8")


def load_cached_rows(
    cache: Path, key: str, files: tuple[str, ...], write: Callable[[Path], None], report: Report, continuous: bool
) -> Rows:
    """The rows cached under `key`; if there are none, `write` (see `writing`) reads them. `files` are display names."""
    return open_or_write(cache / key, lambda folder: _open(folder, key, files, continuous), write, report)


def _open(folder: Path, key: str, files: tuple[str, ...], continuous: bool) -> Rows:
    facts = read_facts(folder)
    table = map_table(folder / "table.arrow")
    lines = map_array(folder / "lines.bin", np.int64)
    file_index = map_array(folder / "file_index.bin", np.int32)
    if not (table.num_rows == len(lines) == len(file_index) == facts["rows"]):
        raise DamagedCacheError(str(folder))
    skipped = tuple(SkippedRow(f"{files[number]}:{line}", reason) for number, line, reason in facts["skipped"])
    return Rows(table, files, file_index, lines, key, skipped, continuous)


def read_facts(folder: Path) -> dict:
    """`facts.json` of a folder whose file sizes match it. Raises DamagedCacheError."""
    try:
        facts = json.loads((folder / "facts.json").read_text(encoding="utf-8"))
        whole = all((folder / name).stat().st_size == size for name, size in facts["sizes"].items())
    except (OSError, ValueError, KeyError) as error:
        raise DamagedCacheError(str(folder)) from error
    if not whole:
        raise DamagedCacheError(str(folder))
    return facts


def map_table(path: Path) -> pa.Table:
    """The table in an Arrow file, memory-mapped. Raises DamagedCacheError."""
    try:
        table = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
        table.validate()
    except (pa.ArrowException, OSError) as error:
        raise DamagedCacheError(str(path)) from error
    return table


def map_array(path: Path, kind: type[np.generic]) -> np.ndarray:
    """The numbers in a file, memory-mapped read-only."""
    if path.stat().st_size == 0:
        return np.zeros(0, dtype=kind)  # nothing can be mapped
    return np.memmap(path, dtype=kind, mode="r")
