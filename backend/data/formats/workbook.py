"""Reads spreadsheets: one sheet of an Excel or OpenDocument workbook as a text table, like its CSV export.

The sheet's first non-empty row holds the column names. Formulas give the values that the program has stored;
macros and links to other files are never followed.
"""

import datetime
import re
import zipfile
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple
from xml.parsers import expat

import numpy as np
import pyarrow as pa

from backend.contract.errors import Fix, InputError
from backend.contract.messages import message
from backend.contract.safe_files import open_regular
from backend.data.formats.reader import PIECE_ROWS, Options, RowChunk, check_width

ENDINGS = (".xlsx", ".xlsm", ".xls", ".ods")
MAX_BYTES = 1 << 29
"""Of a workbook unpacked; a larger one is better saved as CSV or Parquet."""
MAX_CELLS = 20_000_000
"""Of one sheet, empty ones included, for a sheet is held in memory as a rectangle."""
_OLD_OFFICE = b"\xd0\xcf\x11\xe0"
_BLOCK = 1 << 20
_PLACE = re.compile(r"([A-Z]{1,3})(\d{1,7})")
_COUNT = re.compile(r"\+?[0-9]{1,20}")
"""What the library reads as a number, signed ones too."""
_HEAD_ROWS = 30
"""Rows by which a sheet is judged; a title page has fewer."""
_PREVIEW_ROWS, _PREVIEW_CHARACTERS = 3, 100
_CONTENT = {"v", "is", "t", "f", "text:p", "text:span"}
"""Elements within cells, which are most of a sheet and say nothing of its size."""
_MARKS_OF_SHEETS = (b"sheetData", b"table-row")
_SHARED_TEXTS = "xl/sharedstrings.xml"
_NUMBER = re.compile(r"[0-9]{1,10}")


def is_workbook(path: Path) -> bool:
    """Whether the content is an Excel or OpenDocument workbook. Raises InputError if it is not a regular file."""
    with open_regular(path) as file:
        start = file.read(4)
    if start == _OLD_OFFICE:
        return path.suffix.lower() == ".xls"
    if not start.startswith(b"PK"):
        return False
    try:
        with zipfile.ZipFile(path) as packed:
            names = set(packed.namelist())
            if "xl/workbook.bin" in names:  # its sheets are not XML, so their size cannot be known beforehand
                raise InputError("{name} is a binary workbook (.xlsb); save it as .xlsx", name=path.name)
            if "content.xml" not in names:
                return "xl/workbook.xml" in names
            if "mimetype" not in names:
                return False
            with packed.open("mimetype") as kind:
                return b"opendocument.spreadsheet" in kind.read(80)
    except (zipfile.BadZipFile, OSError, RuntimeError, NotImplementedError):
        return path.suffix.lower() in ENDINGS


class Workbook:
    """One sheet: all columns are text, and empty cells are missing. Rows without any value are skipped."""

    def __init__(self, path: Path, options: Options) -> None:
        self.skipped: list[tuple[int, str]] = []
        self._name, self._size, self._max_rows = path.name, path.stat().st_size, options.max_rows
        with _explain_errors(path):
            sheet = _sheet(path, options.sheet)
        self._sheet = sheet
        self._names, self._header = self._find_header()

    def schema(self) -> pa.Schema:
        """The named columns."""
        return pa.schema([(name, pa.string()) for name in self._names])

    def pieces(self, schema: pa.Schema) -> Iterator[RowChunk]:
        """The rows below the header in order; a row's line is its row number in the sheet."""
        rows = islice(self._rows(), self._max_rows)
        while part := list(islice(rows, PIECE_ROWS)):
            columns = [
                pa.array([_text(row[self._names[field.name]]) for _, row in part], pa.string()) for field in schema
            ]
            lines = np.array([line for line, _ in part], dtype=np.int64)
            yield RowChunk(pa.record_batch(columns, schema=schema), lines, self._size)

    def _rows(self) -> Iterator[tuple[int, list[Any]]]:
        for line, row in enumerate(self._sheet.iter_rows(), 1):
            if line > self._header and any(value != "" for value in row):
                yield line, row

    def _find_header(self) -> tuple[dict[str, int], int]:
        """Name → column index from the first row with values, and that row's number. Raises InputError."""
        rows = enumerate(self._sheet.iter_rows(), 1)
        line, header = next(((line, row) for line, row in rows if any(value != "" for value in row)), (0, []))
        if not header:
            raise InputError(
                "{name}: the sheet {name_2} is empty; set data.sheet to another sheet",
                name=self._name,
                name_2=repr(self._sheet.name),
            )
        names: dict[str, int] = {}
        for place, value in enumerate(header):
            name = (_text(value) or "").strip()
            if name in names:
                raise InputError(
                    "{name} has two columns {name_2}; rename one of them in row {line}",
                    name=self._name,
                    name_2=repr(name),
                    line=line,
                )
            if name:
                names[name] = place
        check_width(self._name, names)
        nameless = sorted(set(range(len(header))) - set(names.values()))
        for number, row in rows:
            place = next((place for place in nameless if row[place] != ""), None)
            if place is not None:
                raise InputError(
                    "{name} row {number}: column {place} has a value but no name; add a name in row {line}, "
                    "or clear the column",
                    name=self._name,
                    number=number,
                    place=place + 1,
                    line=line,
                )
        return names, line


