"""A row's choices: the columns that they come from, and how labels refer to the correct one."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import pyarrow.compute as pc

from backend.contract.catalog import Column
from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.data.rows import Rows
from backend.tasks._texts import label_values, strings
from backend.tasks.task import Columns, iterate_chunks, split_key

LETTERS = "abcdefgh"
MAX_COLUMNS = len(LETTERS)


def _default_names(number: int) -> list[str]:
    """Names counted from 0 first; if the previous choice has that name, the data counts from 1."""
    letter = LETTERS[number]
    from_0 = [f"{stem}{number}" for stem in ("choice_", "choice", "ending", "ending_", "answer", "option", "answer_")]
    from_1 = [f"{stem}{number + 1}" for stem in ("choice_", "choice", "ending", "sol", "answer", "option", "solution")]
    return [*from_0, letter, f"option_{letter}", f"op{letter}", *from_1]


CHOICE_COLUMNS = (
    Column(
        "choices", "Choices", "A list of all choices, also as JSON text.", required=False,
        usual_names=["choices", "endings", "options", "answers", "candidates", "alternatives"],
    ),
    *(
        Column(f"choice_{number}", f"Choice {number}", "One of the choices, if each has its own column.", required=False, usual_names=_default_names(number))
        for number in range(MAX_COLUMNS)
    ),
)  # fmt: skip


class Written(StrEnum):
    """How labels refer to the right choice."""

    FROM_0 = "from_0"
    FROM_1 = "from_1"
    CAPITALS = "capitals"
    LETTERS = "letters"
    NAMES = "names"
    TEXT = "text"

    @property
    def sentence(self) -> str:
        """The meaning, for people."""
        return _SENTENCES[self]


_SENTENCES = {
    Written.FROM_0: message("The labels are numbers; the first choice is 0."),
    Written.FROM_1: message(
        "The labels are numbers; the first choice is 1. probability_0 still belongs to the first choice."
    ),
    Written.CAPITALS: message("The labels are letters: A is the first choice."),
    Written.LETTERS: message("The labels are letters: a is the first choice."),
    Written.NAMES: message("The labels are the names of the choices, which are in a separate column."),
    Written.TEXT: message("The labels are the texts of the correct choices."),
}


@dataclass(frozen=True)
class Choices:
    """The choices of some rows: the `texts` of each, their common start, their `names` if the data has them, and their
    `labels`, which are empty texts if unknown.
    """

    rows: Rows
    texts: list[list[str]]
    beginnings: list[str] | None
    names: list[list[str]] | None
    labels: list[str]

    def endings(self) -> list[list[str]]:
        """The text that a model reads after the row's text, for each choice of each row."""
        if self.beginnings is None:
            return self.texts
        return [
            [f"{beginning} {text}" if beginning.strip() else text for text in one]
            for beginning, one in zip(self.beginnings, self.texts, strict=True)
        ]

    def numbers(self, written: Written) -> list[int | None]:
        """The index of the choice that each row's label refers to; None if it matches none."""
        return [self._number(row, label.strip(), written) for row, label in enumerate(self.labels)]

    def _number(self, row: int, label: str, written: Written) -> int | None:
        if not label:
            return None
        if written is Written.NAMES and self.names is not None:
            return _index_of(label, self.names[row])
        if written in (Written.TEXT, Written.NAMES):
            return _index_of(label, [text.strip() for text in self.texts[row]])
        if written in (Written.LETTERS, Written.CAPITALS):
            number = LETTERS.find(label.lower()) if len(label) == 1 else -1
        else:
            whole = _parse_integer(label)
            number = -1 if whole is None else whole - (written is Written.FROM_1)
        return number if 0 <= number < len(self.texts[row]) else None

    def first_unmatched(self, written: Written) -> int | None:
        """The first row whose label matches none of its choices."""
        labelled = enumerate(zip(self.numbers(written), self.labels, strict=True))
        return next((row for row, (number, label) in labelled if number is None and label.strip()), None)

    def label_texts(self, numbers: list[int], written: Written) -> list[str]:
        """Each row's label for the choice with this number."""
        return [self._label_text(row, number, written) for row, number in enumerate(numbers)]

    def _label_text(self, row: int, number: int, written: Written) -> str:
        if written is Written.NAMES and self.names is not None:
            return self.names[row][number]
        if written in (Written.TEXT, Written.NAMES):
            return self.texts[row][number]
        if written in (Written.LETTERS, Written.CAPITALS):
            return LETTERS[number].upper() if written is Written.CAPITALS else LETTERS[number]
        return str(number + (written is Written.FROM_1))


