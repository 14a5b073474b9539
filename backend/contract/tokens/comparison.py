"""Answers to queries that compare two to four tokenizers, on one text and on a column of data."""

import msgspec

from backend.contract.rpc.data import NumberSummary

FEWEST, MOST = 2, 4
"""Tokenizers that are compared at once."""


class ComparedToken(msgspec.Struct, frozen=True, array_like=True):
    """A token of one of the tokenizers."""

    tokenizer: int
    line: int
    """Index of the text, from 0, in which the token starts."""
    id: int
    piece: str
    text: str
    start: int
    end: int
    special: bool
    differs: bool
    """Whether some of the tokenizers cut otherwise here; spaces, which each takes its own way, are not looked at."""


class TextCounts(msgspec.Struct, frozen=True, kw_only=True):
    """One tokenizer's counts for the whole text."""

    tokenizer: str
    tokens: int
    """Special tokens among them."""
    special: int
    unknown: int
    differing: int
    """Tokens that are not the same piece of text in all tokenizers."""


class TextComparison(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of `compare_text {tokenizers, text, special_tokens}`."""

    tokens: list[ComparedToken]
    """Those of the first tokenizer first, each in the text's order."""
    counts: list[TextCounts]
    lines: int
    characters: int
    words: int
    places: int
    """Stretches of the text that are not cut alike."""


class LanguageCounts(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of one language, or all rows; `tokens` and `unknown` hold one number per tokenizer."""

    language: str
    rows: int
    words: int
    """The text between spaces."""
    characters: int
    bytes: int
    tokens: list[int]
    unknown: list[int]


class DataComparison(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of `compare_data {tokenizers, data, column, language_column}` (`data` as for `count_pieces`) and of `burnish tokenizer compare --json`.
    Special tokens are not added. Languages are sorted by rows, most first."""

    tokenizers: list[str]
    column: str
    language_column: str
    total: LanguageCounts
    languages: list[LanguageCounts]
    """Empty without a language column."""
    spreads: list[NumberSummary | None]
    """Tokens per row, of each tokenizer."""
    bins: list[int]
    """Where the bars of the histograms of tokens per row begin, and the end of the last."""
    histograms: list[list[int]]
    """Rows in each bar, of each tokenizer; the last bar has those beyond it too."""
    seconds: float = 0
