"""Appends a row to a user's delimited file in the file's own format, completely or not at all."""

import codecs
import csv
import io
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.contract.run.lock import RunLocked, take_lock
from backend.data.csv_file import BOM, escape_formula, to_plain_cell
from backend.data.formats.compression import packer_of
from backend.data.formats.delimited import Dialect, cells, dialect_of
from backend.data.formats.text_file import TextFile
from backend.data.formats.workbook import is_workbook

COUNTED_BYTES = 64_000_000
"""Of a larger file the rows are neither counted nor checked."""
_PLAIN_CODEC = {"utf-8-sig": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}
_BIG_ENDIAN = {codecs.BOM_UTF16_BE: "utf-16-be", codecs.BOM_UTF32_BE: "utf-32-be"}


@dataclass(frozen=True)
class AppendResult:
    """The file's columns, how many rows it has now (None: not counted), and whether it is new."""

    columns: list[str]
    rows: int | None
    created: bool


@dataclass(frozen=True)
class NewRow:
    """The typed inputs and answer, each with the column that it has, or would have, in the file."""

    inputs: Mapping[str, Any]
    prediction: tuple[str, Any]
    answer: tuple[str, Any] | None = None
    """The right answer's column, and the answer where a person has said it (else None)."""

    @property
    def values(self) -> dict[str, Any]:
        """Column → value, inputs first, the right answer last."""
        return {**self.inputs, **dict([self.prediction, *([self.answer] if self.answer else [])])}

    def may_lack(self, columns: Sequence[str]) -> set[str]:
        """Columns that the file may lack: empty ones, and the prediction if the right answer is present."""
        empty = {name for name, value in self.values.items() if value in (None, "", [])}
        known = self.answer is not None and self.answer[0] in columns and self.answer[0] not in empty
        return empty | ({self.prediction[0]} if known else set())


@dataclass(frozen=True)
class _Layout:
    """The file's format."""

    columns: list[str]
    dialect: Dialect
    encoding: str
    line_end: str
    rows: int | None


def append_row(path: Path, row: NewRow, *, defuse: bool = False, bom: bool = False) -> AppendResult:
    """Append the row to the file, which is created if missing. Raises InputError.

    The file's encoding, delimiter, quoting and line ends are kept, and its columns must match the row's.
    """
    cell = escape_formula if defuse else to_plain_cell
    with _open_locked(path) as (file, size):
        if size == 0:
            kept = {name: cell(value) for name, value in row.values.items() if name not in _empty_inputs(row)}
            content = (BOM if bom else b"") + _format_rows(
                [list(kept), list(kept.values())], _new_layout(path)
            ).encode()
            _write(file, size, content, path)
            return AppendResult(list(kept), 1, True)
        if packer_of(path) or is_workbook(path):
            raise InputError(
                "{name} is compressed or a workbook, so no row can be appended to it; choose a CSV or TSV file",
                name=path.name,
            )
        layout = _layout(path, size)
        _check(path, layout.columns, row)
        text = _format_rows([[cell(row.values[name]) for name in layout.columns]], layout)
        if not _ends_with_newline(file, layout):
            text = layout.line_end + text
        _write(file, size, _encode_text(path, text, layout), path)
        return AppendResult(layout.columns, None if layout.rows is None else layout.rows + 1, False)


def _empty_inputs(row: NewRow) -> set[str]:
    """Inputs left empty; a new file has no column for them."""
    return {name for name, value in row.inputs.items() if value in (None, "", [])}


@contextmanager
def _open_locked(path: Path) -> Iterator[tuple[BinaryIO, int]]:
    """The file, locked against other writers, and its size; a file that stays empty is removed."""
    if path.is_dir():
        raise InputError("{path} is a folder; choose a file in it", path=path)
    try:
        descriptor = take_lock(path)
    except RunLocked:
        raise InputError("{path} is being written by another program; try again when it is done", path=path) from None
    except OSError as error:
        raise InputError(
            "{path} cannot be written: {strerror}; choose another file", path=path, strerror=error.strerror
        ) from None
    with os.fdopen(descriptor, "r+b") as file:
        try:
            yield file, file.seek(0, os.SEEK_END)
        finally:
            if file.seek(0, os.SEEK_END) == 0:
                with suppress(OSError):  # Windows keeps an open file; an empty one does no harm
                    path.unlink()


def _new_layout(path: Path) -> _Layout:
    is_tabbed = path.suffix.lower() in {".tsv", ".tab"}
    return _Layout([], Dialect("\t" if is_tabbed else ",", True), "utf-8", "\r\n", 0)


