"""Owns one column of texts of data files, read for looking at rather than for training: for counts and comparisons."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from backend.contract.errors import InputError
from backend.contract.spec import DataSection
from backend.data.rows import Rows
from backend.data.sources.files import Files, Settings
from backend.data.sources.source import Report
from backend.run.column_texts import holds_text, text_of
from backend.run.data_report import subject_of_data
from backend.run.material import quiet, reading

LANGUAGE_NAMES = ("language", "lang", "locale", "language_code", "lang_id")
"""What a column with the texts' languages is usually called."""
_LOOKED_AT = 200


@dataclass(frozen=True)
class TextColumn:
    """The texts of a file in order, and the language of each where there is a column of them."""

    rows: Rows
    name: str
    language: str = ""

    def __len__(self) -> int:
        return len(self.rows)

    def texts(self) -> Iterator[str]:
        """Words and messages joined, numbers as they are written; an empty cell is an empty text."""
        return (_text(value) for value in _values(self.rows, self.name))

    def languages(self) -> Iterator[str]:
        """Of each text; empty where there is none."""
        if not self.language:
            return (("") for _ in range(len(self)))
        return (_text(value) for value in _values(self.rows, self.language))


def read_text_column(
    data: str | Sequence[str] | Mapping[str, Any],
    column: str = "",
    language: str | None = "",
    report: Report = quiet,
) -> TextColumn:
    """Read data files of any kind, or the training rows of a `data` section of any source. Without `column` the one with the longest texts is taken; `language` empty takes a
    column of a usual name and None takes none. Raises InputError."""
    rows = _rows_of_section(data, report) if isinstance(data, Mapping) else _rows_of_files(data, report)
    there = rows.table.column_names
    for name, option in ((column, "column"), (language, "language_column")):
        if name and name not in there:
            raise InputError(f"{option}: there is no column {name!r}; there are {', '.join(there)}", option)
    if column and pa.types.is_nested(kind := rows.table.schema.field(column).type) and not holds_text(kind):
        raise InputError(f"column: the column {column!r} holds no text but {kind}", "column")
    if language == "":
        language = next((name for name in there if name.lower() in LANGUAGE_NAMES and name != column), "")
    return TextColumn(rows, column or _longest(rows), language or "")


def _rows_of_files(data: str | Sequence[str], report: Report) -> Rows:
    given = [data] if isinstance(data, str) else list(data)
    if not any(path.strip() for path in given):
        raise _no_data("data")
    files = [str(Path(path).expanduser().absolute()) for path in given]
    rows = Files(Settings()).read("train", DataSection(train=files), reading(report))
    assert rows is not None
    return rows


def _rows_of_section(data: Mapping[str, Any], report: Report) -> Rows:
    subject = subject_of_data(dict(data), {}, None, Path.home())
    rows = subject.source.read("train", subject.data, reading(report))
    if rows is None:
        raise _no_data("data.train")
    return rows


def _no_data(field: str) -> InputError:
    return InputError(f"{field}: name the data, for example a CSV file", field)


def _longest(rows: Rows) -> str:
    texts = [field.name for field in rows.table.schema if holds_text(field.type)]
    if not texts:
        raise InputError("column: this data has no column of texts; choose another file", "column")
    first = rows.table.slice(0, _LOOKED_AT)
    return max(texts, key=lambda name: sum(len(_text(value)) for value in first[name].to_pylist()))


def _values(rows: Rows, name: str) -> Iterator[object]:
    for chunk in rows.table[name].chunks:
        for start in range(0, len(chunk), 4096):
            yield from chunk.slice(start, 4096).to_pylist()


def _text(value: object) -> str:
    return text_of(value) if value is None or isinstance(value, str | list | dict) else str(value)
