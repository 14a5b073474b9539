"""The answer of `tokenize` as a table, whether it came as JSON or as an Arrow file."""

import weakref
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from app.core.backend_messages import translate_messages
from app.core.text.token_table import SHOWN_AT_ONCE, TokenTable
from app.services import text_file
from app.services.backend_client import ArrowAnswer
from backend.contract.arrow_numbers import numbers
from backend.contract.messages import learn
from backend.contract.tokens.tokens import TokenColumns, Tokens

NAMES = TokenColumns.__struct_fields__


def token_table(answer: Tokens | ArrowAnswer) -> TokenTable:
    """The tokens of an answer; an Arrow file is deleted."""
    if isinstance(answer, ArrowAnswer):
        return _read(Path(answer.path))
    return TokenTable(answer, {name: np.array(getattr(answer.columns, name), np.int32) for name in NAMES})


def part_of(table: TokenTable, first: int) -> TokenTable:
    """As many tokens as are shown at once, from `first` on; for a file with their text. Raises OSError."""
    last = min(len(table), first + SHOWN_AT_ONCE)
    if table.answer.file and len(table):
        return table.part(first, last, _text_of_file(table, first, last))
    return table.part(first, last) if len(table) > SHOWN_AT_ONCE else table


def _text_of_file(table: TokenTable, first: int, last: int) -> str:
    begin, end = table.stretch(first, last, "byte_")
    skip = table.answer.file_skip
    return text_file.read_stretch(Path(table.answer.file), skip + begin, skip + end)


def _read(path: Path) -> TokenTable:
    import pyarrow as pa  # only a text of many thousand tokens needs it

    source = pa.memory_map(str(path))
    file = pa.ipc.open_file(source)
    table, metadata = file.read_all(), file.get_batch_with_custom_metadata(file.num_record_batches - 1).custom_metadata
    learn(msgspec.json.decode(metadata.get(b"messages", b"{}")))
    rest = translate_messages(msgspec.json.decode(metadata[b"answer"], type=Tokens))
    made = TokenTable(rest, {name: _column(table[name]) for name in NAMES})
    weakref.finalize(made, _forget, source, path)
    with suppress(OSError):  # where an open file cannot be deleted, it goes with the table
        path.unlink()
    return made


def _column(column: Any) -> Any:
    is_long = sum(len(chunk) > 0 for chunk in column.chunks) > 1 and len(column) > SHOWN_AT_ONCE
    return _Long(column) if is_long else _Long(column)[:]


class _Long:
    """A column that came in many chunks: converted to an array only where it is sliced."""

    def __init__(self, column: Any) -> None:
        self._column = column

    def __len__(self) -> int:
        return len(self._column)

    def __getitem__(self, place: Any) -> Any:
        if not isinstance(place, slice):
            return self._column[int(place)].as_py()
        first, last, _ = place.indices(len(self))
        return numbers(self._column.slice(first, max(0, last - first)))


def _forget(source: Any, path: Path) -> None:
    source.close()
    path.unlink(missing_ok=True)


def warm_up() -> None:
    """Load the reader of long answers now, so that the first long answer does not wait for it."""
    import pyarrow.ipc  # noqa: F401  only long answers need it