def describe_sheets(path: Path, wanted: str | None) -> str:
    """Which of several sheets is read and which others there are, in a sentence; empty if only one is visible."""
    with _explain_errors(path):
        book = _open(path)
        read = _choose_sheet(path, book, wanted)
        others = [name for name in book.visible if name != read]
    named = ", ".join(f"“{name}”" for name in others)
    return (
        message(
            "{name}: the sheet “{read}” is used; set data.sheet to use another one: {named}",
            name=path.name,
            read=read,
            named=named,
        )
        if others
        else ""
    )


def suggest_sheet(path: Path) -> Fix | None:
    """A fix that selects the first visible sheet that looks like a table, if the default sheet does not."""
    with _explain_errors(path):
        book = _open(path)
        first, *others = book.visible or [""]
        if not others or _is_table_or_list(_head(book, first)):
            return None
        for name in others:
            if _is_table(head := _head(book, name)):
                return Fix(
                    message("Read sheet {name}", name=name),
                    {"data.sheet": name},
                    tuple(" | ".join(filter(None, row))[:_PREVIEW_CHARACTERS] for row in head[:_PREVIEW_ROWS]),
                    message(
                        "{name}: the sheet “{first}” is used, but it does not look like a table; “{name_2}” does:",
                        name=path.name,
                        first=first,
                        name_2=name,
                    ),
                )
    return None


def _head(book: "_OpenWorkbook", name: str) -> list[list[str]]:
    """The first rows with values, as text."""
    rows = ([_text(value) or "" for value in row] for row in book.content.get_sheet_by_name(name).iter_rows())
    return list(islice(filter(any, rows), _HEAD_ROWS))


def _is_table(head: list[list[str]]) -> bool:
    """Whether the first row has two names or more, each cell below has a name, and most rows have several cells."""
    names, *rows = head or [[]]
    named = {place for place, name in enumerate(names) if name}
    held = [{place for place, value in enumerate(row) if value} for row in rows]
    return (
        len(named) > 1
        and bool(held)
        and all(one <= named for one in held)
        and sum(len(one) > 1 for one in held) * 2 > len(held)
    )


def _is_table_or_list(head: list[list[str]]) -> bool:
    """Whether it could be the intended data: a table, or many texts in one column."""
    return _is_table(head) or (len(head) == _HEAD_ROWS and all(sum(map(bool, row)) == 1 for row in head))


class _OpenWorkbook(NamedTuple):
    """An open workbook, the names of its visible sheets, and of all sheets."""

    content: Any
    visible: list[str]
    names: list[str]


def _open(path: Path) -> _OpenWorkbook:
    """Open it. Raises InputError if it would not fit in memory: an OpenDocument is loaded with all sheets."""
    from python_calamine import SheetTypeEnum, SheetVisibleEnum, load_workbook  # a library in Rust, needed only here

    _check_size(path)
    book = load_workbook(path)
    tables = [one for one in book.sheets_metadata if one.typ == SheetTypeEnum.WorkSheet]
    visible = [one.name for one in tables if one.visible == SheetVisibleEnum.Visible]
    return _OpenWorkbook(book, visible, [one.name for one in tables])


def _sheet(path: Path, wanted: str | None) -> Any:
    """The sheet of that name, else the first visible one."""
    book = _open(path)
    return book.content.get_sheet_by_name(_choose_sheet(path, book, wanted))


