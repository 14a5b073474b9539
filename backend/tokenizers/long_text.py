"""Tokenises a text of any length in constant memory: block by block, equal to tokenising it whole.

A block is tokenised with some text before and after it, whose tokens are then dropped: so a block has
the context that a tokenizer may look at. A position is accepted as a cut only if a short stretch of
text around it, tokenised alone, gives the same tokens as the block; if no nearby position does, the block grows.
Tokenizers split words at white space by rules that look no further than this, so the cut is exact; if there are no
word boundaries (long runs without a space), it is exact as far as both sides agree over hundreds of characters.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from backend.contract.tokens.options import TokenOptions
from backend.contract.tokens.tokens import Tokens, TokenTotals
from backend.data.sources.source import Report
from backend.tokenizers import AnyTokenizer, tokenize
from backend.tokenizers.encoding import encode
from backend.tokenizers.text import File, Text
from backend.tokenizers.token_table import NOWHERE, Arrays, Columns, Tables

BLOCK = 200_000
"""Characters tokenised at once; about 50 MB of encodings."""
AROUND = 600
"""Characters before and after a cut that are tokenised with it."""
AGREED = 300
"""Of them, those over which both sides must agree."""
NEAR, TRIES = 20_000, 24
"""Places are looked for in so many characters before a block's end, and so many are tried."""
PLAIN = TokenOptions(special_tokens=False)
_GAP = re.compile(r"(?<=\S)\s(?=\S)")
_MANY = 1_000_000
"""Characters read at once."""
Read = Callable[[int], str]
"""The next characters of the text, at most so many; an empty text at its end."""


@dataclass(frozen=True)
class Block:
    """Tokens of a stretch of the text; their offsets point into `text`, which starts at `start` of the whole text."""

    columns: Columns
    text: str
    start: int
    byte_start: int
    done: int
    """Characters of the whole text that are done with this block."""


def blocks(tokenizer: AnyTokenizer, read: Read, size: int) -> Iterator[Block]:
    """The tokens of the whole text, without added special ones; words are numbered across blocks."""
    text, begin, start, byte_start = "", 0, 0, 0
    width, words, over = size, 0, False
    while True:
        while not over and len(text) < begin + width + AROUND:
            more = read(width + AROUND)
            text, over = text + more, not more
        found = encode(tokenizer, text if over else text[: begin + width + AROUND], None, PLAIN)
        cut = len(text) if over else _find_cut(tokenizer, found, text, begin, begin + width)
        if cut is None:
            width *= 2
            continue
        first = int(np.searchsorted(found.start, begin))
        last = len(found) if over else int(np.searchsorted(found.start, cut))
        if start and first < len(found):
            words -= int(found.word[first])
        part = found.part(first, last)
        part = replace(part, word=np.where(part.word == NOWHERE, NOWHERE, part.word + words))
        yield Block(part, text, start, byte_start, start + cut)
        if over:
            return
        words += int(found.word[last]) if last < len(found) else int(found.word[-1:].sum()) + 1
        keep = max(0, cut - AROUND)
        byte_start += len(text[:keep].encode())
        text, begin, start, width = text[keep:], cut - keep, start + keep, size


def _find_cut(tokenizer: AnyTokenizer, found: Columns, text: str, begin: int, near: int) -> int | None:
    """A position shortly before `near` at which the text may be cut; None if there is none."""
    return next((place for place in _cut_candidates(text, begin, near) if _agrees(tokenizer, found, text, place)), None)


