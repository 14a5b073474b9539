"""Owns the comparison of a text with what its tokens decode to."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from backend.contract.tokens.tokens import RoundTrip

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

BEFORE, PART = 12, 40
FIRST, UNSURE = 2_000, 200
"""So many tokens are decoded first; their last characters may yet change with the token after them."""


def round_trip(tokenizer: "PreTrainedTokenizerBase", texts: Sequence[str], ids: Sequence[Sequence[int]]) -> RoundTrip:
    """Whether the ids of every text, special tokens that were added left out, decode to it."""
    for sequence, (text, own) in enumerate(zip(texts, ids, strict=True)):
        decoded, place = _compared(tokenizer, text, own)
        if place is not None:
            begin = max(0, place - BEFORE)
            return RoundTrip(
                same=False, sequence=sequence, place=place, part_place=begin,
                text_part=text[begin : begin + PART], decoded_part=decoded[begin : begin + PART],
            )  # fmt: skip
    return RoundTrip(same=True)


def _compared(tokenizer: "PreTrainedTokenizerBase", text: str, ids: Sequence[int]) -> tuple[str, int | None]:
    """What the ids decode to, as far as it matters, and the first difference; a lossy tokenizer shows it in the beginning."""
    if len(ids) > FIRST:
        decoded = str(tokenizer.decode(list(ids[:FIRST]), skip_special_tokens=False))
        place = first_difference(text, decoded)
        if place < len(decoded) - UNSURE:
            return decoded, place
    decoded = str(tokenizer.decode(list(ids), skip_special_tokens=False))
    return decoded, None if decoded == text else first_difference(text, decoded)


def first_difference(one: str, other: str) -> int:
    """The place of the first character that is not the same, or of the end of the shorter one."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
