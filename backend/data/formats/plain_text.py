"""Reads plain text: one row per line in the column `text`, including blank lines, which separate paragraphs."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa

from backend.contract.errors import InputError
from backend.data.formats.reader import PIECE_ROWS, Options, RowChunk
from backend.data.formats.text_file import TextFile

_SCHEMA = pa.schema([("text", pa.string())])


class PlainText:
    """Running text; line ends are removed and belong between the rows."""

    def __init__(self, path: Path, options: Options) -> None:
        self.skipped: list[tuple[int, str]] = []
        self._text = TextFile(path, options.encoding)
        if not self._text.head().strip() and not any(line.strip() for line in self._text.lines(None)):
            raise InputError("{name} is empty; use a file that contains text", name=path.name)

    def schema(self) -> pa.Schema:
        """The one column."""
        return _SCHEMA

    def pieces(self, schema: pa.Schema) -> Iterator[RowChunk]:
        """The lines in order."""
        lines: list[str] = []
        first = 1
        with closing(self._text.lines(None)) as content:
            for line in content:
                lines.append(line.removesuffix("\n"))
                if len(lines) == PIECE_ROWS:
                    yield self._piece(lines, first, schema)
                    first, lines = first + len(lines), []
        if lines:
            yield self._piece(lines, first, schema)

    def _piece(self, lines: list[str], first: int, schema: pa.Schema) -> RowChunk:
        batch = pa.record_batch([pa.array(lines, pa.string())], schema=schema)
        return RowChunk(batch, np.arange(first, first + len(lines), dtype=np.int64), self._text.position)
