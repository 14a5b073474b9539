"""Owns where a text may be cut without cutting what people see as one character (grapheme clusters)."""

import unicodedata

import numpy as np
from PySide6.QtCore import QTextBoundaryFinder

_AROUND = 64
"""Characters before a place from which on clusters are counted; longer ones are beyond any script."""
_EXTENDS, _JOINS = 1, 2
_VIRAMA = 9
"""The canonical combining class of signs that join two consonants."""


def is_cut_within(source: str, place: int) -> bool:
    """Whether a cut before the character at `place` would part a cluster."""
    begin = max(0, place - _AROUND)
    before, around = source[begin:place], source[begin : place + 2]
    finder = QTextBoundaryFinder(QTextBoundaryFinder.BoundaryType.Grapheme, around)
    finder.setPosition(len(before.encode("utf-16-le", "surrogatepass")) // 2)
    return not finder.isAtBoundary()


def linked_by_clusters(source: str, codes: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Whether each token begins within a cluster that the one before it has begun; `codes` are those of `source`."""
    linked = np.zeros(len(start), bool)
    if len(start) < 2 or not len(codes) or (int(codes.max()) < 0x300 and not (codes == 0x0D).any()):
        return linked
    places = np.clip(start[1:], 1, len(codes) - 1)
    follows = (start[1:] == end[:-1]) & (end[1:] > start[1:]) & (end[:-1] > start[:-1])
    doubtful = _has(codes[places], _EXTENDS) | _has(codes[places - 1], _JOINS)
    known: dict[str, bool] = {}
    for index in np.flatnonzero(follows & doubtful).tolist():
        place = int(start[index + 1])
        # What surrounds a cut decides it, so equal surroundings are asked about once.
        around = source[max(0, place - _AROUND) : place + 2]
        if around not in known:
            known[around] = is_cut_within(source, place)
        linked[index + 1] = known[around]
    return linked


def _has(codes: np.ndarray, kind: int) -> np.ndarray:
    kinds, places = np.unique(codes, return_inverse=True)
    return np.array([bool(_kind(int(code)) & kind) for code in kinds], bool)[places]


def _kind(code: int) -> int:
    """Whether a character may go on with the cluster before it, and whether it may join the character after it."""
    if code < 0x300:
        return _EXTENDS if code == 0x0A else _JOINS if code == 0x0D else 0
    if 0x1F1E6 <= code <= 0x1F1FF or 0x1100 <= code <= 0x11FF or 0xA960 <= code <= 0xA97F or 0xD7B0 <= code <= 0xD7FF:
        return _EXTENDS | _JOINS  # flags are two letters, Hangul syllables may be written letter by letter
    if 0x1F3FB <= code <= 0x1F3FF:
        return _EXTENDS  # skin tones
    letter = chr(code)
    category = unicodedata.category(letter)
    if category == "Cf":
        return _EXTENDS | _JOINS
    return _EXTENDS | (_JOINS if unicodedata.combining(letter) == _VIRAMA else 0) if category[0] == "M" else 0
