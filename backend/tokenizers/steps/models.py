"""How a tokenizer's model split each word: the merges of BPE, the choices of Unigram and WordPiece."""

from bisect import bisect_left
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import Any

import msgspec

from backend.contract.messages import message
from backend.contract.tokens.steps import ChosenPiece, Merge, WordTrace
from backend.tokenizers.vocabulary.pieces import Vocabulary, merge_pieces

UNSURE = message(
    "Burnish can't tell how these pieces were chosen: the model samples at random, or several splits are equally good."
)


def trace(word: str, start: int, end: int, known: Vocabulary) -> WordTrace:
    """How the word was split; the pieces are always the library's own."""
    tokens = known.model.tokenize(word)
    pieces, ids = [token.value for token in tokens], [token.id for token in tokens]
    found = _TRACERS.get(known.kind, _trace_word)(word, known)
    # Dropout is random each time, and ties may be broken differently.
    why: dict[str, Any] = found.explanation if found.ids == ids else {"sentence": UNSURE}
    return WordTrace(word=word, start=start, end=end, pieces=pieces, ids=ids, **why)


@dataclass(frozen=True)
class _Traced:
    """The resulting ids of a tracer, and its explanation as fields of a `WordTrace`."""

    ids: list[int]
    explanation: dict[str, Any]


def _trace_word(word: str, known: Vocabulary) -> _Traced:
    tokens = known.model.tokenize(word)
    is_there = word in [token.value for token in tokens]
    sentence = (
        message("The whole word is in the vocabulary; this model has no subwords.")
        if is_there
        else message("The whole word is not in the vocabulary; this model has no subwords.")
    )
    return _Traced([token.id for token in tokens], {"sentence": sentence})


def _word_piece(word: str, known: Vocabulary) -> _Traced:
    """The longest piece at each position; if there is none, the whole word is unknown."""
    vocabulary, model = known.stored["vocab"], known.model
    unknown = [vocabulary.get(model.unk_token, -1)]
    if len(word) > model.max_input_chars_per_word:
        why = message(
            "The word is longer than {max_input_chars_per_word} characters, so it becomes {unk_token}.",
            max_input_chars_per_word=model.max_input_chars_per_word,
            unk_token=model.unk_token,
        )
        return _Traced(unknown, {"sentence": why})
    choices: list[ChosenPiece] = []
    place = 0
    while place < len(word):
        prefix = model.continuing_subword_prefix if place else ""
        stop = next((stop for stop in range(len(word), place, -1) if prefix + word[place:stop] in vocabulary), None)
        if stop is None:
            rest = word[place:] if len(word) - place <= 20 else word[place : place + 20] + "…"
            why = message(
                "No piece matches the start of {prefix}{rest}, so the whole word becomes {unk_token}.",
                prefix=prefix,
                rest=rest,
                unk_token=model.unk_token,
            )
            given_up = [msgspec.structs.replace(one, taken=False) for one in choices]
            return _Traced(unknown, {"choices": given_up, "sentence": why})
        choices.append(ChosenPiece(prefix + word[place:stop], place, stop, taken=True))
        place = stop
    why = message("The whole word is a piece of the vocabulary.") if len(choices) == 1 else ""
    return _Traced([vocabulary[one.piece] for one in choices], {"choices": choices, "sentence": why})


Pairs = dict[tuple[str, str], int]


def _trace_bpe(word: str, known: Vocabulary) -> _Traced:
    """The word's merges; pieces are what is left when no pair can merge any more."""
    model, vocabulary = known.model, known.stored["vocab"]
    if model.ignore_merges and word in vocabulary:
        why = message("The whole word is a piece of the vocabulary, and this model checks for that before it merges.")
        return _Traced([vocabulary[word]], {"symbols": [word], "sentence": why})
    symbols, unknown = _symbols(word, known)
    merges, pieces = merge_symbols(symbols, known.pairs, model.continuing_subword_prefix or "")
    explanation = {"symbols": symbols, "merges": merges, "sentence": _bpe_sentence(unknown, known)}
    return _Traced([vocabulary.get(piece, -1) for piece in pieces], explanation)


def _symbols(word: str, known: Vocabulary) -> tuple[list[str], list[str]]:
    """The word's initial symbols, and the characters without a piece."""
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


def merge_symbols(symbols: list[str], pairs: Pairs, prefix: str) -> tuple[list[Merge], list[str]]:
    """Always merge the pair of lowest rank, leftmost first (Sennrich et al. 2016)."""
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
        now[place], now[second] = merge_pieces(left, right, prefix), None
        alive.pop(bisect_left(alive, second))
        after[place] = after[second]
        if after[place] < len(now):
            before[after[place]] = place
        for one in (before[place], place):
            pair: Any = (now[one], now[after[one]]) if one >= 0 and after[one] < len(now) else None
            if pair in pairs:
                heappush(waiting, (pairs[pair], one, pair))
    return merges, [piece for piece in now if piece is not None]


