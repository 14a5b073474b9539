"""Reads CSV and TSV: text in every column, including "None" and "NA"; an empty cell is an empty string.

CSV: the delimiter is the comma unless semicolons, tabs or bars give each of the first rows the same number of
cells, more than one, and commas do not. Cells can be quoted.

TSV: many such files (GLUE's among them) contain stray quotes that belong to the text, so quoting is off if the
lines then have the same number of cells. Two things turn it on: lines that only agree with it (a
line break inside a cell), and a file in which every cell with a quote is quoted and doubles the quotes inside.
"""

import csv
import re
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa

from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.data.formats.reader import PIECE_BYTES, PIECE_ROWS, Options, RowChunk, check_width, first_repeated
from backend.data.formats.text_file import TextFile

_DELIMITERS = (",", ";", "\t", "|")
_SAMPLE_ROWS = 50
_LONGEST_NAME = 40
_SAMPLE_CHARACTERS = 1 << 18
_FIELD_LIMIT = 1 << 28  # characters; the standard library's 131,072 would refuse long documents
_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}


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
        self._dialect = dialect_of(self._text, usual_delimiter, options.delimiter, options.quoting)
        first = next((row for _, row in cells(self._text, self._dialect)), None)
        self._header = list(names) if names and first is not None else first
        self._check_header(options)

    def schema(self) -> pa.Schema:
        """The header's names, all text."""
        return pa.schema([(name, pa.string()) for name in self._header or []])

    def pieces(self, schema: pa.Schema) -> Iterator[RowChunk]:
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
        rows = cells(self._text, self._dialect)
        if self._begins_with_header:
            next(rows)
        width = len(self._header or [])
        for line, row in rows:
            if len(row) == width:
                yield line, row
            else:
                self.skipped.append(
                    (
                        line,
                        message("{row}, but {expected}", row=_cells(len(row)), expected=self._describe_expected(width)),
                    )
                )

    def _describe_expected(self, width: int) -> str:
        return (
            message("the header has {width}", width=width)
            if self._begins_with_header
            else message("a row has {width}", width=width)
        )

    def _piece(self, rows: list[list[str]], lines: list[int], schema: pa.Schema) -> RowChunk:
        by_name = dict(zip(self._header or [], zip(*rows, strict=True), strict=True))
        columns = [pa.array(by_name[field.name], pa.string()) for field in schema]
        batch = pa.record_batch(columns, schema=schema)
        return RowChunk(batch, np.array(lines, dtype=np.int64), self._text.position)

    def _check_header(self, options: Options) -> None:
        name, header = self._text.name, self._header
        if header is None:
            raise InputError("{name} is empty; use a file with a header line and rows", name=name)
        check_width(name, header)
        if len(header) == 1:
            self._check_single_column(header[0], options)
        twice = first_repeated(header)
        if twice is not None:
            duplicate = repr(twice) if twice else message("without a name")
            raise InputError(
                "{name} has two columns {column}; rename one of them in its first line", name=name, column=duplicate
            )

    def _check_single_column(self, column: str, options: Options) -> None:
        other = better_delimiter(self._text, self._dialect.delimiter)
        if other is not None:
            way_out = (
                message("leave data.delimiter empty")
                if options.delimiter
                else message("set data.delimiter to {other}", other=repr(other))
            )
            raise InputError(
                "{name} has only one column, {column}, when split at {delimiter}, but its rows contain "
                "{other}; {way_out}",
                name=self._text.name,
                column=repr(column),
                delimiter=name_of(self._dialect.delimiter),
                other=name_of(other),
                way_out=way_out,
            )


def is_one_column_with_commas(path: Path) -> bool:
    """Whether the first line has no delimiter and the lines below contain unquoted commas."""
    text = TextFile(path)
    lines = [line for line in text.head().split("\n") if line]
    if not lines or any(sign in lines[0] for sign in ",;\t|") or any("\t" in line for line in lines):
        return False
    rows = [row for row in first_rows(text, ",")[1:] if row]
    return sum(len(row) > 1 for row in rows) > len(rows) / 10


def _cells(count: int) -> str:
    return message("1 cell") if count == 1 else message("{count} cells", count=count)


@dataclass(frozen=True)
class Dialect:
    """`quoted`: cells may be quoted, and may then contain delimiters, line breaks and doubled quotes."""

    delimiter: str
    quoted: bool


def cells(text: TextFile, dialect: Dialect) -> Iterator[tuple[int, list[str]]]:
    """Every row's first line number and its cells; blank lines are skipped. Raises InputError for unbalanced quotes."""
    return _quoted_cells(text, dialect) if dialect.quoted else _plain_cells(text, dialect)


def _plain_cells(text: TextFile, dialect: Dialect) -> Iterator[tuple[int, list[str]]]:
    # Only \n ends a line here: a stray \r inside a sentence must not cut a row in two.
    with closing(text.lines("\n")) as lines:
        for number, line in enumerate(lines, 1):
            content = line.removesuffix("\n").removesuffix("\r")
            if content:
                yield number, content.split(dialect.delimiter)


