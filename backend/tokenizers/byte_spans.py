"""Owns where tokens lie in the UTF-8 bytes of a text, also where several tokens share one character."""

import numpy as np


def byte_spans(
    start: np.ndarray, end: np.ndarray, sizes: np.ndarray, places: np.ndarray, first: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Byte spans (tokens,) of character spans; `sizes` are the bytes of each piece, −1 where it has no bytes of its own.

    Tokens that overlap the one before them share characters with it: within such a group bytes are counted from its
    beginning. `first` marks tokens that begin anew whatever lies before them. A group whose bytes do not add up (the
    normaliser changed them) keeps the spans of its characters. `places` is `byte_places` of the text.
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


def partial(byte_start: np.ndarray, byte_end: np.ndarray, places: np.ndarray) -> np.ndarray:
    """(tokens,) whether a span begins or ends within a character."""
    whole = np.zeros(int(places[-1]) + 1, bool)
    whole[places] = True
    return ~(whole[byte_start] & whole[byte_end])
