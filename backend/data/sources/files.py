"""The source `files`: tables and text in local files."""

import codecs
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import pyarrow as pa
from pydantic import Field, field_validator

from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.contract.spec import DataSection, Section
from backend.data.data_files import data_files, short_names
from backend.data.fingerprint import file_fingerprint, fingerprint
from backend.data.formats.delimited import Delimited
from backend.data.formats.detect import content_format, format_of, open_reader
from backend.data.formats.reader import Options, Reader
from backend.data.formats.text_file import UndecodableError, describe_mixed
from backend.data.formats.workbook import describe_sheets, suggest_sheet
from backend.data.row_cache import VERSION, RowWriter, load_cached_rows, open_writer
from backend.data.rows import Rows
from backend.data.sources.source import ReadOptions, Report, check_apart, split_value

_NO_ENCODINGS = {"idna", "punycode", "unicode-escape", "raw-unicode-escape", "undefined", "mbcs", "oem"}
"""What Python calls codecs of text and what no file is written in, or what means another encoding on each computer."""
ADVANCED: dict[str, Any] = {"advanced": True}
OF_FILE: dict[str, Any] = {"of_file": True}
"""Settings that belong to the files of the moment: in the window they go when other files are chosen."""


class Settings(Section):
    """How files are read."""

    format: Annotated[
        Literal["auto", "csv", "tsv", "jsonl", "json", "parquet", "arrow", "text", "workbook"],
        Field(title="Format", json_schema_extra=OF_FILE),
    ] = "auto"
    """`auto` uses the file's extension, then its content."""
    delimiter: Annotated[str | None, Field(title="Delimiter", json_schema_extra=ADVANCED | OF_FILE)] = None
    """The character between the cells of a CSV or TSV file. Empty detects it."""
    encoding: Annotated[str, Field(title="Encoding", json_schema_extra=ADVANCED | OF_FILE)] = "auto"
    """`auto` reads UTF-8, and UTF-16 with a byte order mark; otherwise an encoding such as `windows-1252`."""
    quoting: Annotated[
        Literal["auto", "double", "none"], Field(title="Quoting", json_schema_extra=ADVANCED | OF_FILE)
    ] = "auto"
    """`double`: quotes enclose the cells of CSV or TSV; `none`: quotes are part of the text; `auto` detects it."""

    sheet: Annotated[str | None, Field(title="Sheet", json_schema_extra=ADVANCED | OF_FILE)] = None
    """The sheet to read from an Excel or OpenDocument workbook. Empty reads the first visible one."""

    @field_validator("delimiter")
    @classmethod
    def _is_one_character(cls, delimiter: str | None) -> str | None:
        delimiter = {"\\t": "\t", "tab": "\t", "": None}.get(delimiter or "", delimiter)
        if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
            raise ValueError(message('it must be one character, for example ";" or "\\t"'))
        return delimiter

    @field_validator("encoding")
    @classmethod
    def _is_known(cls, encoding: str) -> str:
        if encoding == "auto":
            return encoding
        try:
            io.TextIOWrapper(io.BytesIO(), encoding=encoding)  # refuses codecs of bytes, such as hex and zip
            if codecs.lookup(encoding).name.replace("_", "-") in _NO_ENCODINGS:
                raise LookupError(encoding)
        except (LookupError, ValueError):  # ValueError: a name with NUL
            raise ValueError(message("it is not a text encoding; use auto, utf-8, latin-1, cp1252 or utf-16")) from None
        return encoding


class Files:
    """CSV, TSV, JSON, Parquet, Arrow, workbooks, saved data sets and plain text; one file, a list, a pattern or a folder."""

    title: ClassVar[str] = "Files"
    description: ClassVar[str] = (
        "CSV, TSV, JSON, Parquet, Arrow, Excel, OpenDocument or plain text on this computer: a file, a list, a pattern or a folder"
    )
    Settings: ClassVar[type[Section]] = Settings
    path_fields: ClassVar[tuple[str, ...]] = ("train", "validation", "test")

    def __init__(self, settings: Section) -> None:
        assert isinstance(settings, Settings)
        self.settings = settings

    def read(self, split: str, data: DataSection, reading: ReadOptions) -> Rows | None:
        """All rows of the split; None if `data` names no files for it."""
        if split_value(split, data) is None:
            return None
        with prefix_errors(f"data.{split}"), explain_mixed_encodings(data):
            return self._read(split_files(split, data), data.max_rows, reading)

    def read_file(self, path: Path, data: DataSection, reading: ReadOptions) -> Rows:
        """All rows of another file, folder or pattern."""
        return self._read(data_files(str(path), None), None, reading)

    def _read(self, paths: list[Path], max_rows: int | None, reading: ReadOptions) -> Rows:
        settings = self.settings
        kinds = [format_of(path, settings.format, settings.encoding) for path in paths]
        options = Options(settings.delimiter, settings.encoding, settings.quoting, settings.sheet, max_rows)

        def readers() -> list[Reader]:
            return [open_reader(path, kind, options) for path, kind in zip(paths, kinds, strict=True)]

        # The order of a run follows from this, so a setting that came later counts only where it is set.
        how = ("rows", kinds, settings.model_dump(mode="json", exclude=None if settings.sheet else {"sheet"}))
        with suggest_sheet_on_error(paths, kinds, settings.sheet):
            rows = read_files(paths, readers, how, max_rows, reading, continuous=all(kind == "text" for kind in kinds))
        sheets = [
            describe_sheets(path, settings.sheet) for path, kind in zip(paths, kinds, strict=True) if kind == "workbook"
        ]
        return replace(rows, sheets=next(filter(None, sheets), ""))


SOURCE = Files


