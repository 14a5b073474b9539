"""Reads Parquet and Arrow files: typed columns, nulls stay null, and labels get their stored names."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.contract.safe_files import LARGEST_RATIO, max_unpacked
from backend.data.formats.class_labels import class_names, name_labels, named_field
from backend.data.formats.reader import PIECE_ROWS, Options, RowChunk, check_width, first_repeated


class Columnar:
    """Typed batches of one file, converted to plain types; `count` is the total number of rows."""

    def __init__(
        self, path: Path, stored: pa.Schema, batches: Callable[[], Iterator[pa.RecordBatch]], count: int
    ) -> None:
        check_width(path.name, stored)
        self.skipped: list[tuple[int, str]] = []
        self._path, self._batches, self._count = path, batches, count
        self._names = class_names(stored)
        self._schema = plain_schema(stored)
        twice = first_repeated(stored.names)
        if twice is not None:
            raise InputError("{name} has two columns {twice}; rename one of them", name=path.name, twice=repr(twice))

    def schema(self) -> pa.Schema:
        """The stored columns in plain types."""
        return self._schema

    def pieces(self, schema: pa.Schema) -> Iterator[RowChunk]:
        """The rows in order, numbered from 1."""
        size, done, unpacked = self._path.stat().st_size, 0, 0
        try:
            for batch in self._batches():
                lines = np.arange(done + 1, done + 1 + batch.num_rows, dtype=np.int64)
                done += batch.num_rows
                plain = plain_batch(batch, self._names, schema)
                unpacked += plain.nbytes
                if unpacked > max_unpacked(size):  # one long text, stored once, may occur in every row
                    raise InputError(
                        "{name} unpacks to more than {largest_ratio} times its size; save it as JSON Lines if "
                        "you trust it",
                        name=self._path.name,
                        largest_ratio=LARGEST_RATIO,
                    )
                yield RowChunk(plain, lines, size * done // max(1, self._count))
        except (pa.ArrowException, OSError) as error:
            raise InputError(_describe_damage(self._path, error)) from None


def parquet(path: Path, options: Options) -> Columnar:
    """A Parquet file, decoded some thousand rows at a time."""
    try:
        file = pq.ParquetFile(path, memory_map=True)
    except (pa.ArrowException, OSError) as error:
        raise InputError(_describe_damage(path, error)) from None
    batches = partial(file.iter_batches, batch_size=PIECE_ROWS)
    return Columnar(path, file.schema_arrow, batches, file.metadata.num_rows)


def arrow(path: Path, options: Options) -> Columnar:
    """An Arrow IPC file or stream, memory-mapped."""
    try:
        reader = _ipc_reader(path)
        check_width(path.name, reader.schema)
        table = reader.read_all()
    except (pa.ArrowException, OSError) as error:
        raise InputError(_describe_damage(path, error)) from None
    return Columnar(path, table.schema, lambda: _validated_batches(table), table.num_rows)


def plain_schema(stored: pa.Schema) -> pa.Schema:
    """The same columns without dictionaries, views and large offsets, named labels as text, metadata dropped."""
    names = class_names(stored)
    return pa.schema(
        [
            named_field(field, names[field.name]) if field.name in names else (field.name, _plain_type(field.type))
            for field in stored
        ]
    )


def plain_batch(batch: pa.RecordBatch, names: dict[str, list[str]], schema: pa.Schema) -> pa.RecordBatch:
    """The batch's columns, with named labels, in the schema's order and types."""
    columns = []
    for field in schema:
        column = batch.column(field.name)
        column = column.dictionary_decode() if isinstance(column, pa.DictionaryArray) else column
        column = name_labels(column, names[field.name]) if field.name in names else column
        columns.append(column if column.type == field.type else column.cast(field.type))
    return pa.record_batch(columns, schema=schema)


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return _plain_type(kind.value_type)
    if isinstance(kind, pa.BaseExtensionType):
        return _plain_type(kind.storage_type)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(_plain_type(kind.value_type))
    return kind


def _ipc_reader(path: Path) -> pa.ipc.RecordBatchFileReader | pa.ipc.RecordBatchStreamReader:
    source = pa.memory_map(str(path))
    try:
        return pa.ipc.open_file(source)
    except pa.ArrowInvalid:
        source.seek(0)
        return pa.ipc.open_stream(source)


def _validated_batches(table: pa.Table) -> Iterator[pa.RecordBatch]:
    """Yield a file's batches after validating their offsets, which Arrow would otherwise trust.

    Raises ArrowException.
    """
    for batch in table.to_batches(max_chunksize=PIECE_ROWS):
        batch.validate(full=True)
        yield batch


def _describe_damage(path: Path, error: Exception) -> str:
    return message(
        "{name} cannot be read and seems to be damaged or truncated ({error}); download or copy it again",
        name=path.name,
        error=str(error).splitlines()[0],
    )
