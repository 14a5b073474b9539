"""Owns how BPE cuts a word: its symbols, and the merges in the order in which they are applied."""

from bisect import bisect_left
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from backend.contract.tokens.steps import Merge, WordTrace
from backend.tokenizers.piece_text import merged

if TYPE_CHECKING:
    from backend.tokenizers.vocabulary import Vocabulary

Pairs = dict[tuple[str, str], int]


def trace(word: str, start: int, end: int, known: "Vocabulary") -> WordTrace:
    """The word's merges; pieces are what is left when no pair may merge any more."""
    model = known.model
    if model.ignore_merges and word in known.stored["vocab"]:
        return WordTrace(
            word=word, start=start, end=end, pieces=[word], ids=[known.stored["vocab"][word]], symbols=[word],
            sentence="The whole word is a piece of the vocabulary, and this model looks there before it merges.",
        )  # fmt: skip
    symbols, unknown = _symbols(word, known)
    merges, pieces = _merged(symbols, known.pairs, model.continuing_subword_prefix or "")
    ids = [known.stored["vocab"].get(piece, -1) for piece in pieces]
    return WordTrace(
        word=word, start=start, end=end, pieces=pieces, ids=ids, symbols=symbols, merges=merges,
        sentence=_sentence(unknown, known),
    )  # fmt: skip


def _symbols(word: str, known: "Vocabulary") -> tuple[list[str], list[str]]:
    """What the word begins as, and the characters without a piece."""
    model, vocabulary = known.model, known.stored["vocab"]
    prefix, suffix = model.continuing_subword_prefix or "", model.end_of_word_suffix or ""
    symbols: list[str] = []
    unknown: list[str] = []
    for place, sign in enumerate(word):
        symbol = (prefix if place else "") + sign + (suffix if place == len(word) - 1 else "")
        if symbol in vocabulary:
            symbols.append(symbol)
            continue
        single = [f"<0x{byte:02X}>" for byte in symbol.encode()]
        if model.byte_fallback and all(one in vocabulary for one in single):
            symbols += single
            continue
        unknown.append(sign)
        fused = model.fuse_unk and symbols and symbols[-1] == model.unk_token
        if model.unk_token and not fused:
            symbols.append(model.unk_token)
    return symbols, unknown


def _merged(symbols: list[str], pairs: Pairs, prefix: str) -> tuple[list[Merge], list[str]]:
    """Always the pair of the lowest rank, the leftmost of equal ones (Sennrich et al. 2016)."""
    now: list[str | None] = list(symbols)
    after, before = list(range(1, len(symbols) + 1)), list(range(-1, len(symbols) - 1))
    alive = list(range(len(symbols)))
    waiting = [
        (pairs[pair], place, pair)
        for place, pair in enumerate(pairwise(symbols))
        if pair in pairs
    ]  # fmt: skip
    heapify(waiting)
    merges: list[Merge] = []
    while waiting:
        rank, place, (left, right) = heappop(waiting)
        second = after[place] if place < len(now) else len(now)
        if second >= len(now) or now[place] != left or now[second] != right:
            continue  # another merge has taken one of them
        merges.append(Merge(rank, left, right, bisect_left(alive, place)))
        now[place], now[second] = merged(left, right, prefix), None
        alive.pop(bisect_left(alive, second))
        after[place] = after[second]
        if after[place] < len(now):
            before[after[place]] = place
        for one in (before[place], place):
            pair: Any = (now[one], now[after[one]]) if one >= 0 and after[one] < len(now) else None
            if pair in pairs:
                heappush(waiting, (pairs[pair], one, pair))
    return merges, [piece for piece in now if piece is not None]


def _sentence(unknown: list[str], known: "Vocabulary") -> str:
    if not unknown:
        return ""
    signs = ", ".join(dict.fromkeys(unknown[:8]))
    if known.model.unk_token:
        return f"The vocabulary has no piece for {signs}, which becomes {known.model.unk_token}."
    return f"The vocabulary has no piece for {signs}, which is left out."
