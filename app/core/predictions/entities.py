"""Groups space-joined tags into entities, whatever tagging scheme they use."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

OUTSIDE = "O"
_BEGINS, _ENDS, _INSIDE = frozenset("BSU"), frozenset("SUEL"), frozenset("IEL")
"""Prefixes of the kind in the schemes BIO, IOB1, IOBES and BILOU."""


@dataclass(frozen=True)
class Entity:
    """Words `start` to `end` (exclusive), of one kind such as `PER`."""

    start: int
    end: int
    kind: str


def entities(tags: Sequence[str]) -> list[Entity]:
    """The entities of a sentence; a tag without a scheme (`NOUN`) is a one-word entity."""
    found: list[Entity] = []
    is_open = False
    for place, tag in enumerate(tags):
        prefix, kind = _read(tag)
        if not kind:
            is_open = False
            continue
        goes_on = is_open and prefix in _INSIDE and found[-1].kind == kind
        if goes_on:
            found[-1] = Entity(found[-1].start, place + 1, kind)
        else:
            found.append(Entity(place, place + 1, kind))
        is_open = prefix in _BEGINS | _INSIDE and prefix not in _ENDS
    return found


def _read(tag: str) -> tuple[str, str]:
    if tag in (OUTSIDE, ""):
        return "", ""
    prefix, dash, kind = tag.partition("-")
    return (prefix, kind) if dash and prefix in _BEGINS | _INSIDE | _ENDS else ("", tag)


def words_of(value: object) -> list[str]:
    """The words of a sentence, given as a list or as text."""
    if isinstance(value, list | tuple):
        return [str(word) for word in value]
    return str(value or "").split()


def kinds_of(*sentences: Sequence[Entity]) -> dict[str, int]:
    """Every kind with its frequency, sorted by name, so that a kind keeps its colour."""
    counts: dict[str, int] = {}
    for sentence in sentences:
        for entity in sentence:
            counts[entity.kind] = counts.get(entity.kind, 0) + 1
    return dict(sorted(counts.items()))


def colors_of(kinds: Mapping[str, int], colors: int) -> dict[str, int]:
    """Kind → colour; the usual four always have the same colours, others take the rest."""
    usual = {"PER": 0, "PERSON": 0, "LOC": 2, "GPE": 2, "ORG": 1, "MISC": 4}
    chosen = {kind: usual[kind] for kind in kinds if kind in usual}
    free = [color for color in range(colors) if color not in chosen.values()] or list(range(colors))
    rest = [kind for kind in kinds if kind not in chosen]
    return chosen | {kind: free[place % len(free)] for place, kind in enumerate(rest)}
