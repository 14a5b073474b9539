"""Owns that Tab goes through a window as it is read, whatever order its parts were made in: forms come with the catalog."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from PySide6.QtCore import QRect, Qt
from PySide6.QtWidgets import QAbstractSpinBox, QComboBox, QWidget

TOLERANCE = 4
"""Pixels by which neighbours may overlap and still stand apart."""


class ReadInOrder(QWidget):
    """What stands in it is put in order at every Tab; what is hidden keeps its place."""

    def focusNextPrevChild(self, next: bool) -> bool:
        """Qt's own chain, mended before it is followed."""
        stops = in_reading_order(self)
        if stops and stops != _chain(stops):
            for before, after in pairwise(stops):
                QWidget.setTabOrder(before, after)
        return super().focusNextPrevChild(next)


@dataclass(frozen=True)
class _Part:
    """A widget with what Tab comes to in it."""

    box: QRect
    stops: list[QWidget]


def in_reading_order(holder: QWidget) -> list[QWidget]:
    """What Tab comes to: bands from the top down, in each of them columns from the left; what holds others is one of them."""
    parts = []
    for child in holder.findChildren(QWidget, options=Qt.FindChildOption.FindDirectChildrenOnly):
        if child.isVisible() and not child.isWindow():
            stops = ([child] if _is_stop(child) else []) + ([] if _is_whole(child) else in_reading_order(child))
            if stops:
                parts.append(_Part(child.geometry(), stops))
    return [stop for part in _ordered(parts) for stop in part.stops]


def _is_stop(widget: QWidget) -> bool:
    return bool(widget.focusPolicy() & Qt.FocusPolicy.TabFocus) and widget.focusProxy() is None


def _is_whole(widget: QWidget) -> bool:
    """Whether Qt itself goes through its parts."""
    return isinstance(widget, QComboBox | QAbstractSpinBox)


def _ordered(parts: Sequence[_Part]) -> Iterator[_Part]:
    for begin, end in ((QRect.top, QRect.bottom), (QRect.left, QRect.right)):
        groups = _cut(parts, begin, end)
        if len(groups) > 1:
            for group in groups:
                yield from _ordered(group)
            return
    yield from sorted(parts, key=lambda part: (part.box.top(), part.box.left()))


def _cut(parts: Sequence[_Part], begin: Callable[[QRect], int], end: Callable[[QRect], int]) -> list[list[_Part]]:
    """Where nothing reaches across."""
    groups: list[list[_Part]] = []
    reached = 0
    for part in sorted(parts, key=lambda part: begin(part.box)):
        if groups and begin(part.box) <= reached - TOLERANCE:
            groups[-1].append(part)
        else:
            groups.append([part])
        reached = max(reached, end(part.box)) if len(groups[-1]) > 1 else end(part.box)
    return groups


def _chain(stops: Sequence[QWidget]) -> list[QWidget]:
    """The same in the order in which Tab would come to them now, from the first one on."""
    wanted, found = {*stops}, [stops[0]]
    link = stops[0].nextInFocusChain()
    while link is not None and link is not stops[0]:
        if link in wanted:
            found.append(link)
        link = link.nextInFocusChain()
    return found