def _choose_sheet(path: Path, book: _OpenWorkbook, wanted: str | None) -> str:
    if wanted is not None and wanted not in book.names:
        raise InputError(
            "data.sheet: {name} has no sheet {wanted}; its sheets are {names}",
            "data.sheet",
            name=path.name,
            wanted=repr(wanted),
            names=", ".join(map(repr, book.names)),
        )
    name = wanted or next(iter(book.visible), None)
    if name is None:
        raise InputError("{name} has no visible sheet; set data.sheet to one of its sheets", name=path.name)
    return name


def _check_size(path: Path) -> None:
    """Raises InputError for a workbook that would not fit in memory, before any of it is loaded."""
    if not zipfile.is_zipfile(path):
        if path.stat().st_size > MAX_BYTES:
            raise InputError(_describe_too_large(path, message("{st_size:,} bytes", st_size=path.stat().st_size)))
        return
    with zipfile.ZipFile(path) as packed:
        size = sum(one.file_size for one in packed.infolist())
        if size > MAX_BYTES:
            raise InputError(_describe_too_large(path, message("{size:,} bytes unpacked", size=size)))
        shared = _shared_text_lengths(packed)
        if len(shared) > MAX_CELLS:
            raise InputError(_describe_too_large(path, message("{shared:,} texts", shared=len(shared))))
        for one in packed.infolist():
            with packed.open(one) as content:
                extent = _SheetExtent(shared)
                extent.read(content)
            if extent.rows * extent.columns > MAX_CELLS:
                raise InputError(
                    _describe_too_large(
                        path, message("{rows:,} rows of {columns:,} columns", rows=extent.rows, columns=extent.columns)
                    )
                )
            if extent.characters > MAX_BYTES:
                raise InputError(
                    _describe_too_large(
                        path, message("{characters:,} characters of repeated text", characters=extent.characters)
                    )
                )


def _shared_text_lengths(packed: zipfile.ZipFile) -> "array[int]":
    """The length of each shared string of an Excel workbook, by index. Raises BadZipFile."""
    parts = [one for one in packed.infolist() if one.filename.replace("\\", "/").lower() == _SHARED_TEXTS]
    if len(parts) > 1:
        raise zipfile.BadZipFile(message("two parts with shared strings"))
    shared = _SharedTexts()
    for one in parts:
        with packed.open(one) as content:
            shared.read(content)
    return shared.lengths


class _SharedTexts:
    """The shared strings: everything within each `si`, of which the library reads a part."""

    def __init__(self) -> None:
        self.lengths = array("I")
        self._inside = False
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._add
        self._parser.StartDoctypeDeclHandler = _refuse_document_type

    def read(self, content: IO[bytes]) -> None:
        """Raises BadZipFile if it is not well-formed XML, in which the library would find different texts."""
        try:
            while (block := content.read(_BLOCK)) and len(self.lengths) <= MAX_CELLS:
                self._parser.Parse(block)
            if not block:
                self._parser.Parse(b"", True)
        except expat.ExpatError as error:
            raise zipfile.BadZipFile(str(error)) from None

    def _start(self, name: str, _: dict[str, str]) -> None:
        if name.rpartition(":")[2] == "si":
            if self._inside:  # the library would count these texts in another way
                raise expat.ExpatError(message("a text element is nested in another"))
            self._inside = True
            self.lengths.append(0)

    def _end(self, name: str) -> None:
        if name.rpartition(":")[2] == "si":
            self._inside = False

    def _add(self, text: str) -> None:
        if self._inside:
            self.lengths[-1] += len(text)


def _refuse_document_type(*_: Any) -> None:
    raise expat.ExpatError(message("a sheet has a document type declaration"))


