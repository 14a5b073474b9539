"""Fuzzy search: which texts match a query, how well, and which letters matched."""

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

Item = TypeVar("Item")

WHOLE, START, WORD, INSIDE, SCATTERED = 100.0, 80.0, 60.0, 40.0, 20.0
"""The score of a query word by its position in the text: the whole text, its start, a word's start, anywhere, in bits."""


@dataclass(frozen=True)
class Match:
    """`places` are indices into the text; a higher `score` is better."""

    score: float
    places: tuple[int, ...]


def match(query: str, text: str) -> Match | None:
    """How the text matches the query, each word of which must occur in it; None if it does not match."""
    plain = _plain(text)
    score, places = 0.0, set[int]()
    for word in _plain(query).split():
        found = _find(word, plain)
        if found is None:
            return None
        score += found.score
        places.update(found.places)
    return Match(score - len(text) / 1000, tuple(sorted(places)))  # of two that fit alike the shorter one is meant


def rank(
    query: str, items: Iterable[Item], title: Callable[[Item], str], words: Callable[[Item], str], most: int
) -> list[tuple[Item, tuple[int, ...]]]:
    """The matching items, best first, each with the letters of its title to highlight.

    Items that only match by their other `words` come last; without a query all keep their order.
    """
    if not query.strip():
        return [(item, ()) for item, _ in zip(items, range(most), strict=False)]
    found: list[tuple[float, Item, Sequence[int]]] = []
    for item in items:
        hit = match(query, title(item))
        if hit is not None:
            found.append((hit.score, item, hit.places))
        elif all(word in _plain(f"{title(item)} {words(item)}") for word in _plain(query).split()):
            found.append((-WHOLE, item, ()))
    found.sort(key=lambda one: -one[0])
    return [(item, tuple(places)) for _, item, places in found[:most]]


def _plain(text: str) -> str:
    """Lower case without accents, with the same length, so that indices stay valid."""
    return "".join((unicodedata.normalize("NFD", letter)[0].lower() or letter)[0] for letter in text)


def _find(word: str, text: str) -> Match | None:
    at = _best_place(word, text)
    if at >= 0:
        worth = WHOLE if word == text else START if at == 0 else WORD if _begins_word(text, at) else INSIDE
        return Match(worth + len(word), tuple(range(at, at + len(word))))
    return _match_scattered(word, text)


def _best_place(word: str, text: str) -> int:
    first = at = text.find(word)
    while at > 0 and not _begins_word(text, at):
        at = text.find(word, at + 1)
    return at if at >= 0 else first


def _begins_word(text: str, at: int) -> bool:
    return at == 0 or not text[at - 1].isalnum()


def _match_scattered(word: str, text: str) -> Match | None:
    """Match all letters in order, preferably at word starts; every gap costs."""
    places: list[int] = []
    for letter in word:
        begin = places[-1] + 1 if places else 0
        near = text.find(letter, begin)
        if near < 0:
            return None
        begun = next((at for at in range(near, len(text)) if text[at] == letter and _begins_word(text, at)), near)
        # A word's beginning is taken only where the letters beside the last one do not go on.
        places.append(near if places and near == begin else begun if _goes_on(word, len(places), text, begun) else near)
    gaps = sum(after != before + 1 for before, after in pairwise(places))
    begins = sum(_begins_word(text, at) for at in places)
    return Match(SCATTERED - 3.0 * gaps + 3.0 * begins, tuple(places))


def _goes_on(word: str, taken: int, text: str, at: int) -> bool:
    """Whether the remaining letters can still be found after this position."""
    for letter in word[taken + 1 :]:
        at = text.find(letter, at + 1)
        if at < 0:
            return False
    return True
