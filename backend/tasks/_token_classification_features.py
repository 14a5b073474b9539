"""Reads words and their tags from rows, aligns words with tokens, and cuts long sentences into windows."""

import ast
import json
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from backend.contract.errors import InputError
from backend.data.rows import Rows
from backend.tasks.task import iterate_chunks

NO_WORD = -1


@dataclass(frozen=True)
class Tags:
    """The tags of all words of all rows, one after another."""

    names: tuple[str, ...]
    """Every different tag, in the order of first appearance."""
    ids: np.ndarray  # (words,) int32, index into names; -1 if the row is not tagged
    words: np.ndarray  # (rows,) int64, words of each row
    tagged: np.ndarray  # (rows,) bool, a tag for every word

    @property
    def starts(self) -> np.ndarray:
        """(rows,) int64, the index of each row's first word."""
        return np.cumsum(self.words) - self.words

    @property
    def first(self) -> np.ndarray:
        """(words,) bool, the first word of a row."""
        found = np.zeros(len(self.ids), dtype=bool)
        found[self.starts[self.words > 0]] = True
        return found

    def used_names(self) -> set[str]:
        """The tag names that occur."""
        return {self.names[one] for one in np.unique(self.ids[self.ids >= 0])}

    def row_of(self, word: int) -> int:
        """The row of a word."""
        return int(np.searchsorted(np.cumsum(self.words), word, side="right"))

    def row_tags(self) -> Iterator[list[str] | None]:
        """The tags of each row; None if it is untagged."""
        names = np.array([*self.names, ""], dtype=object)
        for start, count, tagged in zip(self.starts.tolist(), self.words.tolist(), self.tagged.tolist(), strict=True):
            yield names[self.ids[start : start + count]].tolist() if tagged else None

    def joined_tags(self) -> list[str | None]:
        """The space-joined tags of each row; None if it is untagged."""
        return [None if tags is None else " ".join(tags) for tags in self.row_tags()]


def words_of(column: pa.ChunkedArray, chunk: range) -> list[list[str]]:
    """The words of some rows; a missing word becomes an empty one."""
    return [_split_words(value) for value in column.slice(chunk.start, len(chunk)).to_pylist()]


def tags_of(column: pa.ChunkedArray, chunk: range) -> list[list[str]]:
    """The tags of some rows; a missing tag becomes an empty one."""
    return [_split_tags(value) for value in column.slice(chunk.start, len(chunk)).to_pylist()]


def read_tags(rows: Rows, words: str, tags: str | None) -> Tags:
    """All tags of the columns `words` and `tags`; a row without tags, or with too few or many, counts as untagged."""
    numbers: dict[str, int] = {}
    ids: list[np.ndarray] = []
    counts: list[int] = []
    tagged: list[bool] = []
    column = rows.table[tags] if tags in rows.table.column_names else None
    for chunk in iterate_chunks(len(rows)):
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


def describe_mismatch(words: list[str], tags: list[str]) -> str:
    """`5 words and 4 tags`, if a row has the wrong number of tags; else empty."""
    if not tags or len(tags) == len(words):
        return ""
    return f"{_format_count(len(words), 'word')} and {_format_count(len(tags), 'tag')}"


