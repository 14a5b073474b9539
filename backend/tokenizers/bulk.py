"""Owns the tokenising of many rows in constant memory: ids, masks and offsets as flat arrays, a block of rows at a time.

While one block is read out, the library's own threads tokenise the next one.
"""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import numpy as np

from backend.contract.tokens.options import USUAL, TokenOptions
from backend.tokenizers.encoding import check, encode_rows, raw
from backend.tokenizers.sources import cleaned

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

ROWS = 1_000
CHARACTERS = 500_000
"""A block has at most so many rows, and ends after the row with which it has so many characters."""


@dataclass(frozen=True)
class Rows:
    """Tokens of some rows after each other; row *i* has those from `begins[i]` to `begins[i + 1]`."""

    begins: np.ndarray
    ids: np.ndarray
    mask: np.ndarray
    offsets: np.ndarray
    """(tokens, 2) characters of the row."""

    def __len__(self) -> int:
        return len(self.begins) - 1


def encoded(
    tokenizer: "PreTrainedTokenizerBase", texts: Iterable[str], options: TokenOptions = USUAL
) -> Iterator[Rows]:
    """The tokens of every text, in order. Raises InputError for options that cannot be."""
    check(tokenizer, options, False)
    parts = _blocks(texts)
    if not tokenizer.is_fast:
        yield from (_joined(encode_rows(tokenizer, part, None, options)) for part in parts)
        return
    with ThreadPoolExecutor(1) as ahead:
        coming = None
        for part in parts:
            later = ahead.submit(_library, tokenizer, part, options)
            if coming is not None:
                yield _read_out(coming.result())
            coming = later
        if coming is not None:
            yield _read_out(coming.result())


def _library(tokenizer: "PreTrainedTokenizerBase", texts: list[str], options: TokenOptions) -> list[Any]:
    """The library's encodings; plainly asked for where nothing is cut, split or filled, since transformers copies."""
    if options.plain and not tokenizer.split_special_tokens:
        return tokenizer.backend_tokenizer.encode_batch(texts, add_special_tokens=options.special_tokens)  # type: ignore[attr-defined]
    return raw(tokenizer, texts, None, options)


def _blocks(texts: Iterable[str]) -> Iterator[list[str]]:
    rest = iter(texts)
    while True:
        block: list[str] = []
        size = 0
        for text in islice(rest, ROWS):
            block.append(cleaned(text)[0])
            size += len(text)
            if size >= CHARACTERS:
                break
        if not block:
            return
        yield block


def _read_out(encodings: list[Any]) -> Rows:
    ids = [one.ids for one in encodings]
    begins = np.zeros(len(ids) + 1, np.int64)
    np.cumsum([len(one) for one in ids], out=begins[1:])
    count = int(begins[-1])
    offsets = chain.from_iterable(chain.from_iterable(one.offsets for one in encodings))
    return Rows(
        begins,
        np.fromiter(chain.from_iterable(ids), np.int32, count),
        np.fromiter(chain.from_iterable(one.attention_mask for one in encodings), np.int8, count),
        np.fromiter(offsets, np.int32, 2 * count).reshape(-1, 2),
    )


def _joined(rows: list[Any]) -> Rows:
    begins = np.cumsum([0, *(len(row) for row in rows)])
    return Rows(
        begins,
        np.concatenate([row.ids for row in rows]).astype(np.int32),
        np.concatenate([row.mask for row in rows]).astype(np.int8),
        np.concatenate([np.stack([row.start, row.end], 1) for row in rows]).astype(np.int32),
    )
