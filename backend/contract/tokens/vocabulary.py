"""Answers about a tokenizer's vocabulary.

The window owns a folder for as long as it shows a vocabulary. `vocabulary` fills it; the other queries read it, so
that any worker can answer them without opening the tokenizer again. The window maps the same Arrow files,
`pieces.arrow` and `merges.arrow`, without loading them.
"""

from typing import Literal

import msgspec

TYPES = ("normal", "special", "added", "byte", "unused")
SearchBy = Literal["text", "regex", "id", "script"]
SEARCH_BY: tuple[SearchBy, ...] = ("text", "regex", "id", "script")


class Vocabulary(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of `vocabulary {tokenizer, folder}`."""

    kind: str
    """`BPE`, `byte-level BPE`, `WordPiece`, `Unigram`, `WordLevel`, or the tokenizer's class if its model is unknown."""
    size: int
    """How many pieces there are."""
    types: dict[str, int]
    """How many pieces of each type."""
    scripts: dict[str, int]
    """How many pieces hold letters of each script, the most frequent first."""
    missing: int = 0
    """Rows of the table without a piece: ids that the model has a row for, or that lie below the highest one."""
    merges: int = 0


class FoundRows(msgspec.Struct, frozen=True):
    """Answer of `find_pieces {folder, table, search, by, types, sort_by, descending}`: a numpy file of row numbers, which
    the reader deletes. `by` is text, regex, id or script; `types` selects piece types, none means all."""

    path: str
    count: int


class MergeNode(msgspec.Struct, frozen=True, array_like=True):
    """One piece in the tree of merges that make another, root first; its parts follow, one level deeper."""

    depth: int
    piece: str
    text: str
    rank: int | None = None
    """Of the merge that makes it; a single sign has none."""


class PieceOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of `piece_origin {tokenizer, id}`: how a piece is made."""

    parts: list[MergeNode] = []
    sentence: str = ""


class PieceCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of `count_pieces {tokenizer, folder, data, column}`, where `data` is a file, several, or the `data` section of a
    spec: a numpy file with how often the piece of each row
    occurs, special tokens not added. `find_pieces` sorts by it as `frequency`."""

    path: str
    used: int
    """How many different pieces occur."""