def _layout(path: Path, size: int) -> _Layout:
    text = TextFile(path)
    if not _decodes(path, text.encoding):
        # Any such encoding writes plain letters as ASCII does; `_encode_text` refuses others.
        text = TextFile(path, "latin-1")
    dialect = dialect_of(text, "\t" if path.suffix.lower() in {".tsv", ".tab"} else ",", None, "auto")
    count = -1
    columns: list[str] = []
    for count, (_, row) in enumerate(cells(text, dialect)):
        if count == 0:
            columns = row
            if size > COUNTED_BYTES:
                break
    line_end = "\r\n" if _first_line(text).endswith("\r\n") else "\n"
    encoding = "ascii" if text.encoding == "iso8859-1" else _BIG_ENDIAN.get(_mark(path, text.encoding), "")
    encoding = encoding or _PLAIN_CODEC.get(text.encoding, text.encoding)
    return _Layout(columns, dialect, encoding, line_end, None if size > COUNTED_BYTES else max(count, 0))


def _decodes(path: Path, encoding: str) -> bool:
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                decoder.decode(block)
            decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _first_line(text: TextFile) -> str:
    lines = text.lines("")
    try:
        return next(lines, "")
    finally:
        lines.close()


def _mark(path: Path, encoding: str) -> bytes:
    with path.open("rb") as file:
        return file.read(4 if encoding == "utf-32" else 2)


def _check(path: Path, columns: list[str], row: NewRow) -> None:
    """Raises InputError in one sentence if the columns differ."""
    there, wanted, optional = ", ".join(columns), list(row.values), row.may_lack(columns)
    if missing := [name for name in wanted if name not in columns and name not in optional]:
        raise InputError(
            "{name} has no column {missing} (it has {there}); {missing_2}",
            name=path.name,
            missing=repr(missing[0]),
            there=there,
            missing_2=_suggest_file(missing, columns, row),
        )
    if strange := [name for name in columns if name not in wanted]:
        raise InputError(
            "{name} also has the column {strange}, for which this row has no value (it has "
            "{wanted}); choose another file, or create a new one",
            name=path.name,
            strange=repr(strange[0]),
            wanted=", ".join(wanted),
        )
    if len(set(columns)) < len(columns):
        raise InputError(
            "{name} has the same column twice ({there}); rename one of them, or create a new file",
            name=path.name,
            there=there,
        )


def _suggest_file(missing: list[str], columns: list[str], row: NewRow) -> str:
    if missing == [row.prediction[0]] and row.answer is not None and row.answer[0] in columns:
        return message("enter the correct answer to add the row as training data")
    return message("choose a file with the columns {values}, or create a new one", values=", ".join(row.values))


def _format_rows(rows: list[list[Any]], layout: _Layout) -> str:
    stream = io.StringIO()
    if layout.dialect.quoted:
        csv.writer(stream, delimiter=layout.dialect.delimiter, lineterminator=layout.line_end).writerows(rows)
        return stream.getvalue()
    texts = [["" if value is None else str(value) for value in row] for row in rows]
    for text in (text for row in texts for text in row):
        if any(sign in text for sign in (layout.dialect.delimiter, "\n", "\r")):
            raise InputError(
                "the cells of this file are not quoted, so they cannot contain tabs or line breaks; "
                "remove these from the text, or create a new .csv file"
            )
    return "".join(layout.dialect.delimiter.join(row) + layout.line_end for row in texts)


def _ends_with_newline(file: BinaryIO, layout: _Layout) -> bool:
    end = "\n".encode(layout.encoding)
    file.seek(-len(end), os.SEEK_END)
    return file.read() == end


def _encode_text(path: Path, text: str, layout: _Layout) -> bytes:
    try:
        return text.encode(layout.encoding)
    except UnicodeEncodeError as error:
        sign = text[error.start]
        raise InputError(
            "{name} is not UTF-8, and {sign} cannot be added without knowing the encoding; save the "
            "file again as UTF-8, or create a new one",
            name=path.name,
            sign=repr(sign),
        ) from None


def _write(file: BinaryIO, size: int, content: bytes, path: Path) -> None:
    """Write all or nothing: if the disk is full, the file is restored."""
    try:
        file.seek(0, os.SEEK_END)
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    except OSError as error:
        with suppress(OSError):
            file.truncate(size)
        raise InputError(
            "{path} cannot be written: {strerror}; nothing was added", path=path, strerror=error.strerror
        ) from None
