"""Owns JSON objects as rows: which columns they make together, of which type, and where two rows disagree."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import pyarrow as pa

from backend.contract.errors import InputError
from backend.data.formats.reader import PIECE_ROWS, check_width

Record = tuple[int, dict[str, Any]]
"""Line (or number) of the object in its file, and the object."""

_CONVERSION_ERRORS = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError, UnicodeError)
_KINDS = ((bool, "true or false"), ((int, float), "a number"), (str, "text"), (list, "a list"), (dict, "an object"))


def in_pieces(records: Iterable[Record]) -> Iterator[list[Record]]:
    """Some thousand records at a time."""
    iterator = iter(records)
    while piece := list(islice(iterator, PIECE_ROWS)):
        yield piece


def schema_of(records: Iterable[Record], name: str) -> pa.Schema:
    """The columns of all records, in order of first appearance; whole numbers widen to fractions where both occur.

    Raises InputError that names the column and line where a value is of another kind than before.
    """
    schema = pa.schema([])
    kinds: dict[str, tuple[str, int]] = {}
    for piece in in_pieces(records):
        try:
            schema = pa.unify_schemas([schema, _piece_schema(piece, name)], promote_options="permissive")
        except _CONVERSION_ERRORS as error:
            _raise_first_conflict(piece, kinds, name, error)
        check_width(name, schema)
        _note_kinds(piece, kinds, schema)
    return schema


def columns_of(piece: list[Record], schema: pa.Schema, name: str) -> list[pa.Array]:
    """The records' values as arrays of the schema; what an object lacks is null."""
    try:
        return [pa.array([row.get(field.name) for _, row in piece], field.type) for field in schema]
    except _CONVERSION_ERRORS as error:
        raise InputError(f"{name} near line {piece[0][0]}: a value does not go with its column: {error}") from None


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
                    f"{name} line {line}: {column!r} holds half of a character (a lone surrogate such as \\ud83d), which is not "
                    "text; remove it, or write the whole character"
                ) from None
            if value is None:
                continue
            kind, before = kinds.setdefault(column, (_kind(value), line))
            if kind != _kind(value):
                raise InputError(
                    f"{name} line {line}: {column!r} is {_kind(value)} here and {kind} in line {before}; "
                    "make the column one kind"
                ) from None
    raise InputError(
        f"{name} lines {piece[0][0]} to {piece[-1][0]} hold values that no column can hold together ({error}); "
        "make the column one kind"
    ) from None


def _is_half_character(*values: object) -> bool:
    """Whether one of their texts cannot be written as UTF-8: JSON can name each half of a UTF-16 pair by itself."""
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
