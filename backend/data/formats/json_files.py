"""Reads JSONL and JSON: one object per line, or one list of objects; types and nulls are kept."""

import json
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.contract.safe_files import MAX_JSON
from backend.contract.safe_text import parse_json
from backend.data.formats.reader import PIECE_ROWS, Options, RowChunk, check_width
from backend.data.formats.text_file import TextFile

Record = tuple[int, dict[str, Any]]
"""Line (or number) of the object in its file, and the object."""

_CONVERSION_ERRORS = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError, UnicodeError)
_NAMED_KEYS = 5
_KINDS = (
    (bool, message("true or false")),
    ((int, float), "a number"),
    (str, "text"),
    (list, "a list"),
    (dict, message("an object")),
)


class JsonLines:
    """One object per line. Other lines are skipped; a missing key is null."""

    def __init__(self, path: Path, options: Options) -> None:
        self.skipped: list[tuple[int, str]] = []
        self._text = TextFile(path, options.encoding)
        self._max_rows = options.max_rows

    def schema(self) -> pa.Schema:
        """The columns of all objects together."""
        schema = schema_of(self._records(), self._text.name)
        if not schema.names:
            first = (
                message(": line {skipped} is {skipped_2}", skipped=self.skipped[0][0], skipped_2=self.skipped[0][1])
                if self.skipped
                else ""
            )
            raise InputError(
                "{name} is not a JSON object{first}; write one object per line", name=self._text.name, first=first
            )
        return schema

    def pieces(self, schema: pa.Schema) -> Iterator[RowChunk]:
        """The objects in order."""
        for piece in iterate_pieces(self._records()):
            batch = pa.record_batch(columns_of(piece, schema, self._text.name), schema=schema)
            yield RowChunk(batch, _lines(piece), self._text.position)

    def _records(self) -> Iterator[Record]:
        return islice(self._all_records(), self._max_rows)

    def _all_records(self) -> Iterator[Record]:
        self.skipped.clear()  # the file is walked twice, once for the schema
        with closing(self._text.lines("\n")) as lines:
            for line, content in enumerate(lines, 1):
                if not content.strip():
                    continue
                value = _decode(content)
                if isinstance(value, dict):
                    yield line, value
                else:
                    self.skipped.append((line, message("not a JSON object")))


class JsonList:
    """A list of objects, or an object whose `data` is one; read into memory as a whole."""

    def __init__(self, path: Path, options: Options) -> None:
        self.skipped: list[tuple[int, str]] = []
        self._name = path.name
        text = _read_whole(TextFile(path, options.encoding))
        self._size = path.stat().st_size
        self._records = list(enumerate(_objects(text, path.name), 1))
        for number, value in self._records:
            if not isinstance(value, dict):
                self.skipped.append((number, message("not a JSON object")))
        self._records = [record for record in self._records if isinstance(record[1], dict)]

    def schema(self) -> pa.Schema:
        """The columns of all objects together."""
        schema = schema_of(self._records, self._name)
        if not schema.names:
            raise InputError("{name} is not a JSON object; use a list of objects", name=self._name)
        return schema

    def pieces(self, schema: pa.Schema) -> Iterator[RowChunk]:
        """The objects in order, numbered because there are no lines."""
        for piece in iterate_pieces(self._records):
            batch = pa.record_batch(columns_of(piece, schema, self._name), schema=schema)
            yield RowChunk(batch, _lines(piece), self._size)


def is_json_lines(head: str) -> bool:
    """Whether text that starts with an object has several, each on its own line."""
    first, _, rest = head.strip().partition("\n")
    return bool(rest.strip()) and isinstance(_decode(first), dict)


def begins_with_object(head: str) -> bool:
    """Whether the first line is a complete object, or too long to tell."""
    first, end, _ = head.strip().partition("\n")
    return isinstance(_decode(first), dict) or (not end and len(first) > 60_000)


def _read_whole(file: TextFile) -> str:
    parts: list[str] = []
    size = 0
    with closing(file.lines("")) as lines:
        for line in lines:
            parts.append(line)
            size += len(line)
            if size > MAX_JSON:
                raise InputError(
                    "{name} is too large for one JSON document; write one object per line (JSON Lines)", name=file.name
                )
    return "".join(parts)


def _lines(piece: list[Record]) -> np.ndarray:
    return np.array([line for line, _ in piece], dtype=np.int64)


def _decode(content: str) -> object:
    try:
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, RecursionError):
        return _decode_leniently(content)


def _decode_leniently(content: str) -> object:
    """Decode with Python's decoder, which also accepts NaN and Infinity, written by pandas and others."""
    try:
        return parse_json(content)
    except ValueError:
        return None


