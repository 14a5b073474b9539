"""Owns how Unigram cuts a word: every piece that fits somewhere, and the way through them with the best sum (Kudo 2018)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from backend.contract.tokens.steps import Choice, WordTrace

if TYPE_CHECKING:
    from backend.tokenizers.vocabulary import Vocabulary

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


def trace(word: str, start: int, end: int, known: "Vocabulary") -> WordTrace:
    """The best and the second best way."""
    edges = _edges(word, known)
    ways = _ways(word, edges)
    best, second = _way(ways, len(word), 0), _way(ways, len(word), 1)
    taken = {(edge.start, edge.end) for edge in best}
    pieces = _fused(best, known)
    choices = [
        Choice(edge.piece, edge.start, edge.end, edge.score, ways[edge.start][0][0] + edge.score, (edge.start, edge.end) in taken)
        for place in range(len(word))
        for edge in edges[place]
    ]  # fmt: skip
    unknown = [edge.piece for edge in best if not edge.known]
    return WordTrace(
        word=word, start=start, end=end, pieces=pieces,
        ids=[known.number(piece, known.unknown_piece) for piece in pieces],
        choices=choices if len(choices) <= MAX_CHOICES else [one for one in choices if one.taken],
        score=ways[-1][0][0], runner_up=[edge.piece for edge in second],
        runner_up_score=ways[-1][1][0] if second else None,
        sentence=f"The vocabulary has no piece for {', '.join(dict.fromkeys(unknown[:8]))}." if unknown else "",
    )  # fmt: skip


def _edges(word: str, known: "Vocabulary") -> list[list[_Edge]]:
    scores, longest = known.scores, known.longest_piece
    lowest = known.lowest_score - PENALTY
    found: list[list[_Edge]] = []
    for start in range(len(word)):
        stops = range(start + 1, min(len(word), start + longest) + 1)
        here = [_Edge(start, stop, word[start:stop], scores[word[start:stop]]) for stop in stops if word[start:stop] in scores]  # fmt: skip
        if not any(edge.end == start + 1 for edge in here):
            here.insert(0, _Edge(start, start + 1, word[start], lowest, known=False))
        found.append(here)
    return found


def _ways(word: str, edges: list[list[_Edge]]) -> list[list[Way]]:
    """The two best ways to every place."""
    ways: list[list[Way]] = [[(0.0, None, 0)], *([] for _ in word)]
    for start, here in enumerate(edges):
        ways[start].sort(key=lambda way: -way[0])
        del ways[start][2:]
        for edge in here:
            ways[edge.end] += [(sum_ + edge.score, edge, which) for which, (sum_, _, _) in enumerate(ways[start])]
    ways[-1].sort(key=lambda way: -way[0])
    return ways


def _way(ways: list[list[Way]], place: int, which: int) -> list[_Edge]:
    found: list[_Edge] = []
    while place and which < len(ways[place]):
        _, edge, which = ways[place][which]
        assert edge is not None
        found.append(edge)
        place = edge.start
    return found[::-1]


def _fused(best: list[_Edge], known: "Vocabulary") -> list[str]:
    """Neighbours without a piece are one unknown token, or the bytes of each where the model falls back on them."""
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
