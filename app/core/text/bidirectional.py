"""Owns the order in which tokens of both writing directions stand on a line, after the Unicode bidirectional algorithm.

Whole tokens are ordered; the letters within one are ordered by the text engine that draws them.
"""

import unicodedata
from collections.abc import Sequence

import numpy as np

RIGHT, LEFT, NUMBER, NEUTRAL = "R", "L", "N", ""
_STRONG = {"R": RIGHT, "AL": RIGHT, "RLE": RIGHT, "RLO": RIGHT, "L": LEFT, "EN": NUMBER, "AN": NUMBER}


def has_right_to_left(codes: np.ndarray) -> bool:
    """Whether any of these code points is written from right to left."""
    if codes.size == 0 or int(codes.max()) < 0x590:
        return False
    within = (codes >= 0x590) & (codes <= 0x8FF)
    within |= (codes >= 0xFB1D) & (codes <= 0xFDFF) | (codes >= 0xFE70) & (codes <= 0xFEFC)
    within |= (codes >= 0x10800) & (codes <= 0x10FFF) | (codes >= 0x1E800) & (codes <= 0x1EFFF)
    return bool(within.any())


def direction(text: str) -> str:
    """Of a token by its first letter with a direction: RIGHT (to left), LEFT (to right), NUMBER or NEUTRAL."""
    return next((found for letter in text if (found := _STRONG.get(unicodedata.bidirectional(letter)))), NEUTRAL)


def base_is_right(text: str) -> bool:
    """Whether a paragraph runs from right to left: its first letter decides (rule P2)."""
    strong = (_STRONG.get(unicodedata.bidirectional(letter)) for letter in text)
    return next((found == RIGHT for found in strong if found in (RIGHT, LEFT)), False)


def visual_order(directions: Sequence[str], base_right: bool) -> list[int]:
    """The places of a line's tokens from left to right on the screen."""
    levels = _levels(directions, base_right)
    order = list(range(len(levels)))
    for level in range(max(levels, default=0), 0, -1):  # rule L2
        start = 0
        while start < len(order):
            if levels[order[start]] < level:
                start += 1
                continue
            end = start
            while end < len(order) and levels[order[end]] >= level:
                end += 1
            order[start:end] = order[start:end][::-1]
            start = end
    return order


def _levels(directions: Sequence[str], base_right: bool) -> list[int]:
    resolved = _resolved(directions, RIGHT if base_right else LEFT)
    by_direction = {RIGHT: 1, LEFT: 2 if base_right else 0, NUMBER: 2}
    # A number is turned only where it stands within letters that run from right to left (rule W7).
    before, levels = RIGHT if base_right else LEFT, []
    for one in resolved:
        if one in (RIGHT, LEFT):
            before = one
        levels.append(by_direction[one if one != NUMBER or before == RIGHT else LEFT])
    return levels


def _resolved(directions: Sequence[str], base: str) -> list[str]:
    """Neutrals between two of one direction take it, others that of the paragraph (rules N1 and N2)."""
    found, start = list(directions), 0
    while start < len(found):
        if found[start] != NEUTRAL:
            start += 1
            continue
        end = start
        while end < len(found) and found[end] == NEUTRAL:
            end += 1
        before = _side(found[start - 1]) if start else base
        after = _side(found[end]) if end < len(found) else base
        found[start:end] = [before if before == after else base] * (end - start)
        start = end
    return found


def _side(one: str) -> str:
    return RIGHT if one == NUMBER else one
