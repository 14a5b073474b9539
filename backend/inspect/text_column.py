"""Owns one column of texts of data files, read for looking at rather than for training: for counts and comparisons."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from backend.contract.errors import InputError
from backend.contract.safe_files import user_path
from backend.contract.tokens.text_columns import LOOKED_AT, language_column, text_column
from backend.data.rows import Rows
from backend.data.sources.source import Report
from backend.inspect.column_texts import cells, check_columns, columns_with_text, read_rows, text_of
from backend.preflight.datasets import quiet


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
        return map(_text, cells(self.rows, self.name))

    def languages(self) -> Iterator[str]:
        """Of each text; empty where there is none."""
        if not self.language:
            return (("") for _ in range(len(self)))
        return map(_text, cells(self.rows, self.language))


def read_text_column(
    data: str | Sequence[str] | Mapping[str, Any],
    column: str = "",
    language: str | None = "",
    report: Report = quiet,
) -> TextColumn:
    """Read data files of any kind, or the training rows of a `data` section of any source. Without `column` the one with the longest texts is taken; `language` empty takes a
    column of a usual name and None takes none. Raises InputError."""
    rows = read_rows(_section(data), Path.home(), report)
    check_columns(rows, [column] if column else [], "column", numbers_too=True)
    check_columns(rows, [language] if language else [], "language_column", numbers_too=True)
    if language == "":
        language = language_column([name for name in rows.table.column_names if name != column])
    return TextColumn(rows, column or _longest(rows), language or "")


def _section(data: str | Sequence[str] | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(data, Mapping):
        return dict(data)
    given = [data] if isinstance(data, str) else list(data)
    if not any(path.strip() for path in given):
        raise InputError("data: name the data, for example a CSV file", "data")
    return {"source": "files", "train": [str(user_path(path).absolute()) for path in given]}


def _longest(rows: Rows) -> str:
    names = columns_with_text(rows)
    if not names:
        raise InputError("column: this data has no column of texts; choose another file", "column")
    first = [[_text(cell) for cell in islice(cells(rows, name), LOOKED_AT)] for name in names]
    return text_column(names, list(zip(*first, strict=True)))


def _text(value: object) -> str:
    return text_of(value) if value is None or isinstance(value, str | list | dict) else str(value)
