"""Owns JSONL and JSON: one object a line, or one list of objects; types stay as they are and null stays null."""

import json
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from backend.contract.errors import InputError
from backend.contract.safe_files import MAX_JSON
from backend.contract.safe_text import parse_json
from backend.data.formats import records
from backend.data.formats.reader import Options, Piece
from backend.data.formats.records import Record
from backend.data.formats.text_file import TextFile


class JsonLines:
    """One object a line. Lines that hold none are skipped; a key that an object lacks is null."""

    def __init__(self, path: Path, options: Options) -> None:
        self.skipped: list[tuple[int, str]] = []
        self._text = TextFile(path, options.encoding)
        self._max_rows = options.max_rows

    def schema(self) -> pa.Schema:
        """The columns of all objects together."""
        schema = records.schema_of(self._records(), self._text.name)
        if not schema.names:
            first = f": line {self.skipped[0][0]} is {self.skipped[0][1]}" if self.skipped else ""
            raise InputError(f"{self._text.name} holds no JSON object{first}; write one object a line")
        return schema

    def pieces(self, schema: pa.Schema) -> Iterator[Piece]:
        """The objects in order."""
        for piece in records.in_pieces(self._records()):
            batch = pa.record_batch(records.columns_of(piece, schema, self._text.name), schema=schema)
            yield Piece(batch, _lines(piece), self._text.position)

    def _records(self) -> Iterator[Record]:
        return islice(self._all_records(), self._max_rows)

    def _all_records(self) -> Iterator[Record]:
        self.skipped.clear()  # the file is walked twice, once for the schema
        with closing(self._text.lines("\n")) as lines:
            for line, content in enumerate(lines, 1):
                if not content.strip():
                    continue
                value = _decoded(content)
                if isinstance(value, dict):
                    yield line, value
                else:
                    self.skipped.append((line, "no JSON object"))


class JsonList:
    """A list of objects, or an object whose `data` is one; read into memory as a whole."""

    def __init__(self, path: Path, options: Options) -> None:
        self.skipped: list[tuple[int, str]] = []
        self._name = path.name
        text = _whole(TextFile(path, options.encoding))
        self._size = path.stat().st_size
        self._records = list(enumerate(_objects(text, path.name), 1))
        for number, value in self._records:
            if not isinstance(value, dict):
                self.skipped.append((number, "no JSON object"))
        self._records = [record for record in self._records if isinstance(record[1], dict)]

    def schema(self) -> pa.Schema:
        """The columns of all objects together."""
        schema = records.schema_of(self._records, self._name)
        if not schema.names:
            raise InputError(f"{self._name} holds no JSON object; give a list of objects")
        return schema

    def pieces(self, schema: pa.Schema) -> Iterator[Piece]:
        """The objects in order; for want of lines they are numbered."""
        for piece in records.in_pieces(self._records):
            batch = pa.record_batch(records.columns_of(piece, schema, self._name), schema=schema)
            yield Piece(batch, _lines(piece), self._size)


def is_json_lines(head: str) -> bool:
    """Whether text that begins with an object has more than one, each on a line of its own."""
    first, _, rest = head.strip().partition("\n")
    return bool(rest.strip()) and isinstance(_decoded(first), dict)


def begins_with_object(head: str) -> bool:
    """Whether the first line is an object by itself, or too long to tell."""
    first, end, _ = head.strip().partition("\n")
    return isinstance(_decoded(first), dict) or (not end and len(first) > 60_000)


def _whole(file: TextFile) -> str:
    parts: list[str] = []
    size = 0
    with closing(file.lines("")) as lines:
        for line in lines:
            parts.append(line)
            size += len(line)
            if size > MAX_JSON:
                raise InputError(
                    f"{file.name} is too large for one JSON document; write one object a line (JSON lines)"
                )
    return "".join(parts)


def _lines(piece: list[Record]) -> np.ndarray:
    return np.array([line for line, _ in piece], dtype=np.int64)


def _decoded(content: str) -> object:
    try:
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, RecursionError):
        return _decoded_leniently(content)


def _decoded_leniently(content: str) -> object:
    """Python's own decoder also takes NaN and Infinity, which pandas and others write."""
    try:
        return parse_json(content)
    except ValueError:
        return None


def _objects(text: str, name: str) -> list[Any]:
    try:
        value = parse_json(text)
    except json.JSONDecodeError as error:
        raise InputError(
            f"{name} line {error.lineno} is not valid JSON ({error.msg}); mend it, or set data.format: jsonl "
            "if every line is an object"
        ) from None
    except ValueError as error:  # nested too deep, or a number of thousands of digits
        raise InputError(f"{name} cannot be read as JSON ({str(error).split(';')[0]}); correct it") from None
    if isinstance(value, dict) and isinstance(value.get("data"), list):
        value = value["data"]
    if not isinstance(value, list):
        keys = f" with the keys {', '.join(map(str, value))}" if isinstance(value, dict) else ""
        raise InputError(f'{name} holds one {type(value).__name__}{keys}; give a list of objects, or {{"data": [...]}}')
    return value
