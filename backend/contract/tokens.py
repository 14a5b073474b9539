"""Owns the answers to questions about one text and one tokenizer."""

import msgspec


class Token(msgspec.Struct, frozen=True, array_like=True):
    """One token of `tokenize`."""

    id: int
    piece: str
    text: str
    start: int
    end: int
    special: bool = False


class Tokens(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of `tokenize {tokenizer, text, options}`; offsets count characters of the text."""

    tokens: list[Token]
    characters: int
    words: int
    unknown: int
    truncated_at: int | None = None
    stored_truncation: str = ""
    """What the tokenizer file has stored as truncation and padding (switched off here)."""