def read_in_parts(rows: Rows, columns: Columns) -> Iterator[Choices]:
    """The choices of all rows, some at a time, because they may not fit in memory."""
    return (read_choices(rows, columns, chunk) for chunk in iterate_chunks(len(rows)))


def check_count(rows: Rows, columns: Columns, split: str, expected: int | None) -> int:
    """The number of choices per row. Raises InputError that names the first row with another number."""
    wanted = expected
    for part in read_in_parts(rows, columns):
        wanted = len(part.texts[0]) if wanted is None else wanted
        row = next((row for row, one in enumerate(part.texts) if len(one) != wanted), None)
        if row is not None:
            raise InputError(
                (
                    message(
                        "{split}: {rows} has {texts} choices, but the rows before it have {wanted}; give every "
                        "row the same number of choices",
                        split=split_key(split),
                        rows=part.rows.place(row),
                        texts=len(part.texts[row]),
                        wanted=wanted,
                    )
                    if expected is None
                    else message(
                        "{split}: {rows} has {texts} choices, but the training rows have {wanted}; give every "
                        "row the same number of choices",
                        split=split_key(split),
                        rows=part.rows.place(row),
                        texts=len(part.texts[row]),
                        wanted=wanted,
                    )
                ),
                split_key(split),
            )
    if wanted is None or wanted < 2:
        raise InputError(
            "data.columns: {rows} has {wanted} choice; provide at least two, in one column of lists "
            "(data.columns.choices) or in separate columns (data.columns.choice_0, choice_1, …)",
            "data.columns.choices",
            rows=rows.place(0),
            wanted=wanted,
        )
    return wanted


def check_labels(rows: Rows, columns: Columns, split: str, written: Written) -> None:
    """Raises InputError that names the first row whose label matches none of its choices."""
    for part in read_in_parts(rows, columns):
        row = part.first_unmatched(written)
        if row is not None:
            _check_any_matches(rows, columns, written)
            raise InputError(
                "{split}: {rows} has the label {labels}, which is not one of its {texts} choices "
                "({sentence}); correct the row, or set task.first_choice",
                split_key(split),
                split=split_key(split),
                rows=part.rows.place(row),
                labels=repr(part.labels[row]),
                texts=len(part.texts[row]),
                sentence=f"{written.sentence[:1].lower()}{written.sentence[1:].rstrip('.')}",
            )


def _check_any_matches(rows: Rows, columns: Columns, written: Written) -> None:
    """Raises InputError if no label matches a choice of its row: the whole column is the wrong one, not one row."""
    if any(number is not None for part in read_in_parts(rows, columns) for number in part.numbers(written)):
        return
    label = columns["label"]
    raise InputError(
        "data.columns.label: “{column}” names none of the choices in any row, for example {value}, so it cannot be the "
        "correct choice; choose another column ({there}), or set task.first_choice",
        "data.columns.label",
        column=label,
        value=repr(next(text for text in strings(rows.table[label]).to_pylist() if text.strip())),
        there=", ".join(rows.table.column_names),
    )


def detect_label_style(rows: Rows, columns: Columns, count: int, first_choice: str) -> Written:
    """How the labels refer to the `count` choices. Raises InputError if numbers may count from 0 or from 1."""

    def all_match(written: Written) -> bool:
        return all(part.first_unmatched(written) is None for part in read_in_parts(rows, columns))

    different = pc.call_function("unique", [strings(rows.table[columns["label"]])]).to_pylist()
    known = sorted({label.strip() for label in different if label.strip()})
    if read_choices(rows, columns, range(1)).names is not None and all_match(Written.NAMES):
        return Written.NAMES
    numbers = [number for label in known if (number := _parse_integer(label)) is not None]
    if len(numbers) == len(known):
        return _from(numbers, count, first_choice, all_match)
    if all(len(label) == 1 and label.lower() in LETTERS[:count] for label in known):
        return Written.CAPITALS if known[0].isupper() else Written.LETTERS
    return Written.TEXT


