"""Owns how the tree of merges that make a piece is written in lines."""

from collections.abc import Sequence

from app.core.i18n import tr
from backend.contract.tokens.vocabulary import OriginPart

SPACES = str.maketrans({" ": "·", "\n": "⏎", "\t": "⇥"})
_COLUMN = 2


def tree_lines(parts: Sequence[OriginPart]) -> list[str]:
    """One line a piece with its merge, the halves of each below it."""
    drawn = [f"{_branches(parts, place)}{_shown(part)}" for place, part in enumerate(parts)]
    width = max(map(len, drawn), default=0) + _COLUMN
    return [
        line if part.rank is None else f"{line:<{width}}{tr('merge {rank:,}', rank=part.rank)}"
        for line, part in zip(drawn, parts, strict=True)
    ]


def _shown(part: OriginPart) -> str:
    """The text, unless it is only a part of a character."""
    text = part.text if part.text and "\ufffd" not in part.text else part.piece
    return text.translate(SPACES)


def _branches(parts: Sequence[OriginPart], place: int) -> str:
    depth = parts[place].depth
    if depth == 0:
        return ""
    lines = ["│ " if _goes_on(parts, place, level) else "  " for level in range(1, depth)]
    return "".join(lines) + ("├ " if _goes_on(parts, place, depth) else "└ ")


def _goes_on(parts: Sequence[OriginPart], place: int, depth: int) -> bool:
    """Whether a later sibling at this depth follows before the tree leaves it."""
    for part in parts[place + 1 :]:
        if part.depth < depth:
            return False
        if part.depth == depth:
            return True
    return False
