"""The texts in the columns of some data, however they are stored: for training, counting and comparing."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from backend.contract.errors import InputError
from backend.contract.safe_files import user_path
from backend.contract.tokens.text_columns import LOOKED_AT, language_column, text_column
from backend.data.rows import Rows
from backend.data.sources.source import Report
from backend.inspect.data_report import request_of_data
from backend.preflight.datasets import ignore_progress, reading

AT_ONCE = 1000
MAX_HELD_OUT = 1000


@dataclass(frozen=True)
class ColumnTexts:
    """The texts of some columns. One row in `every`, at most `most`, is held out from training; 0 uses all rows."""

    rows: Rows
    columns: tuple[str, ...]
    every: int = 0

    def __len__(self) -> int:
        """The number of cells to train on."""
        return (len(self.rows) - self.held_out_rows) * len(self.columns)

    @property
    def held_out_rows(self) -> int:
        """The number of held-out rows."""
        return min(MAX_HELD_OUT, -(-len(self.rows) // self.every)) if self.every else 0

    def __iter__(self) -> Iterator[str]:
        """The texts to train on."""
        return self._texts(held_out=False)

    def held_out_texts(self) -> Iterator[str]:
        """The texts of the held-out rows; if there are none, those of the first thousand rows."""
        return self._texts(held_out=True)

    def hold_out(self, share: float) -> "ColumnTexts":
        """The same with that share of the rows held out, spread evenly; none if there are fewer than two rows."""
        if not share or len(self.rows) < 2:
            return ColumnTexts(self.rows, self.columns)
        wanted = min(MAX_HELD_OUT, max(1, int(len(self.rows) * share)))
        return ColumnTexts(self.rows, self.columns, max(2, len(self.rows) // wanted))

    def _texts(self, *, held_out: bool) -> Iterator[str]:
        for start in range(0, len(self.rows), AT_ONCE):
            if held_out and not self.every and start >= MAX_HELD_OUT:
                return
            part = self.rows.table.slice(start, AT_ONCE)
            for name in self.columns:
                for row, value in enumerate(part[name].to_pylist(), start):
                    if self._is_held_out(row) == (held_out and bool(self.every)):
                        yield text_of(value)

    def _is_held_out(self, row: int) -> bool:
        return bool(self.every) and row % self.every == 0 and row // self.every < MAX_HELD_OUT


def read_column_texts(
    data: dict[str, Any],
    columns: list[str] | None,
    base: Path,
    report: Report = ignore_progress,
    field: str = "data.columns",
) -> ColumnTexts:
    """The training rows of a `data` section; without `columns` all that hold text. Relative paths start at `base`.

    Raises InputError if there are no rows, no such column, or no text.
    """
    rows = read_rows(data, base, report)
    check_columns(rows, columns or [], field)
    found = columns or columns_with_text(rows)
    if not found:
        raise InputError(
            "{field}: no column contains text; the columns are {column_names}",
            field,
            field=field,
            column_names=", ".join(rows.table.column_names),
        )
    return ColumnTexts(rows, tuple(found))


def read_rows(data: dict[str, Any], base: Path, report: Report = ignore_progress) -> Rows:
    """The training rows of a `data` section, unchanged. Raises InputError if there are none."""
    subject = request_of_data(data, {}, None, base)
    rows = subject.source.read("train", subject.data, reading(report))
    if rows is None:
        raise InputError("data.train: specify the data, for example a CSV file", "data.train")
    return rows


def check_columns(rows: Rows, names: Sequence[str], field: str, *, numbers_too: bool = False) -> None:
    """Raises InputError for a missing column, or one that cannot be read as text; numbers are allowed on request."""
    there = {one.name: one.type for one in rows.table.schema}
    if missing := [name for name in names if name not in there]:
        raise InputError(
            "{field}: there is no column {missing}; the columns are {there}",
            field,
            field=field,
            missing=repr(missing[0]),
            there=", ".join(there),
        )
    wrong = [
        name for name in names if not holds_text(kind := there[name]) and (pa.types.is_nested(kind) or not numbers_too)
    ]
    if wrong:
        raise InputError(
            "{field}: the column {wrong} does not contain text but {there}",
            field,
            field=field,
            wrong=repr(wrong[0]),
            there=there[wrong[0]],
        )


def columns_with_text(rows: Rows) -> list[str]:
    """The columns whose cells hold text, however they are stored."""
    return [one.name for one in rows.table.schema if holds_text(one.type)]


def cells(rows: Rows, name: str) -> Iterator[Any]:
    """The values of a column, with only some rows in memory at a time."""
    for start in range(0, len(rows), AT_ONCE):
        yield from rows.table[name].slice(start, AT_ONCE).to_pylist()


def holds_text(kind: pa.DataType) -> bool:
    """Whether cells of that type contain text, also in lists (words, messages) or under keys (translations)."""
    if pa.types.is_dictionary(kind):
        return holds_text(kind.value_type)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return holds_text(kind.value_type)
    if pa.types.is_struct(kind):
        return any(holds_text(kind.field(number).type) for number in range(kind.num_fields))
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def text_of(value: Any) -> str:
    """The text of one cell: words of a list are joined by spaces, longer parts and those under keys by line breaks."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "\n".join(filter(None, map(text_of, value.values())))
    if isinstance(value, list):
        return (" " if all(isinstance(each, str) for each in value) else "\n").join(filter(None, map(text_of, value)))
    return ""


@dataclass(frozen=True)
class TextColumn:
    """The texts of a file in order, and each one's language if there is a column for it."""

    rows: Rows
    name: str
    language: str = ""

    def __len__(self) -> int:
        return len(self.rows)

    def texts(self) -> Iterator[str]:
        """Words and messages joined, numbers as written; an empty cell is an empty text."""
        return map(_text, cells(self.rows, self.name))

    def languages(self) -> Iterator[str]:
        """The language of each text; empty if there is none."""
        if not self.language:
            return (("") for _ in range(len(self)))
        return map(_text, cells(self.rows, self.language))


def read_text_column(
    data: str | Sequence[str] | Mapping[str, Any],
    column: str = "",
    language: str | None = "",
    report: Report = ignore_progress,
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
        raise InputError("data: specify the data, for example a CSV file", "data")
    return {"source": "files", "train": [str(user_path(path).absolute()) for path in given]}


def _longest(rows: Rows) -> str:
    names = columns_with_text(rows)
    if not names:
        raise InputError("column: this data has no text column; choose another file", "column")
    first = [[_text(cell) for cell in islice(cells(rows, name), LOOKED_AT)] for name in names]
    return text_column(names, list(zip(*first, strict=True)))


def _text(value: object) -> str:
    return text_of(value) if value is None or isinstance(value, str | list | dict) else str(value)
