"""Reads the labels of rows that have several: lists, JSON lists, texts with a separator, or a column for each label."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from backend.contract.errors import InputError
from backend.data.rows import Rows
from backend.tasks._texts import is_blank
from backend.tasks.task import Columns

SEPARATORS = (";", "|", ",")
"""What is looked for between labels; equally likely ones in this order."""
ROLE = "labels"
_YES = frozenset({"1", "1.0", "true", "yes", "y", "x"})
_NO = frozenset({"0", "0.0", "false", "no", "n", "-", ""})


@dataclass(frozen=True)
class LabelSets:
    """The labels of some rows: each different `kind`, and which one a row has; -1 where nothing is written."""

    kinds: list[tuple[str, ...]]
    numbers: np.ndarray  # (rows,) int64

    @cached_property
    def written(self) -> np.ndarray:
        """(rows,) bool, where the labels of a row are written, even if there are none."""
        return self.numbers >= 0

    def count(self) -> Counter[str]:
        """How many rows have each label."""
        rows = np.bincount(self.numbers[self.written], minlength=len(self.kinds))
        counts: Counter[str] = Counter()
        for kind, number in zip(self.kinds, rows.tolist(), strict=True):
            for label in kind if number else ():
                counts[label] += number
        return counts

    def has(self, labels: Sequence[str]) -> np.ndarray:
        """(rows, labels) bool."""
        places = {label: place for place, label in enumerate(labels)}
        kinds = np.zeros((len(self.kinds) + 1, len(labels)), dtype=bool)  # the last one is that of nothing
        for row, kind in enumerate(self.kinds):
            kinds[row, [places[label] for label in kind if label in places]] = True
        return kinds[self.numbers]

    def first_with(self, label: str) -> int:
        """The first row that has a label."""
        return int(np.flatnonzero(np.isin(self.numbers, [n for n, kind in enumerate(self.kinds) if label in kind]))[0])

    def keys(self) -> list[str]:
        """For each row the rarest of its labels, the first one of equally rare ones; empty without any."""
        counts = self.count()
        rarest = [min(kind, key=lambda label: (counts[label], label), default="") for kind in [*self.kinds, ()]]
        return [rarest[number] for number in self.numbers.tolist()]


def flag_columns(columns: Columns) -> list[str]:
    """The columns that stand for a label each, in their order; empty where one column holds all labels."""
    numbered = [role for role in columns if role.removeprefix(f"{ROLE}_").isdecimal() and role.startswith(f"{ROLE}_")]
    return [columns[role] for role in sorted(numbered, key=lambda role: int(role.rpartition("_")[2]))]


def read_sets(rows: Rows, columns: Columns, separator: str | None) -> LabelSets | None:
    """The labels of every row; None if these rows have no such column. Raises InputError for a cell that is unreadable."""
    flags, there = flag_columns(columns), set(rows.table.column_names)
    if flags and there.issuperset(flags):
        return _of_flags(rows, flags)
    name = columns.get(ROLE)
    return _of_cells(rows, name, separator) if name in there and name is not None else None


def find_separator(rows: Rows, columns: Columns) -> str | None:
    """What stands between the labels of the texts in a column; None if there are only lists, or single labels.

    If several could be it, the one after whose cut the fewest labels are left for the parts that it makes.
    """
    name = columns.get(ROLE)
    if name is None or name not in rows.table.column_names or pa.types.is_nested(rows.table[name].type):
        return None
    cells = [
        one for one in pc.unique(_as_text(rows.table[name])).to_pylist() if one.strip() and _json_list(one) is None
    ]
    inside = [separator for separator in SEPARATORS if any(separator in cell for cell in cells)]
    return min(inside, key=lambda separator: _repeats_less(_cut(cell, separator) for cell in cells), default=None)


def _repeats_less(kinds: Iterable[tuple[str, ...]]) -> float:
    parts = [label for kind in kinds for label in kind]
    return len(set(parts)) / max(1, len(parts))


def free_separator(labels: Iterable[str]) -> str | None:
    """The first separator that is part of no label."""
    text = "\n".join(labels)
    return next((separator for separator in SEPARATORS if separator not in text), None)


def join_labels(has: np.ndarray, labels: Sequence[str], separator: str) -> list[str]:
    """(rows, labels) bool → each row's labels as one text."""
    if not len(has):
        return []
    packed = np.packbits(has, axis=1)
    _, first, number = np.unique(packed, axis=0, return_index=True, return_inverse=True)
    texts = [separator.join(labels[place] for place in np.flatnonzero(has[row]).tolist()) for row in first]
    return [texts[one] for one in number.ravel().tolist()]


