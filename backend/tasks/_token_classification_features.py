"""Owns words and their tags as rows hold them: lists, JSON text in a cell, or text split at white space."""

import ast
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from backend.data.rows import Rows
from backend.tasks.task import in_chunks


@dataclass(frozen=True)
class Tags:
    """The tags of all words of all rows, one after another."""

    names: tuple[str, ...]
    """Every different tag, in the order of first appearance."""
    ids: np.ndarray  # (words,) int32, index into names; -1 where the row is not tagged
    words: np.ndarray  # (rows,) int64, words of each row
    tagged: np.ndarray  # (rows,) bool, a tag for every word

    @property
    def starts(self) -> np.ndarray:
        """(rows,) int64, where each row's words begin."""
        return np.cumsum(self.words) - self.words

    @property
    def first(self) -> np.ndarray:
        """(words,) bool, the first word of a row."""
        found = np.zeros(len(self.ids), dtype=bool)
        found[self.starts[self.words > 0]] = True
        return found

    def used(self) -> set[str]:
        """The names that a word has."""
        return {self.names[one] for one in np.unique(self.ids[self.ids >= 0])}

    def row_of(self, word: int) -> int:
        """The row in which a word stands."""
        return int(np.searchsorted(np.cumsum(self.words), word, side="right"))

    def lists(self) -> Iterator[list[str] | None]:
        """The tags of each row; None where it is not tagged."""
        names = np.array([*self.names, ""], dtype=object)
        for start, count, tagged in zip(self.starts.tolist(), self.words.tolist(), self.tagged.tolist(), strict=True):
            yield names[self.ids[start : start + count]].tolist() if tagged else None

    def joined(self) -> list[str | None]:
        """The tags of each row with spaces between; None where it is not tagged."""
        return [None if tags is None else " ".join(tags) for tags in self.lists()]


def words_of(column: pa.ChunkedArray, chunk: range) -> list[list[str]]:
    """The words of some rows; a missing word of a list is an empty one."""
    return [_words(value) for value in column.slice(chunk.start, len(chunk)).to_pylist()]


def tags_of(column: pa.ChunkedArray, chunk: range) -> list[list[str]]:
    """The tags of some rows; where a list lacks one it is empty."""
    return [_tags(value) for value in column.slice(chunk.start, len(chunk)).to_pylist()]


def read_tags(rows: Rows, words: str, tags: str | None) -> Tags:
    """All tags of the columns `words` and `tags`; a row whose tags are absent, or too few or many, is not tagged."""
    numbers: dict[str, int] = {}
    ids: list[np.ndarray] = []
    counts: list[int] = []
    tagged: list[bool] = []
    column = rows.table[tags] if tags in rows.table.column_names else None
    for chunk in in_chunks(len(rows)):
        lengths = [len(one) for one in words_of(rows.table[words], chunk)]
        found = tags_of(column, chunk) if column is not None else [[]] * len(chunk)
        counts += lengths
        for length, one in zip(lengths, found, strict=True):
            tagged.append(bool(one) and len(one) == length and "" not in one)
            if tagged[-1]:
                ids.append(np.array([numbers.setdefault(tag, len(numbers)) for tag in one], np.int32))
            else:
                ids.append(np.full(length, -1, np.int32))
    joined = np.concatenate([*ids, np.zeros(0, np.int32)])
    return Tags(tuple(numbers), joined, np.array(counts, np.int64), np.array(tagged, bool))


def mismatch(words: list[str], tags: list[str]) -> str:
    """`5 words and 4 tags`, where a row has tags and their number is another one; else empty."""
    if not tags or len(tags) == len(words):
        return ""
    return f"{_counted(len(words), 'word')} and {_counted(len(tags), 'tag')}"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _words(value: Any) -> list[str]:
    if value is None:
        return []
    if isinstance(value, list):
        return ["" if one is None else str(one) for one in value]
    text = str(value)
    found = _listed(text)
    # A tweet may be "[1]"; only a list that holds text is taken for words.
    if found is not None and any(isinstance(one, str) for one in found):
        return ["" if one is None else str(one) for one in found]
    return text.split()


def _tags(value: Any) -> list[str]:
    if value is None:
        return []
    found = value if isinstance(value, list) else _listed(str(value))
    if found is None:
        return str(value).split()
    # A tag is one word, as predictions are joined by spaces.
    return ["" if one is None else "_".join(str(one).split()) for one in found]


def _listed(text: str) -> list[Any] | None:
    """The list that a cell holds as JSON, or as Python writes it (pandas does so), if it holds one of plain values."""
    text = text.strip()
    if not (text.startswith("[") and text.endswith("]")):
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        try:
            found = ast.literal_eval(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return None  # text in brackets
    plain = isinstance(found, list) and all(one is None or isinstance(one, str | int | float) for one in found)
    return found if plain else None