def _bpe_sentence(unknown: list[str], known: Vocabulary) -> str:
    if not unknown:
        return ""
    signs = ", ".join(dict.fromkeys(unknown[:8]))
    if known.model.unk_token:
        return message(
            "The vocabulary has no piece for {signs}, which becomes {unk_token}.",
            signs=signs,
            unk_token=known.model.unk_token,
        )
    return message("The vocabulary has no piece for {signs}, which is left out.", signs=signs)


PENALTY = 10.0
"""An unknown character costs this much more than the rarest piece."""
MAX_CHOICES = 400


@dataclass(frozen=True)
class _Edge:
    start: int
    end: int
    piece: str
    score: float
    known: bool = True


Way = tuple[float, _Edge | None, int]
"""Sum of log-probabilities, the last piece, and which of the ways to its beginning goes before it."""


def _trace_unigram(word: str, known: Vocabulary) -> _Traced:
    """The best and second-best segmentation over all matching pieces (Kudo 2018)."""
    edges = _edges(word, known)
    ways = _best_paths(word, edges)
    best, second = _follow_path(ways, len(word), 0), _follow_path(ways, len(word), 1)
    taken = set(best)
    choices = [
        ChosenPiece(edge.piece, edge.start, edge.end, edge.score, ways[edge.start][0][0] + edge.score, edge in taken)
        for place in range(len(word))
        for edge in edges[place]
    ]
    unknown = ", ".join(dict.fromkeys([edge.piece for edge in best if not edge.known][:8]))
    explanation = {
        "choices": choices if len(choices) <= MAX_CHOICES else [one for one in choices if one.taken],
        "score": ways[-1][0][0],
        "runner_up": [edge.piece for edge in second],
        "runner_up_score": ways[-1][1][0] if second else None,
        "sentence": message("The vocabulary has no piece for {unknown}.", unknown=unknown) if unknown else "",
    }
    return _Traced([known.number(piece, known.unknown_piece) for piece in _fuse_unknown(best, known)], explanation)


def _edges(word: str, known: Vocabulary) -> list[list[_Edge]]:
    scores, longest = known.scores, known.longest_piece
    lowest = known.lowest_score - PENALTY
    found: list[list[_Edge]] = []
    for start in range(len(word)):
        stops = range(start + 1, min(len(word), start + longest) + 1)
        outgoing = [_Edge(start, stop, word[start:stop], scores[word[start:stop]]) for stop in stops if word[start:stop] in scores]  # fmt: skip
        if not any(edge.end == start + 1 for edge in outgoing):
            outgoing.insert(0, _Edge(start, start + 1, word[start], lowest, known=False))
        found.append(outgoing)
    return found


def _best_paths(word: str, edges: list[list[_Edge]]) -> list[list[Way]]:
    """The two best paths to every position."""
    ways: list[list[Way]] = [[(0.0, None, 0)], *([] for _ in word)]
    for start, outgoing in enumerate(edges):
        ways[start].sort(key=lambda way: -way[0])
        del ways[start][2:]
        for edge in outgoing:
            ways[edge.end] += [(sum_ + edge.score, edge, which) for which, (sum_, _, _) in enumerate(ways[start])]
    ways[-1].sort(key=lambda way: -way[0])
    return ways


def _follow_path(ways: list[list[Way]], place: int, which: int) -> list[_Edge]:
    found: list[_Edge] = []
    while place and which < len(ways[place]):
        _, edge, which = ways[place][which]
        assert edge is not None
        found.append(edge)
        place = edge.start
    return found[::-1]


def _fuse_unknown(best: list[_Edge], known: Vocabulary) -> list[str]:
    """Merge neighbours without a piece into one unknown token, or into bytes if the model has byte fallback."""
    pieces: list[str] = []
    last_known = True
    for edge in best:
        single = [f"<0x{byte:02X}>" for byte in edge.piece.encode()]
        if edge.known:
            pieces.append(edge.piece)
        elif known.byte_fallback and all(one in known.scores for one in single):
            pieces += single
        elif last_known:
            pieces.append(edge.piece)
        else:
            pieces[-1] += edge.piece
        last_known = edge.known
    return pieces


_TRACERS = {"BPE": _trace_bpe, "Unigram": _trace_unigram, "WordPiece": _word_piece}
