"""Owns a long text's tokens with all that is answered of them, a block at a time."""

from collections.abc import Iterator
from dataclasses import fields
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from backend.contract.tokens.options import TokenOptions
from backend.contract.tokens.tokens import Counts, Tokens
from backend.data.sources.source import Report
from backend.tokenizers import inspect, long_text
from backend.tokenizers.columns import NOWHERE, Columns
from backend.tokenizers.encoding import encode
from backend.tokenizers.tables import Arrays, Tables
from backend.tokenizers.text_reading import File, Text

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


_MANY = 1_000_000
"""Characters read at once."""


class Stream:
    """Reads a source to its end once; then `rest` has the counts."""

    def __init__(self, tokenizer: "PreTrainedTokenizerBase", source: File | Text, special_tokens: bool) -> None:
        self._tokenizer, self._source, self._special = tokenizer, source, special_tokens
        self._tables = Tables(tokenizer)
        self._characters = 0
        self._in_word = False

    def arrays(self, report: Report) -> Iterator[Arrays]:
        """Columns of the whole text, offsets from its beginning; the source is closed afterwards."""
        try:
            yield from self._arrays(report)
        finally:
            self._source.close()

    def _arrays(self, report: Report) -> Iterator[Arrays]:
        if not self._tokenizer.is_fast:
            yield self._whole()
            return
        before, after, kind = _ends(self._tokenizer) if self._special else (None, None, 0)
        if before is not None and len(before):
            yield self._tables.arrays(before, [])
        for block in long_text.blocks(self._tokenizer, self._source.read, long_text.BLOCK):
            yield self._of_block(block, kind)
            report(self._source.read_so_far, self._source.size, self._source.unit)
        if after is not None and len(after):
            yield self._tables.arrays(after, [])

    def rest(self) -> Tokens:
        """All but the columns."""
        source = self._source
        told = inspect.about(self._tokenizer, inspect.surrogate_notes(source.replaced))
        return self._tables.finished(
            msgspec.structs.replace(
                told,
                sources=[source.text] if isinstance(source, Text) else [],
                file=source.path if isinstance(source, File) else "",
                file_skip=source.skip,
            )
        )

    def _whole(self) -> Arrays:
        """A tokenizer without offsets gets the text at once, since nobody could tell where a cut is safe."""
        text = "".join(iter(lambda: self._source.read(_MANY), ""))
        columns = encode(self._tokenizer, text, None, TokenOptions(special_tokens=self._special))
        self._count(long_text.Block(columns, text, 0, 0, len(text)))
        return self._tables.arrays(columns, [text])

    def _of_block(self, block: long_text.Block, kind: int) -> Arrays:
        columns = block.columns
        arrays = self._tables.arrays(columns, [block.text])
        own = columns.sequence != NOWHERE
        for name, first in (("start", block.start), ("end", block.start), ("byte_start", block.byte_start), ("byte_end", block.byte_start)):  # fmt: skip
            arrays[name] = arrays[name].astype(np.int64) + np.where(own, first, 0)
        arrays["type"] = np.where(own, kind, 0)
        self._count(block)
        return arrays

    def _count(self, block: long_text.Block) -> None:
        new = block.text[self._characters - block.start : block.done - block.start]
        self._characters = block.done
        joins = bool(new) and self._in_word and not new[0].isspace()
        self._in_word = not new[-1].isspace() if new else self._in_word
        self._tables.counts += Counts(
            text_tokens=int((block.columns.sequence != NOWHERE).sum()),
            characters=len(new),
            bytes=len(new.encode()),
            words=len(new.split()) - joins,
        )


def _ends(tokenizer: "PreTrainedTokenizerBase") -> tuple[Columns, Columns, int]:
    """What is added before and after a text, and the text's type id."""
    around = encode(tokenizer, "a", None, TokenOptions())
    own = np.flatnonzero(around.sequence != NOWHERE)
    if not len(own):
        return around, _slice(around, len(around), len(around)), 0
    first, last = int(own[0]), int(own[-1]) + 1
    return _slice(around, 0, first), _slice(around, last, len(around)), int(around.type[first])


def _slice(columns: Columns, first: int, last: int) -> Columns:
    return Columns(**{one.name: getattr(columns, one.name)[first:last] for one in fields(Columns)})
