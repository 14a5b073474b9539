"""Checks that Tab goes through widgets as they are read: from left to right, then down, one column after the other."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from PySide6.QtCore import QPoint, QRect
from PySide6.QtWidgets import QWidget

from app.widgets.card import Card

TOLERANCE = 4
"""Pixels by which neighbours may overlap."""


def wrong_turns(stops: Sequence[QWidget]) -> Iterator[tuple[QWidget, QWidget]]:
    """Where the focus goes back: a stop, and the next one that should have come before it."""
    for before, after in pairwise(stops):
        if _goes_back(before, after):
            yield before, after
    yield from _returns(stops)


def _goes_back(before: QWidget, after: QWidget) -> bool:
    """Compares what holds them where their ways part, so that a whole column or card counts as one."""
    one, other = _branches(before, after)
    if one is None or other is None:
        return False
    above = other.bottom() <= one.top() + TOLERANCE
    below = other.top() >= one.bottom() - TOLERANCE
    left = other.right() <= one.left() + TOLERANCE
    right = other.left() >= one.right() - TOLERANCE
    return (above and not right) or (left and not below)


def _branches(before: QWidget, after: QWidget) -> tuple[QRect | None, QRect | None]:
    ways = _way(before), _way(after)
    depth = sum(1 for one, other in zip(*ways, strict=False) if one is other)
    if depth == min(map(len, ways)):
        return None, None  # one holds the other
    root = ways[0][depth - 1]
    one, other = (way[depth] for way in ways)
    return tuple(QRect(part.mapTo(root, QPoint()), part.size()) for part in (one, other))  # type: ignore[return-value]


def _way(widget: QWidget) -> list[QWidget]:
    """From the window down to the widget."""
    way = [widget]
    while not way[0].isWindow() and (above := way[0].parentWidget()) is not None:
        way.insert(0, above)
    return way


def _returns(stops: Sequence[QWidget]) -> Iterator[tuple[QWidget, QWidget]]:
    """Into a card that was left before."""
    left: set[Card] = set()
    for before, after in pairwise(stops):
        cards, now = ({part for part in _way(stop) if isinstance(part, Card)} for stop in (before, after))
        left |= cards - now
        if now & left:
            yield before, after
