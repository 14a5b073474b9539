"""Owns the tokens of an answer to `tokenize` as columns, whether they came as JSON or as an Arrow file."""

import weakref
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from app.core.token_table import TokenTable
from app.services.backend_client import ArrowAnswer
from backend.contract.tokens import TokenColumns, Tokens

NAMES = TokenColumns.__struct_fields__


def token_table(answer: Tokens | ArrowAnswer) -> TokenTable:
    """The tokens of an answer; an Arrow file is deleted."""
    if isinstance(answer, ArrowAnswer):
        return _read(Path(answer.path))
    return TokenTable(answer, {name: np.array(getattr(answer.columns, name), np.int32) for name in NAMES})


def _read(path: Path) -> TokenTable:
    import pyarrow as pa  # only a text of many thousand tokens needs it

    source = pa.memory_map(str(path))
    file = pa.ipc.open_file(source)
    table, metadata = file.read_all(), file.schema.metadata
    if metadata is None:  # written block by block: what was counted stands at the end
        metadata = file.get_batch_with_custom_metadata(file.num_record_batches - 1).custom_metadata
    rest = msgspec.json.decode(metadata[b"answer"], type=Tokens)
    made = TokenTable(rest, {name: _array(table[name]) for name in NAMES})
    weakref.finalize(made, _forget, source, path)
    with suppress(OSError):  # where an open file cannot be deleted, it goes with the table
        path.unlink()
    return made


def _array(column: Any) -> np.ndarray:
    # Truth values lie there as bits, which cannot be taken as they are.
    return column.chunk(0).to_numpy(zero_copy_only=False) if column.num_chunks == 1 else column.to_numpy()


def _forget(source: Any, path: Path) -> None:
    source.close()
    path.unlink(missing_ok=True)