def _objects(text: str, name: str) -> list[Any]:
    try:
        value = parse_json(text)
    except json.JSONDecodeError as error:
        raise InputError(
            "{name} line {lineno} is not valid JSON ({msg}); fix it, or set data.format: jsonl if every "
            "line is an object",
            name=name,
            lineno=error.lineno,
            msg=error.msg.removesuffix(" starting at"),  # the place is named otherwise
        ) from None
    except ValueError as error:  # nested too deep, or a number of thousands of digits
        raise InputError(
            "{name} cannot be read as JSON ({error}); correct it", name=name, error=str(error).split(";")[0]
        ) from None
    if isinstance(value, dict) and isinstance(value.get("data"), list):
        value = value["data"]
    if not isinstance(value, list):
        keys = message(" with the keys {value}", value=_list_keys(value)) if isinstance(value, dict) else ""
        raise InputError(
            '{name} contains one {class_name}{keys}; use a list of objects, or {{"data": [...]}}',
            name=name,
            class_name=type(value).__name__,
            keys=keys,
        )
    return value


def _list_keys(found: dict[str, Any]) -> str:
    """The first ones: a configuration has dozens."""
    return ", ".join([*map(str, islice(found, _NAMED_KEYS)), *(["…"] if len(found) > _NAMED_KEYS else [])])


def iterate_pieces(records: Iterable[Record]) -> Iterator[list[Record]]:
    """Some thousand records at a time."""
    iterator = iter(records)
    while piece := list(islice(iterator, PIECE_ROWS)):
        yield piece


def schema_of(records: Iterable[Record], name: str) -> pa.Schema:
    """The columns of all records, in order of first appearance; integers widen to floats if both occur.

    Raises InputError that names the column and line if a value's type differs from earlier ones.
    """
    schema = pa.schema([])
    kinds: dict[str, tuple[str, int]] = {}
    for piece in iterate_pieces(records):
        try:
            schema = pa.unify_schemas([schema, _piece_schema(piece, name)], promote_options="permissive")
        except _CONVERSION_ERRORS as error:
            _raise_first_conflict(piece, kinds, name, error)
        check_width(name, schema)
        _note_kinds(piece, kinds, schema)
    return schema


def columns_of(piece: list[Record], schema: pa.Schema, name: str) -> list[pa.Array]:
    """The records' values as arrays of the schema; missing keys are null."""
    try:
        return [pa.array([row.get(field.name) for _, row in piece], field.type) for field in schema]
    except _CONVERSION_ERRORS as error:
        raise InputError(
            "{name} near line {piece}: a value does not match its column: {error}",
            name=name,
            piece=piece[0][0],
            error=error,
        ) from None


def _piece_schema(piece: list[Record], name: str) -> pa.Schema:
    names: dict[str, None] = {}
    for _, row in piece:
        names.update(dict.fromkeys(row))
        check_width(name, names)
    return pa.schema([(column, pa.array([row.get(column) for _, row in piece]).type) for column in names])


def _note_kinds(piece: list[Record], kinds: dict[str, tuple[str, int]], schema: pa.Schema) -> None:
    for column in schema.names:
        if column not in kinds:  # the piece was converted, so its first value speaks for the others
            first = next(((line, row[column]) for line, row in piece if row.get(column) is not None), None)
            if first:
                kinds[column] = (_kind(first[1]), first[0])


def _raise_first_conflict(piece: list[Record], kinds: dict[str, tuple[str, int]], name: str, error: Exception) -> None:
    for line, row in piece:
        for column, value in row.items():
            if isinstance(error, UnicodeError) and _is_half_character(column, value):
                raise InputError(
                    "{name} line {line}: {column} contains half a character (a lone surrogate such as \\ud83d), "
                    "which is not text; remove it, or write the whole character",
                    name=name,
                    line=line,
                    column=repr(column),
                ) from None
            if value is None:
                continue
            kind, before = kinds.setdefault(column, (_kind(value), line))
            if kind != _kind(value):
                raise InputError(
                    "{name} line {line}: {column} is {value} here but {kind} in line {before}; use one type "
                    "for the whole column",
                    name=name,
                    line=line,
                    column=repr(column),
                    value=_kind(value),
                    kind=kind,
                    before=before,
                ) from None
    raise InputError(
        "{name} lines {piece} to {piece_2} contain values that do not fit into one column "
        "({error}); use one type for the whole column",
        name=name,
        piece=piece[0][0],
        piece_2=piece[-1][0],
        error=error,
    ) from None


def _is_half_character(*values: object) -> bool:
    """Whether one of their texts is not valid UTF-8: JSON can contain half of a UTF-16 surrogate pair."""
    return any("\ud800" <= letter <= "\udfff" for value in values for text in _texts(value) for letter in text)


def _texts(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for each in value:
                yield from _texts(each)
        case dict():
            for key, each in value.items():
                yield from _texts(key)
                yield from _texts(each)


def _kind(value: object) -> str:
    return next(word for kind, word in _KINDS if isinstance(value, kind))  # type: ignore[arg-type]