def split_files(split: str, data: DataSection) -> list[Path]:
    """The files that `data` names for the split. Raises InputError if one of them also belongs to an earlier split."""

    def files_of(one: str) -> list[Path]:
        value = split_value(one, data)
        return data_files(value, one) if value is not None else []

    check_apart(split, files_of)
    return files_of(split)


def read_files(
    paths: list[Path],
    readers: Callable[[], list[Reader]],
    how: tuple[Any, ...],
    max_rows: int | None,
    reading: ReadOptions,
    *,
    continuous: bool = False,
) -> Rows:
    """The rows of files, one reader each, from the cache if the same content was read before.

    `how` are plain JSON values: the kind of source and its settings. Raises InputError.
    """
    kind, *settings = how
    key = fingerprint(kind, VERSION, _contents(paths, reading.report), *settings, max_rows)
    names = short_names(paths)

    def write(folder: Path) -> None:
        opened = readers()
        with open_writer(folder, _unite_schemas([reader.schema() for reader in opened], names), max_rows) as writer:
            _copy(opened, writer, paths, reading.report)
        _check_count(writer, opened, names)

    return load_cached_rows(reading.cache, key, names, write, reading.report, continuous)


@contextmanager
def prefix_errors(field: str) -> Iterator[None]:
    """Prefix the spec key to the message of an InputError that names none."""
    try:
        yield
    except InputError as error:
        raise (
            error if error.field else InputError("{field}: {error}", field, fix=error.fix, field=field, error=error)
        ) from None


@contextmanager
def suggest_sheet_on_error(paths: list[Path], kinds: list[str], wanted: str | None) -> Iterator[None]:
    """Suggest another sheet if a workbook's first one cannot be read: it may be a title page."""
    try:
        yield
    except InputError as error:
        fix = suggest_sheet(paths[0]) if kinds == ["workbook"] and wanted is None else None
        if fix is None:
            raise
        words = message(
            "{error}; or set data.sheet to {changes}, which looks like a table",
            error=error,
            changes=fix.changes["data.sheet"],
        )
        raise InputError(words, error.field, fix=fix) from None


@contextmanager
def explain_mixed_encodings(data: DataSection) -> Iterator[None]:
    """List every file's encoding if one cannot be decoded and they differ: no single encoding would fit."""
    try:
        yield
    except UndecodableError:
        files = dict.fromkeys(path for split in Files.path_fields for path in _text_files(split, data))
        if words := describe_mixed(list(files)):
            is_set = (data.model_extra or {}).get("encoding", "auto") != "auto"
            raise InputError(
                message("{words}, and set data.encoding to auto", words=words) if is_set else words
            ) from None
        raise


def _text_files(split: str, data: DataSection) -> list[Path]:
    """The split's text files; none if they cannot be found, which is reported when they are read."""
    value = split_value(split, data)
    try:
        paths = data_files(value, split) if value is not None else []
        return [path for path in paths if content_format(path) not in ("parquet", "arrow", "workbook")]
    except (InputError, OSError):
        return []


def _contents(paths: list[Path], report: Report) -> list[str]:
    prints = []
    for path in paths:
        report(0, 0, "bytes")  # hashing is fast, so no bar, but it can be stopped between files
        prints.append(file_fingerprint(path))
    return prints


def _copy(readers: list[Reader], writer: RowWriter, paths: list[Path], report: Report) -> None:
    sizes = [path.stat().st_size for path in paths]
    schema = writer.schema
    for number, reader in enumerate(readers):
        before = sum(sizes[:number])
        for piece in reader.pieces(schema):
            writer.append(piece.batch, piece.lines, number)
            report(before + piece.position, sum(sizes), "bytes")
            if writer.full:
                break
        for line, reason in reader.skipped:
            writer.skip(number, line, reason)
        if writer.full:
            break


def _check_count(writer: RowWriter, readers: list[Reader], names: tuple[str, ...]) -> None:
    if writer.count:
        return
    for name, reader in zip(names, readers, strict=True):
        if reader.skipped:
            line, reason = reader.skipped[0]
            if isinstance(reader, Delimited) and len(writer.schema) == 1:
                raise InputError(
                    "{name} has no usable rows; line {line}, for example, has {reason}; if every line is "
                    "one text, set data.delimiter to a character that the file does not contain, such as \\t",
                    name=name,
                    line=line,
                    reason=reason,
                )
            raise InputError(
                "{name} has no usable rows; line {line}, for example, has {reason}", name=name, line=line, reason=reason
            )
    raise InputError(
        "{names} has column names but no rows; use a file with rows below the header", names=", ".join(names)
    )


def _unite_schemas(schemas: list[pa.Schema], names: tuple[str, ...]) -> pa.Schema:
    """One schema in the first file's order. Raises InputError if files differ in columns or types."""
    first = schemas[0]
    for schema, name in zip(schemas[1:], names[1:], strict=True):
        if set(schema.names) != set(first.names):
            odd = sorted(set(schema.names) ^ set(first.names))
            raise InputError(
                "{names} and {name} do not have the same columns: only one of them has {odd}; use files "
                "with the same columns",
                names=names[0],
                name=name,
                odd=", ".join(odd),
            )
        for column in first.names:
            _check_kind(first.field(column), schema.field(column), names[0], name)
    return pa.unify_schemas(schemas, promote_options="permissive")


def _check_kind(one: pa.Field, other: pa.Field, name: str, other_name: str) -> None:
    try:
        pa.unify_schemas([pa.schema([one]), pa.schema([other])], promote_options="permissive")
    except pa.ArrowException:
        raise InputError(
            "the column {name} is {type} in {name_2} and {type_2} in {other_name}; make them the same type",
            name=repr(one.name),
            type=one.type,
            name_2=name,
            type_2=other.type,
            other_name=other_name,
        ) from None