class _SheetExtent:
    """The rows and columns of the sheets in one part of a workbook: two cells in opposite corners span 17 billion.

    Also counts characters that the part does not store one by one: runs of spaces, repeated cells, and shared
    strings that many cells may refer to.

    Any part may be a sheet, because the workbook names them freely. Its XML must be well-formed and without a document
    type, because the library is more lenient and must not find cells that were not counted here.
    """

    def __init__(self, shared: "array[int]") -> None:
        self.rows = self.columns = self.characters = 0
        self._shared, self._longest = shared, max(shared, default=0)
        self._names_text = False
        self._number: list[str] | None = None
        self._row = self._column = 0
        self._repeats = self._row_repeats = 1
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler = self._start
        self._parser.StartDoctypeDeclHandler = _refuse_document_type

    def read(self, content: IO[bytes]) -> None:
        """Raises BadZipFile for a sheet that is not well-formed XML; other parts are not checked."""
        problem, has_cells, last = "", False, b""
        while block := content.read(_BLOCK):
            has_cells = has_cells or any(mark in last + block for mark in _MARKS_OF_SHEETS)
            last = block[-32:]
            problem = problem or self._parse(block)
        if has_cells and (problem := problem or self._parse(b"", is_last=True)):
            raise zipfile.BadZipFile(problem)

    def _parse(self, block: bytes, *, is_last: bool = False) -> str:
        try:
            self._parser.Parse(block, is_last)
        except expat.ExpatError as error:
            return str(error)
        return ""

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if self._number is not None:
            self._number.append("?")  # an element inside a number: unclear how the library reads it
        if name in _CONTENT and not self._names_text:
            return
        match name.rpartition(":")[2]:
            case "v" if self._names_text and self._number is None:
                self._number = []
                self._parser.CharacterDataHandler = self._number.append
                self._parser.EndElementHandler = self._add_shared_text
            case "c":  # of Excel; without a place it follows the one before
                found = _PLACE.fullmatch(attributes.get("r", ""))
                self._column = _column_number(found[1]) if found else self._column + 1
                self._row = int(found[2]) if found else self._row
                self._count(self._row, self._column)
                self._names_text = attributes.get("t") == "s"
            case "row":
                number = attributes.get("r", "")
                self._row, self._column = int(number) if number.isdecimal() else self._row + 1, 0
            case "table":  # of OpenDocument, where a cell or row may stand for many
                self._row = 0
            case "table-row":
                self._row_repeats = _count(attributes, "table:number-rows-repeated")
                self._row, self._column = self._row + self._row_repeats, 0
            case "table-cell" | "covered-table-cell":
                repeats = _count(attributes, "table:number-columns-repeated")
                self._column += repeats
                has_value = any(attribute.startswith("office:") for attribute in attributes)
                self._repeats = repeats * self._row_repeats if has_value else 1
                self._parser.CharacterDataHandler = self._add_text if self._repeats > 1 else None
                if has_value:
                    self._count(self._row, self._column)
                    self._add_text("".join(attributes.values()))
            case "s":
                self.characters += _count(attributes, "text:c") * self._repeats

    def _add_shared_text(self, _: str) -> None:
        """Add the shared string's length; if the index is not clearly valid, assume the longest."""
        match self._number:
            case []:
                pass
            case [number] if _NUMBER.fullmatch(number) and int(number) < len(self._shared):
                self.characters += self._shared[int(number)]
            case _:
                self.characters += self._longest
        self._number = self._parser.CharacterDataHandler = self._parser.EndElementHandler = None

    def _add_text(self, text: str) -> None:
        if self._repeats > 1:
            self.characters += len(text) * self._repeats

    def _count(self, row: int, column: int) -> None:
        self.rows, self.columns = max(self.rows, row), max(self.columns, column)


def _count(attributes: dict[str, str], name: str) -> int:
    number = attributes.get(name, "")
    return int(number) if _COUNT.fullmatch(number) else 1


def _column_number(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - 64
    return number


def _describe_too_large(path: Path, what: str) -> str:
    return message(
        "{name} is too large for a workbook ({what}); save the sheet as CSV, or remove what is not needed",
        name=path.name,
        what=what,
    )


@contextmanager
def _explain_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (InputError, OSError, MemoryError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of the library is not an Exception
        if "password" in f"{type(error).__name__} {error}".lower():
            raise InputError("{name} is password-protected; save it without a password", name=path.name) from None
        raise InputError(
            "{name} is damaged or is not a readable workbook; save it again, or save it as CSV", name=path.name
        ) from None


def _text(value: Any) -> str | None:
    """A cell as its CSV export would have it: integers without a fraction, dates as ISO 8601; None if it is empty."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1 << 53 else repr(value)
    if isinstance(value, datetime.datetime):
        midnight = value.time() == datetime.time()
        return value.date().isoformat() if midnight else value.isoformat(sep=" ")
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return str(value) or None
