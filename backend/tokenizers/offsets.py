"""Where tokens are in a text: in characters, for tokenizers without offsets, and in UTF-8 bytes."""

import unicodedata
from collections.abc import Sequence

import numpy as np

from backend.tokenizers import AnyTokenizer
from backend.tokenizers.text import byte_places

_BYTES = ("ByT5Tokenizer", "PerceiverTokenizer")
_CHARACTERS = ("CanineTokenizer",)
_SPACES = str.maketrans({"▁": " ", "Ġ": " "})


def are_exact(tokenizer: AnyTokenizer) -> bool:
    """Whether the positions are exact: every token is one byte or one character."""
    return type(tokenizer).__name__ in (*_BYTES, *_CHARACTERS)


def spans(tokenizer: AnyTokenizer, ids: Sequence[int], text: str) -> np.ndarray:
    """(tokens, 2) characters: counted if tokens are bytes or characters, else each token's next occurrence."""
    pieces = [str(one or "") for one in tokenizer.convert_ids_to_tokens(list(ids))]
    if are_exact(tokenizer):
        of_bytes = is_of_bytes(tokenizer)
        # A special token in the text is one token of several bytes or characters.
        sizes = [1 if len(one) == 1 else len(one.encode() if of_bytes else one) for one in pieces]
        places = byte_places(text) if of_bytes else np.arange(len(text) + 1, dtype=np.int64)
        if sum(sizes) == places[-1]:
            return _spans_of_sizes(np.array(sizes, np.int64), places)
    return _search_pieces(tokenizer, ids, pieces, text)


def is_of_bytes(tokenizer: AnyTokenizer) -> bool:
    """Whether every piece is one byte, written as the character with that number."""
    return type(tokenizer).__name__ in _BYTES


def _spans_of_sizes(sizes: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Spans of tokens with these sizes, in the units of `places`, the starts of the characters."""
    ends = np.cumsum(sizes)
    begins = np.searchsorted(places, ends - sizes, side="right") - 1
    return np.stack([begins, np.searchsorted(places, ends, side="left")], 1)


def _search_pieces(tokenizer: AnyTokenizer, ids: Sequence[int], pieces: Sequence[str], text: str) -> np.ndarray:
    special = set(tokenizer.all_special_ids)
    folded, origin = _fold(text)
    found, end = np.zeros((len(pieces), 2), np.int64), 0
    for number, (token, piece) in enumerate(zip(ids, pieces, strict=True)):
        wanted = piece if token in special else _fold_piece(str(tokenizer.decode([token])) or piece)
        start = folded.find(wanted, end, end + 20 + 4 * len(wanted)) if wanted else -1
        if start < 0:
            found[number] = (end, end)
        else:
            end = start + len(wanted)
            found[number] = (start, end)
    ends = np.where(found[:, 1] > found[:, 0], origin[(found[:, 1] - 1).clip(0)] + 1, origin[found[:, 0]])
    return np.stack([origin[found[:, 0]], ends], 1)


def _fold_piece(piece: str) -> str:
    return _fold(piece.translate(_SPACES).removeprefix("##").removesuffix("</w>").removesuffix("@@").strip())[0]


def _fold(text: str) -> tuple[str, np.ndarray]:
    """The text with compatibility forms and case folded, and for every character the original one that it came from."""
    parts = [unicodedata.normalize("NFKC", sign).casefold() for sign in text]
    sizes = np.array([len(part) for part in parts], np.int64)
    return "".join(parts), np.append(np.repeat(np.arange(len(text)), sizes), len(text))


def byte_spans(
    start: np.ndarray, end: np.ndarray, sizes: np.ndarray, places: np.ndarray, first: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Byte spans (tokens,) from character spans; `sizes` are the bytes of each piece, −1 if it is not a byte piece.

    Tokens that overlap the previous one share characters with it: within such a group, bytes are counted from its
    start. `first` marks tokens that start a new group regardless. A group whose bytes do not add up (the
    normaliser changed them) keeps its character spans. `places` is `byte_places` of the text.
    """
    low, high = places[start], places[end]
    if not len(start):
        return low, high
    known = sizes >= 0
    joined = np.zeros(len(start), bool)
    joined[1:] = (start[1:] < end[:-1]) & (end[1:] > start[1:]) & known[1:] & known[:-1] & ~first[1:]
    group = np.cumsum(~joined) - 1
    heads = np.flatnonzero(~joined)
    tails = np.append(heads[1:], len(start)) - 1
    # A head may be larger than its characters: it holds a space that its offsets leave out.
    spare = np.zeros(len(heads), np.int64)
    several = tails > heads
    total = np.add.reduceat(np.where(known, sizes, 0), heads)
    extent = high[tails] - low[heads]
    spare[several] = (total - extent)[several]
    fits = several & ((spare == 0) | (spare == 1))
    counted = np.where(known, sizes, 0).astype(np.int64)
    counted[heads[fits]] -= spare[fits]
    ends = np.cumsum(counted)
    begins = ends - counted
    base = low[heads] - begins[heads]
    chosen = fits[group]
    return np.where(chosen, begins + base[group], low), np.where(chosen, ends + base[group], high)


def is_partial(byte_start: np.ndarray, byte_end: np.ndarray, places: np.ndarray) -> np.ndarray:
    """(tokens,) whether a span starts or ends inside a character."""
    whole = np.zeros(int(places[-1]) + 1, bool)
    whole[places] = True
    return ~(whole[byte_start] & whole[byte_end])
