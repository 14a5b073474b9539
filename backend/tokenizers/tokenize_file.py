"""Tokenises a file's lines into an Arrow file, in constant memory."""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from backend.contract.errors import InputError
from backend.contract.output_file import whole_file
from backend.contract.tokens.options import USUAL, TokenOptions
from backend.data.sources.source import Report
from backend.tokenizers import AnyTokenizer
from backend.tokenizers.encoding import check, encode_rows, raw
from backend.tokenizers.text import MARK, replace_surrogates

ROWS = 1_000
CHARACTERS = 500_000
"""A block has at most so many rows, and ends after the row with which it has so many characters."""


def write(
    tokenizer: AnyTokenizer, source: Path, target: Path, options: TokenOptions, report: Report
) -> tuple[int, int]:
    """Rows and tokens written: `ids`, `attention_mask` and `offsets` (start and end alternating) per line."""
    import pyarrow as pa

    numbers, marks = pa.list_(pa.int32()), pa.list_(pa.int8())
    schema = pa.schema({"ids": numbers, "attention_mask": marks, "offsets": numbers})
    rows = tokens = 0
    lines = _Lines(source)
    with (
        whole_file(target, "--output", source) as beside,
        pa.OSFile(str(beside), "wb") as file,
        pa.ipc.new_file(file, schema) as writer,
    ):
        for block in encode_blocks(tokenizer, iter(lines), options):
            begins = pa.array(block.begins, pa.int32())
            columns: list[Any] = [
                pa.ListArray.from_arrays(begins, pa.array(block.ids)),
                pa.ListArray.from_arrays(begins, pa.array(block.mask)),
                pa.ListArray.from_arrays(pa.array(block.begins * 2, pa.int32()), pa.array(block.offsets.ravel())),
            ]
            writer.write_batch(pa.record_batch(columns, schema=schema))
            rows, tokens = rows + len(block), tokens + len(block.ids)
            report(lines.read_so_far, lines.size, "bytes")
    return rows, tokens


class _Lines:
    """The lines of a UTF-8 file without their ends."""

    def __init__(self, path: Path) -> None:
        self._path, self.read_so_far = path, 0
        try:
            self.size = path.stat().st_size
        except OSError as error:
            raise InputError("--file {path}: {strerror}; check the file", path=path, strerror=error.strerror) from None

    def __iter__(self) -> Iterator[str]:
        with self._path.open("rb") as file:
            for number, line in enumerate(file, 1):
                self.read_so_far += len(line)
                try:
                    text = (line.removeprefix(MARK) if number == 1 else line).decode()
                except UnicodeDecodeError:
                    raise InputError(
                        "--file {path}:{number} is not UTF-8 text; convert it first", path=self._path, number=number
                    ) from None
                yield text.rstrip("\r\n")


@dataclass(frozen=True)
class Rows:
    """Concatenated tokens of some rows; row *i* has those from `begins[i]` to `begins[i + 1]`."""

    begins: np.ndarray
    ids: np.ndarray
    mask: np.ndarray
    offsets: np.ndarray
    """(tokens, 2) characters of the row."""

    def __len__(self) -> int:
        return len(self.begins) - 1


def encode_blocks(tokenizer: AnyTokenizer, texts: Iterable[str], options: TokenOptions = USUAL) -> Iterator[Rows]:
    """The tokens of every text, in order, a block of rows at a time. Raises InputError for invalid options.

    While one block is read, the library's own threads tokenise the next one.
    """
    check(tokenizer, options, False)
    parts = _blocks(texts)
    if not tokenizer.is_fast:
        yield from (_join_rows(encode_rows(tokenizer, part, options)) for part in parts)
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


def _library(tokenizer: AnyTokenizer, texts: list[str], options: TokenOptions) -> list[Any]:
    """The library's encodings, called directly if nothing is cut, padded or split, because transformers copies."""
    if options.plain and not tokenizer.split_special_tokens:
        return tokenizer.backend_tokenizer.encode_batch(texts, add_special_tokens=options.special_tokens)  # type: ignore[attr-defined]
    return raw(tokenizer, texts, None, options)


def _blocks(texts: Iterable[str]) -> Iterator[list[str]]:
    rest = iter(texts)
    while True:
        block: list[str] = []
        size = 0
        for text in islice(rest, ROWS):
            block.append(replace_surrogates(text)[0])
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


def _join_rows(rows: list[Any]) -> Rows:
    begins = np.cumsum([0, *(len(row) for row in rows)])
    return Rows(
        begins,
        np.concatenate([row.ids for row in rows]).astype(np.int32),
        np.concatenate([row.mask for row in rows]).astype(np.int8),
        np.concatenate([np.stack([row.start, row.end], 1) for row in rows]).astype(np.int32),
    )