def _cut_candidates(text: str, begin: int, near: int) -> list[int]:
    """Line ends first, then word ends, then anywhere between two visible characters."""
    low = max(begin + AROUND, near - NEAR)
    gaps = [match.start() for match in _GAP.finditer(text, low, near)][::-1]
    lines = [place for place in gaps if text[place] == "\n"]
    found = [*lines[: TRIES // 3], *gaps[: TRIES // 3]]
    return found or [place for place in range(near - 1, low, -97) if _is_border(text, place)][:TRIES]


def _is_border(text: str, place: int) -> bool:
    return not any(unicodedata.category(one)[0] in "MC" for one in text[place - 1 : place + 1])


def _agrees(tokenizer: AnyTokenizer, found: Columns, text: str, place: int) -> bool:
    """Whether a token starts here, and the text around it alone gives the same tokens."""
    low = place - AROUND
    alone = encode(tokenizer, text[low : place + AROUND], None, PLAIN)
    one, other = (
        _columns_around(found, place),
        _columns_around(replace(alone, start=alone.start + low, end=alone.end + low), place),
    )
    within = (one.start < place) & (one.end > place)
    same = len(one) == len(other) and all(
        np.array_equal(getattr(one, name), getattr(other, name)) for name in ("ids", "start", "end")
    )
    return bool(len(one) and same and not within.any())


def _columns_around(columns: Columns, place: int) -> Columns:
    first, last = np.searchsorted(columns.start, [place - AGREED, place + AGREED])
    return columns.part(int(first), int(last))


class Stream:
    """Reads a source to its end once; afterwards `rest` has the counts."""

    def __init__(self, tokenizer: AnyTokenizer, source: File | Text, special_tokens: bool) -> None:
        self._tokenizer, self._source, self._special = tokenizer, source, special_tokens
        self._tables = Tables(tokenizer)
        self._characters = 0
        self._in_word = False

    def arrays(self, report: Report) -> Iterator[Arrays]:
        """Columns of the whole text, offsets from its start; the source is closed afterwards."""
        try:
            yield from self._arrays(report)
        finally:
            self._source.close()

    def _arrays(self, report: Report) -> Iterator[Arrays]:
        if not self._tokenizer.is_fast:
            yield self._encode_whole()
            return
        before, after, kind = _ends(self._tokenizer) if self._special else (None, None, 0)
        if before is not None and len(before):
            yield self._tables.arrays(before, [])
        for block in blocks(self._tokenizer, self._source.read, BLOCK):
            yield self._of_block(block, kind)
            report(self._source.read_so_far, self._source.size, self._source.unit)
        if after is not None and len(after):
            yield self._tables.arrays(after, [])

    def facts(self) -> Tokens:
        """Everything but the columns."""
        source = self._source
        facts = tokenize.about(self._tokenizer, tokenize.surrogate_notes(source.replaced))
        return self._tables.finish(
            msgspec.structs.replace(
                facts,
                sources=[source.text] if isinstance(source, Text) else [],
                file=source.path if isinstance(source, File) else "",
                file_skip=source.skip,
            )
        )

    def _encode_whole(self) -> Arrays:
        """Tokenise the whole text at once: without offsets no cut is known to be safe."""
        text = "".join(iter(lambda: self._source.read(_MANY), ""))
        columns = encode(self._tokenizer, text, None, TokenOptions(special_tokens=self._special))
        self._count(Block(columns, text, 0, 0, len(text)))
        return self._tables.arrays(columns, [text])

    def _of_block(self, block: Block, kind: int) -> Arrays:
        columns = block.columns
        arrays = self._tables.arrays(columns, [block.text])
        own = columns.sequence != NOWHERE
        for name, first in (("start", block.start), ("end", block.start), ("byte_start", block.byte_start), ("byte_end", block.byte_start)):  # fmt: skip
            arrays[name] = arrays[name].astype(np.int64) + np.where(own, first, 0)
        arrays["type"] = np.where(own, kind, 0)
        self._count(block)
        return arrays

    def _count(self, block: Block) -> None:
        new = block.text[self._characters - block.start : block.done - block.start]
        self._characters = block.done
        joins = bool(new) and self._in_word and not new[0].isspace()
        self._in_word = not new[-1].isspace() if new else self._in_word
        self._tables.counts += TokenTotals(
            text_tokens=int((block.columns.sequence != NOWHERE).sum()),
            characters=len(new),
            bytes=len(new.encode()),
            words=len(new.split()) - joins,
        )


def _ends(tokenizer: AnyTokenizer) -> tuple[Columns, Columns, int]:
    """The tokens added before and after a text, and the text's type id."""
    around = encode(tokenizer, "a", None, TokenOptions())
    own = np.flatnonzero(around.sequence != NOWHERE)
    if not len(own):
        return around, around.part(len(around), len(around)), 0
    first, last = int(own[0]), int(own[-1]) + 1
    return around.part(0, first), around.part(last, len(around)), int(around.type[first])
