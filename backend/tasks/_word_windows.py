"""Owns the alignment of words with tokens: the token that stands for each word, and windows over long sentences."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from backend.contract.errors import InputError

NO_WORD = -1


@dataclass(frozen=True)
class Window:
    """Some tokens of a row, special ones included, and those of them that are this window's to answer for."""

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
    """The tokenizer for words that are already apart: in byte-level ones every word begins with its space.

    transformers 5 leaves that space out without a word unless `add_prefix_space` was given at construction, so a copy
    of the tokenizer gets it here. Raises InputError for a tokenizer that does not say which word a token belongs to.
    """
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise InputError(
            "model.tokenizer: this tokenizer does not tell which word a token belongs to; name a folder or hub id that "
            "has a tokenizer.json (a fast tokenizer)",
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
    """All tokens of some sentences, nothing cut off; `tokenizer` is from `word_tokenizer`."""
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
    """The windows of one row: `words` and `opens` are (length,), `longest` counts special tokens, as `stride` does not.

    Windows end between words, and each begins at most `stride` tokens before the end of the one before (a quarter of
    the room, if None). A word belongs to the window that has most around it; `cut` gives the first window alone.
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
    owner = _owners(words[start:end], spans)
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
            f"task.max_length: {longest} tokens leave no room for a word beside the special tokens; raise it",
            "task.max_length",
        )
    if stride is not None and stride >= room:
        raise InputError(
            f"task.stride: windows of {longest} tokens have room for {room}, so they cannot overlap by {stride}; "
            f"choose less than {room}, or leave it empty",
            "task.stride",
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


def _owners(words: np.ndarray, spans: list[tuple[int, int]]) -> np.ndarray:
    """(tokens,) the window in which each token's word is whole with most context; where it never is, holds its start."""
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
