"""Owns CSV and TSV: text in every column, "None" and "NA" included, an empty cell an empty string."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from backend.contract.errors import InputError
from backend.data.formats import dialect
from backend.data.formats.reader import PIECE_BYTES, PIECE_ROWS, Options, Piece, check_width, first_repeated
from backend.data.formats.text_file import TextFile


class Delimited:
    """A file with a header, or without one if its columns' `names` are given.

    Rows whose number of cells differs from the header's are skipped.
    """

    def __init__(
        self, path: Path, options: Options, usual_delimiter: str = ",", names: tuple[str, ...] | None = None
    ) -> None:
        self._begins_with_header = names is None
        self.skipped: list[tuple[int, str]] = []
        self._text = TextFile(path, options.encoding)
        self._dialect = dialect.dialect_of(self._text, usual_delimiter, options.delimiter, options.quoting)
        first = next((row for _, row in dialect.cells(self._text, self._dialect)), None)
        self._header = list(names) if names and first is not None else first
        self._check_header(options)

    def schema(self) -> pa.Schema:
        """The header's names, all text."""
        return pa.schema([(name, pa.string()) for name in self._header or []])

    def pieces(self, schema: pa.Schema) -> Iterator[Piece]:
        """The rows below the header in order."""
        rows: list[list[str]] = []
        lines: list[int] = []
        start = 0
        for line, row in self._matching_rows():
            rows.append(row)
            lines.append(line)
            # Asking for the position costs as much as reading a row, so only now and then.
            if len(rows) % 256 == 0 and (len(rows) >= PIECE_ROWS or self._text.position - start > PIECE_BYTES):
                yield self._piece(rows, lines, schema)
                rows, lines, start = [], [], self._text.position
        if rows:
            yield self._piece(rows, lines, schema)

    def _matching_rows(self) -> Iterator[tuple[int, list[str]]]:
        rows = dialect.cells(self._text, self._dialect)
        if self._begins_with_header:
            next(rows)
        width = len(self._header or [])
        for line, row in rows:
            if len(row) == width:
                yield line, row
            else:
                self.skipped.append((line, f"{_cells(len(row))} where {self._expected(width)}"))

    def _expected(self, width: int) -> str:
        return f"the header has {width}" if self._begins_with_header else f"a row has {width}"

    def _piece(self, rows: list[list[str]], lines: list[int], schema: pa.Schema) -> Piece:
        by_name = dict(zip(self._header or [], zip(*rows, strict=True), strict=True))
        columns = [pa.array(by_name[field.name], pa.string()) for field in schema]
        batch = pa.record_batch(columns, schema=schema)
        return Piece(batch, np.array(lines, dtype=np.int64), self._text.position)

    def _check_header(self, options: Options) -> None:
        name, header = self._text.name, self._header
        if header is None:
            raise InputError(f"{name} is empty; give a file with a header line and rows")
        check_width(name, header)
        if len(header) == 1:
            self._check_single_column(header[0], options)
        twice = first_repeated(header)
        if twice is not None:
            shown = repr(twice) if twice else "without a name"
            raise InputError(f"{name} has two columns {shown}; rename one of them in its first line")

    def _check_single_column(self, column: str, options: Options) -> None:
        other = dialect.better_delimiter(self._text, self._dialect.delimiter)
        if other is not None:
            way_out = "leave data.delimiter empty" if options.delimiter else f"set data.delimiter to {other!r}"
            raise InputError(
                f"{self._text.name} has only the one column {column!r} when it is cut at "
                f"{dialect.name_of(self._dialect.delimiter)}, but its rows hold {dialect.name_of(other)}; {way_out}"
            )


def is_one_column_with_commas(path: Path) -> bool:
    """Whether the first line has no delimiter and the lines below hold commas that no quotes enclose."""
    text = TextFile(path)
    lines = [line for line in text.head().split("\n") if line]
    if not lines or any(sign in lines[0] for sign in ",;\t|") or any("\t" in line for line in lines):
        return False
    rows = [row for row in dialect.first_rows(text, ",")[1:] if row]
    return sum(len(row) > 1 for row in rows) > len(rows) / 10


def _cells(count: int) -> str:
    return "1 cell" if count == 1 else f"{count} cells"