def _quoted_cells(text: TextFile, dialect: Dialect) -> Iterator[tuple[int, list[str]]]:
    with closing(text.lines("")) as lines:
        reader, first = _csv_reader(lines, dialect.delimiter), 1
        try:
            for row in reader:
                if row:
                    yield first, row
                first = reader.line_num + 1
        except csv.Error as error:
            raise InputError(
                '{name} line {first}: the quotes are unbalanced ({error}); close the quote, write "" for a '
                "quote inside a quoted cell, or set data.quoting: none if quotes belong to the text",
                name=text.name,
                first=first,
                error=error,
            ) from None


def _csv_reader(lines: Iterable[str], delimiter: str):
    csv.field_size_limit(_FIELD_LIMIT)
    return csv.reader(lines, delimiter=delimiter, quotechar='"', doublequote=True, strict=True)


def dialect_of(text: TextFile, usual: str, delimiter: str | None, quoting: str) -> Dialect:
    """How to parse this file; `usual` is the format's delimiter, the others are the user's settings, if any."""
    chosen = delimiter or (usual if usual == "\t" else _sniff_delimiter(text))
    if quoting == "auto":
        return Dialect(chosen, chosen != "\t" or _is_quoted(text, chosen))
    return Dialect(chosen, quoting == "double")


def better_delimiter(text: TextFile, delimiter: str) -> str | None:
    """The delimiter, in words, that would give a one-column file several columns, or None."""
    widths = {other: _width(text, other) for other in _DELIMITERS if other != delimiter}
    best = max(widths, key=lambda other: widths[other])
    return best if widths[best] > 1 else None


def delimiter_of(text: TextFile) -> str | None:
    """The delimiter that gives the first rows (at least three) the same number of cells, more than one; else None."""
    widths = {delimiter: _width(text, delimiter, least=3) for delimiter in _DELIMITERS}
    best = max(widths, key=lambda delimiter: widths[delimiter])
    return best if widths[best] > 1 else None


def first_cells(text: TextFile, delimiter: str) -> list[str]:
    """The cells of the first row."""
    return next((row for row in _csv_reader(text.head().splitlines(keepends=True), delimiter) if row), [])


def first_rows(text: TextFile, delimiter: str) -> list[list[str]]:
    """The cells of the first rows, up to the first unbalanced quote."""
    found: list[list[str]] = []
    sample = text.head(_SAMPLE_CHARACTERS)
    lines = sample.splitlines(keepends=True)
    with suppress(csv.Error):  # what came before is kept
        found.extend(
            islice(_csv_reader(lines[:-1] if len(sample) == _SAMPLE_CHARACTERS else lines, delimiter), _SAMPLE_ROWS)
        )
    return found


def reads_like_a_header(names: list[str]) -> bool:
    """Whether the cells look like column names rather than a row: short, distinct, and none a number or a sentence."""
    short = all(0 < len(name.strip()) <= _LONGEST_NAME and not name.strip().endswith((".", "!", "?")) for name in names)
    return short and len(set(names)) == len(names) and not any(re.fullmatch(r"[-+\d.,%\s]+", name) for name in names)


def name_of(delimiter: str) -> str:
    """A delimiter in words, for people."""
    return _NAMES.get(delimiter, repr(delimiter))


def _sniff_delimiter(text: TextFile) -> str:
    widths = {delimiter: _width(text, delimiter) for delimiter in _DELIMITERS}
    if widths[","] > 1:
        return ","
    return max(widths, key=lambda delimiter: widths[delimiter]) if max(widths.values()) > 1 else ","


def _width(text: TextFile, delimiter: str, least: int = 1) -> int:
    """Cells in each of the first rows, or 0 if they differ or there are fewer than `least` rows."""
    sample = text.head(_SAMPLE_CHARACTERS)
    lines = sample.splitlines(keepends=True)
    if len(sample) == _SAMPLE_CHARACTERS:
        lines = lines[:-1] or lines  # the last one may be cut
    widths: set[int] = set()
    rows = 0
    with suppress(csv.Error):  # the reading itself says where quotes are unbalanced; the rows before are enough here
        for row in islice(_csv_reader(lines, delimiter), _SAMPLE_ROWS):
            widths |= {len(row)} - {0}
            rows += bool(row)
    return widths.pop() if len(widths) == 1 and rows >= least else 0


def _is_quoted(text: TextFile, delimiter: str) -> bool:
    if _agree(_plain_cells(text, Dialect(delimiter, False))):
        return _is_all_quoted(text, delimiter)
    try:
        return _agree(_quoted_cells(text, Dialect(delimiter, True)))
    except InputError:
        return False


def _agree(rows: Iterable[tuple[int, list[str]]]) -> bool:
    width = None
    for _, row in rows:
        width = width or len(row)
        if len(row) != width:
            return False
    return True


def _is_all_quoted(text: TextFile, delimiter: str) -> bool:
    enclosed, doubled = re.compile(r'"(?:[^"]|"")*"'), False
    with closing(text.lines("\n")) as lines:
        for line in lines:
            if '"' not in line:
                continue
            for cell in line.rstrip("\r\n").split(delimiter):
                if '"' in cell and not enclosed.fullmatch(cell):
                    return False
                doubled = doubled or '""' in cell[1:-1]
    return doubled