def _format_count(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _split_words(value: Any) -> list[str]:
    if value is None:
        return []
    if isinstance(value, list):
        return ["" if one is None else str(one) for one in value]
    text = str(value)
    found = _parse_list(text)
    # A tweet may be "[1]"; only a list that holds text is taken for words.
    if found is not None and any(isinstance(one, str) for one in found):
        return ["" if one is None else str(one) for one in found]
    return text.split()


def _split_tags(value: Any) -> list[str]:
    if value is None:
        return []
    found = value if isinstance(value, list) else _parse_list(str(value))
    if found is None:
        return str(value).split()
    # A tag is one word, as predictions are joined by spaces.
    return ["" if one is None else "_".join(str(one).split()) for one in found]


def _parse_list(text: str) -> list[Any] | None:
    """The list that a cell holds as JSON or as a Python literal (as pandas writes it), if its values are plain."""
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


@dataclass(frozen=True)
class Window:
    """Some tokens of a row, including special ones, and those whose predictions this window provides."""

    positions: np.ndarray  # (length,) int64, in the row's tokens
    owned: np.ndarray  # (length,) bool, tokens of words that no other window has with more context


@dataclass(frozen=True)
class Tokens:
    """The tokens of some rows, one after another."""

    ids: np.ndarray  # (tokens,) int32
    types: np.ndarray | None  # (tokens,) int8
    words: np.ndarray  # (tokens,) int32, number of the word in its row, NO_WORD for special tokens
    lengths: np.ndarray  # (rows,) int64

    @property
    def opens_word(self) -> np.ndarray:
        """(tokens,) bool, the first token of a word."""
        before = np.concatenate([np.full(min(1, len(self.words)), NO_WORD, np.int32), self.words[:-1]])
        starts = np.zeros(len(self.words), dtype=bool)
        ends = np.cumsum(self.lengths)
        starts[(ends - self.lengths)[self.lengths > 0]] = True
        return (self.words != NO_WORD) & (starts | (self.words != before))


def word_tokenizer(tokenizer: Any) -> Any:
    """The tokenizer for pre-split words: with a byte-level one every word starts with its space.

    transformers 5 silently omits that space unless `add_prefix_space` was given at construction, so a copy
    of the tokenizer gets it here. Raises InputError for a tokenizer that does not map tokens to words.
    """
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise InputError(
            "model.tokenizer: this tokenizer cannot tell which word a token belongs to; specify a "
            "folder or Hub ID that has a tokenizer.json (a fast tokenizer)",
            "model.tokenizer",
        )
    if not any(_lacks_space(step) for step in _steps(backend)):
        return tokenizer
    spaced = deepcopy(tokenizer)
    for step in _steps(spaced.backend_tokenizer):
        if _lacks_space(step) and hasattr(step, "add_prefix_space"):
            step.add_prefix_space = True
        elif _lacks_space(step):
            step.prepend_scheme = "always"
    return spaced


def _steps(backend: Any) -> list[Any]:
    whole = backend.pre_tokenizer
    if whole is None:
        return []
    return list(whole) if type(whole).__name__ == "Sequence" else [whole]


def _lacks_space(step: Any) -> bool:
    kind = type(step).__name__  # a ByteLevel after a Split has no spaces left to add
    return (kind == "ByteLevel" and not step.add_prefix_space) or (
        kind == "Metaspace" and step.prepend_scheme == "never"
    )


def tokens_of(tokenizer: Any, sentences: list[list[str]]) -> Tokens:
    """All tokens of some sentences, without truncation; `tokenizer` is from `word_tokenizer`."""
    encoded = tokenizer(sentences, is_split_into_words=True, return_attention_mask=False, verbose=False)
    ids = encoded["input_ids"]
    lengths = np.fromiter(map(len, ids), np.int64, len(ids))
    total = int(lengths.sum())
    owners = (NO_WORD if word is None else word for row in range(len(ids)) for word in encoded.word_ids(row))
    types = encoded.get("token_type_ids")
    return Tokens(
        np.fromiter(chain.from_iterable(ids), np.int32, total),
        np.fromiter(chain.from_iterable(types), np.int8, total) if types is not None else None,
        np.fromiter(owners, np.int32, total),
        lengths,
    )


def windows(words: np.ndarray, opens: np.ndarray, longest: int, stride: int | None, cut: bool) -> Iterator[Window]:
    """The windows of one row: `words` and `opens` are (length,); `longest` includes special tokens, `stride` does not.

    Windows end between words, and each starts at most `stride` tokens before the end of the previous one (a quarter of
    the room, if None). A word belongs to the window with most context around it; `cut` returns only the first window.
    """
    if len(words) <= longest:
        yield Window(np.arange(len(words)), np.ones(len(words), dtype=bool))
        return
    content = np.flatnonzero(words != NO_WORD)
    start, end = (int(content[0]), int(content[-1]) + 1) if len(content) else (len(words), len(words))
    room = longest - start - (len(words) - end)
    _check_room(room, longest, stride)
    spans = _spans(np.flatnonzero(opens[start:end]), end - start, room, room // 4 if stride is None else stride)
    spans = spans[:1] if cut else spans
    owner = _assign_windows(words[start:end], spans)
    for number, (first, last) in enumerate(spans):
        positions = np.concatenate(
            [np.arange(start), np.arange(start + first, start + last), np.arange(end, len(words))]
        )
        owned = np.zeros(len(positions), dtype=bool)
        owned[start : start + last - first] = owner[first:last] == number
        yield Window(positions, owned)


def _check_room(room: int, longest: int, stride: int | None) -> None:
    if room < 1:
        raise InputError(
            "task.max_length: {longest} tokens leave no room for a word in addition to the special tokens; raise it",
            "task.max_length",
            longest=longest,
        )
    if stride is not None and stride >= room:
        raise InputError(
            "task.stride: windows of {longest} tokens have room for {room}, so they cannot overlap by "
            "{stride}; choose less than {room}, or leave it empty",
            "task.stride",
            longest=longest,
            room=room,
            stride=stride,
        )


def _spans(begins: np.ndarray, length: int, room: int, stride: int) -> list[tuple[int, int]]:
    """First and last (exclusive) token of each window; `begins` are the first tokens of words."""
    borders = np.append(begins, length)
    spans: list[tuple[int, int]] = []
    start = end = 0
    while end < length:
        limit = min(start + room, length)
        whole = int(borders[np.searchsorted(borders, limit, side="right") - 1])
        limit = whole if whole > start else limit  # a word that is longer than a window is cut
        if limit > end:
            spans.append((start, limit))
            end = limit
            start = max(start, end - stride - 1)
        start = int(borders[np.searchsorted(borders, start + 1)])
        end = max(end, start)  # the rest of a word that was cut needs no window
    return spans


def _assign_windows(words: np.ndarray, spans: list[tuple[int, int]]) -> np.ndarray:
    """(tokens,) the window that has each token's whole word with the most context or, if none does, its start."""
    best, owner = np.full(len(words), -1.0), np.full(len(words), -1)
    first = np.searchsorted(words, words, side="left")  # words are numbered in order
    last = np.searchsorted(words, words, side="right")
    for number, (start, end) in enumerate(spans):
        # At the row's own beginning and end nothing is missing.
        before = np.where(start == 0, np.inf, first - start)
        after = np.where(end == len(words), np.inf, end - last)
        context = np.minimum(before, after)
        context = np.where((first >= start) & (first < end), np.maximum(context, -0.5), -1.0)
        owner[context > best] = number
        best = np.maximum(best, context)
    return owner
