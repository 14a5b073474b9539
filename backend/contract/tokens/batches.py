"""Queries and answers about several texts at once, and about turning ids and pieces back into text."""

import msgspec

from backend.contract.tokens.options import Padding, TokenizerQuestion

MAX_CELLS = 300_000
"""Rows times the longest row; more are refused in a sentence."""


class BatchQuestion(TokenizerQuestion, frozen=True, kw_only=True, omit_defaults=True):
    """Arguments of `tokenize_batch`; every row is one window."""

    texts: list[str]
    padding: Padding = "longest"


class TokenGrid(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of `tokenize_batch`: the model's input, at most `MAX_CELLS` tokens."""

    rows: int = 0
    width: int = 0
    """The longest row."""
    ids: list[int] = []
    """Row after row, `rows * width` numbers; without padding shorter rows are filled with −1 (mask 0)."""
    mask: list[int] = []
    types: list[int] = []
    lengths: list[int] = []
    """Per row, padding left out."""
    left_out: list[int] = []
    """Per row: tokens that truncation cut off."""
    piece_ids: list[int] = []
    pieces: list[str] = []
    """Every id that occurs, ascending, with its piece."""
    special_ids: list[int] = []
    pad_id: int | None = None
    """What padding is filled with; where the tokenizer has no padding token, as training fills (a note says so)."""
    limit: int | None = None
    stored_truncation: str = ""
    notes: list[str] = []


class DecodedRow(msgspec.Struct, frozen=True, kw_only=True):
    """One list of ids as text. An unknown id appears in every text as `⟨no token 99999⟩`."""

    text: str
    """As a command's switches ask (special tokens kept or skipped, spaces cleaned up or not); else the tokenizer's own way."""
    with_special: str
    without_special: str
    cleaned: str
    """With special tokens, and the spaces before punctuation taken away (`clean_up_tokenization_spaces`, which
    transformers does not do for BPE)."""
    pieces: list[str]
    """Of each id; empty where it does not exist."""
    missing: list[int] = []
    """Places in the list whose ids do not exist."""


class Decoded(msgspec.Struct, frozen=True):
    """Answer of `decode {tokenizer, ids, options}`; `ids` is a list of ids or a list of such lists."""

    rows: list[DecodedRow]


class PiecesAsText(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of `pieces_to_text {tokenizer, pieces, options}`."""

    text: str
    """The decoded text, with special tokens; unknown pieces appear as `⟨no piece abc⟩`."""
    ids: list[int]
    """−1 where the vocabulary has no such piece."""
    unknown: list[int] = []
    """Their places in the question's list."""