def _from(numbers: list[int], count: int, first_choice: str, all_call: Callable[[Written], bool]) -> Written:
    if first_choice != "auto":
        return Written.FROM_1 if first_choice == "1" else Written.FROM_0
    if min(numbers) == 0:
        return Written.FROM_0
    if max(numbers) == count:
        return Written.FROM_1
    if max(numbers) > count and all_call(Written.TEXT):
        return Written.TEXT
    listed = ", ".join(map(str, sorted(set(numbers))[:4]))
    raise InputError(
        "data.columns.label: the labels ({labels}) may number the {count} choices from 0 or from "
        "1, because neither 0 nor {count} occurs; set task.first_choice to 0 or 1",
        "task.first_choice",
        labels=listed,
        count=count,
    )


def read_choices(rows: Rows, columns: Columns, chunk: range) -> Choices:
    """The choices of consecutive rows. Raises InputError if no column holds any, or a cell does not hold a list."""
    part = _slice_rows(rows, chunk)
    beginnings = strings(part.table[columns["text_pair"]]).to_pylist() if "text_pair" in columns else None
    values = label_values(part, columns)
    labels = [""] * len(chunk) if values is None else strings(values).to_pylist()
    if "choices" in columns:
        texts, names = _read_lists(part, columns["choices"])
        return Choices(part, texts, beginnings, names, labels)
    apart = [columns[f"choice_{number}"] for number in range(MAX_COLUMNS) if f"choice_{number}" in columns]
    if len(apart) < 2:
        raise InputError(
            "data.columns.choices: specify which column contains the list of choices, or one column "
            "for each choice (data.columns.choice_0, choice_1, …); the columns are {column_names}",
            "data.columns.choices",
            column_names=", ".join(rows.table.column_names),
        )
    cells = zip(*(strings(part.table[column]).to_pylist() for column in apart), strict=True)
    return Choices(part, [_strip_empty(row) for row in cells], beginnings, None, labels)


def _strip_empty(cells: tuple[str, ...]) -> list[str]:
    """The choices without trailing empty cells; an empty one between others keeps its number."""
    last = max((number for number, text in enumerate(cells) if text.strip()), default=-1)
    return list(cells[: last + 1])


def _slice_rows(rows: Rows, chunk: range) -> Rows:
    chunk_rows = slice(chunk.start, chunk.stop)
    table = rows.table.slice(chunk.start, len(chunk))
    return replace(rows, table=table, file_index=rows.file_index[chunk_rows], lines=rows.lines[chunk_rows])


def _read_lists(rows: Rows, column: str) -> tuple[list[list[str]], list[list[str]] | None]:
    """The texts of each row's list, and their names if the cells contain them (ARC: `{"text": […], "label": […]}`)."""
    cells = [_cell(value, rows, row, column) for row, value in enumerate(rows.table[column].to_pylist())]
    texts = [[_text(choice) for choice in cell["text"]] for cell in cells]
    if not cells or any("label" not in cell or len(cell["label"]) != len(cell["text"]) for cell in cells):
        return texts, None
    return texts, [[_text(name) for name in cell["label"]] for cell in cells]


def _cell(value: Any, rows: Rows, row: int, column: str) -> dict[str, list[Any]]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            value = None
    if isinstance(value, list):
        return {"text": value}
    if isinstance(value, dict) and isinstance(value.get("text"), list):
        return {name: value[name] for name in ("text", "label") if isinstance(value.get(name), list)}
    raise InputError(
        "data.columns.choices: {rows} has no list of choices in the column {column}; write it as "
        'a JSON list such as ["red", "blue"], or specify one column for each choice '
        "(data.columns.choice_0, choice_1, …)",
        "data.columns.choices",
        rows=rows.place(row),
        column=repr(column),
    )


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _index_of(label: str, among: list[str]) -> int | None:
    return among.index(label) if label in among else None


def _parse_integer(label: str) -> int | None:
    """An integer, also if a table wrote it as 2.0."""
    try:
        number = float(label)
    except ValueError:
        return None
    return int(number) if number.is_integer() else None