def _of_cells(rows: Rows, name: str, separator: str | None) -> LabelSets:
    column = rows.table[name]
    kinds: dict[tuple[str, ...] | None, int] = {}
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type) or pa.types.is_fixed_size_list(column.type):
        cells = [_of_list(cell, rows, name, row) for row, cell in enumerate(column.to_pylist())]
        numbers = np.array([kinds.setdefault(cell or None, len(kinds)) for cell in cells], np.int64)
    elif pa.types.is_nested(column.type):
        raise _unreadable(rows, name, 0, column[0].as_py())
    else:
        texts = pc.dictionary_encode(_as_text(column)).combine_chunks()
        texts = texts.unify_dictionaries().chunk(0) if isinstance(texts, pa.ChunkedArray) else texts
        cells = [_of_text(cell, separator) for cell in texts.dictionary.to_pylist()]
        of_cell = np.array([kinds.setdefault(cell or None, len(kinds)) for cell in cells], np.int64)
        numbers = of_cell[texts.indices.to_numpy()] if len(cells) else np.zeros(len(rows), np.int64)
    return _without_blank(kinds, numbers)


def _without_blank(kinds: dict[tuple[str, ...] | None, int], numbers: np.ndarray) -> LabelSets:
    """The kinds without that of empty cells."""
    listed = list(kinds)
    if None not in kinds:
        return LabelSets([kind for kind in listed if kind is not None], numbers)
    blank = kinds[None]
    numbers = np.where(numbers == blank, -1, numbers - (numbers > blank))
    return LabelSets([kind for kind in listed if kind is not None], numbers)


def _of_flags(rows: Rows, names: list[str]) -> LabelSets:
    has = np.stack([_flags(rows, name) for name in names], axis=1)  # (rows, labels) bool
    blank = np.stack([is_blank(rows.table[name]) for name in names], axis=1).all(axis=1)  # (rows,)
    if not len(has):
        return LabelSets([], np.zeros(0, np.int64))
    _, first, numbers = np.unique(np.packbits(has, axis=1), axis=0, return_index=True, return_inverse=True)
    kinds = [tuple(names[place] for place in np.flatnonzero(has[row])) for row in first]
    return LabelSets(kinds, np.where(blank, -1, numbers.ravel()).astype(np.int64))


def _flags(rows: Rows, name: str) -> np.ndarray:
    """(rows,) bool. Raises InputError for a cell that says neither yes nor no."""
    column = rows.table[name]
    if pa.types.is_nested(column.type):
        raise _no_flag(rows, name, 0, column[0].as_py())
    words = pc.utf8_lower(pc.utf8_trim_whitespace(_as_text(column)))
    yes = pc.is_in(words, pa.array(sorted(_YES))).to_numpy()
    no = pc.is_in(words, pa.array(sorted(_NO))).to_numpy()
    strange = np.flatnonzero(~(yes | no))
    if len(strange):
        raise _no_flag(rows, name, int(strange[0]), column[int(strange[0])].as_py())
    return yes


def _as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return pc.fill_null(column.cast(pa.string()), "")


def _of_text(cell: str, separator: str | None) -> tuple[str, ...]:
    listed = _json_list(cell)
    return _tidy(listed) if listed is not None else _cut(cell, separator)


def _cut(cell: str, separator: str | None) -> tuple[str, ...]:
    return _tidy(cell.split(separator) if separator else [cell])


def _json_list(cell: str) -> list[Any] | None:
    """The list of words or numbers that a text is as JSON; None if it is none."""
    if not cell.lstrip().startswith("["):
        return None
    try:
        found = json.loads(cell)
    except (ValueError, RecursionError):
        return None
    is_plain = isinstance(found, list) and all(one is None or isinstance(one, str | int | float) for one in found)
    return found if is_plain else None


def _of_list(cell: Any, rows: Rows, name: str, row: int) -> tuple[str, ...]:
    if any(isinstance(one, list | dict) for one in cell or ()):
        raise _unreadable(rows, name, row, cell)
    return _tidy(cell or ())


def _tidy(labels: Iterable[Any]) -> tuple[str, ...]:
    """Each label once, as text without spaces around it, in the order of the row."""
    words = (
        str(int(one)) if isinstance(one, float) and one.is_integer() else str(one) for one in labels if one is not None
    )
    return tuple(dict.fromkeys(word for one in words if (word := one.strip())))


def _unreadable(rows: Rows, name: str, row: int, cell: Any) -> InputError:
    return InputError(
        "data.columns.labels: {rows} has {cell} in the column {name}, which is no list of labels; write each row's labels as a "
        "list of words, or as one text with a separator",
        "data.columns.labels",
        rows=rows.place(row),
        cell=str(cell)[:60],
        name=repr(name),
    )


def _no_flag(rows: Rows, name: str, row: int, cell: Any) -> InputError:
    return InputError(
        "data.columns.labels: {rows} has {cell} in the column {name}, which says neither yes nor no; write 1 or 0, yes or no, "
        "true or false, or x and nothing",
        "data.columns.labels",
        rows=rows.place(row),
        cell=repr(str(cell)[:60]),
        name=repr(name),
    )
