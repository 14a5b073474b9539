"""The text that shows tokens: stretches of one ink, and where in it each token is."""

import re
from bisect import bisect_right
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise

import numpy as np
from PySide6.QtCore import QTextBoundaryFinder

from app.core.i18n import tr
from app.core.text.direction import JUDGED, runs_right_to_left
from app.core.text.invisible_characters import visible
from app.core.text.token_boxes import SPECIAL, TokenBoxes, shorten

USUAL_INK, SPECIAL_INK, FAINT_INK, CAPTION_INK = "token_text", "token_special_text", "faint", "caption"
GAP_SHOWN = 32
"""Characters of untouched text that are shown before a token."""
RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]")
_NBSP = "\u00a0"
_BETWEEN = "\u200b "
"""Separates two tokens; after a zero-width space a line may end whatever follows, brackets and full stops too."""
_KEPT_TOGETHER = re.compile(r"(?<=[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef\u2010-\u2014/?!-])(?=\w)")
"""Where a line could end within a token."""
_JOINER, _WORD_JOINER = "\u200d", "\u2060"
_LEFT_MARK, _RIGHT_MARK = "\u200e", "\u200f"
_ISOLATED = "\u2068{}\u2069"
"""A piece such as `</s>` keeps the order of its signs in a text from right to left."""


class TokenText:
    """Tokens that share a character form a group, which is written once. Positions count as Qt's, in UTF-16 units."""

    def __init__(self, boxes: TokenBoxes, whitespace: bool) -> None:
        linked = boxes.linked | _linked_by_clusters(boxes)
        self.boxes = replace(boxes, linked=linked)
        self.runs: list[tuple[str, list[str]]] = []
        """Ink and the parts of the text in it."""
        self.firsts: list[int] = np.flatnonzero(~linked).tolist()
        """The first token of each group."""
        self.starts: list[int] = []
        self.ends: list[int] = []
        """Where each group is in the text."""
        self.turned: list[int] = []
        """Where paragraphs that run from right to left begin."""
        self.is_mixed = bool(RIGHT_TO_LEFT.search(boxes.source))
        self._whitespace, self._length, self._is_new_line = whitespace, 0, True
        for first, last in pairwise([*self.firsts, len(boxes)]):
            self._write_before(first)
            self._write_group(first, last)
        self._write_before(len(boxes))

    def group_at(self, position: int) -> int:
        """The last group that starts at a position or before it; −1 if none does."""
        return bisect_right(self.starts, position) - 1

    def group_of(self, token: int) -> int:
        """The group that a token belongs to."""
        return bisect_right(self.firsts, token) - 1

    def tokens_of(self, group: int) -> range:
        """The tokens of a group."""
        last = self.firsts[group + 1] if group + 1 < len(self.firsts) else len(self.boxes)
        return range(self.firsts[group], last)

    def _write(self, text: str, ink: str) -> None:
        if not self.runs or self.runs[-1][0] != ink:
            self.runs.append((ink, []))
        self.runs[-1][1].append(text)
        self._length += _units(text)
        self._is_new_line = text.endswith("\n")

    def _break_line(self, times: int = 1) -> None:
        if times:
            self._write("\n" * times, USUAL_INK)

    def _turn_line(self, first: int) -> None:
        """The line that starts here runs as its paragraph of the text does, whatever its first token is."""
        if self.is_mixed and runs_right_to_left(_source_at(self.boxes, first)):
            self.turned.append(self._length)

    def _write_before(self, first: int) -> None:
        """What stands before a token: line breaks, a caption, and words that no token covers."""
        gap = self.boxes.gap_text(first)
        words = _shorten_gap(gap)
        self._break_line(min(1, gap.count("\n")) if words else gap.count("\n"))
        if caption := self.boxes.captions.get(first):
            self._break_line(0 if self._is_new_line else 1)
            self._write(caption, CAPTION_INK)
            self._break_line()
        if self._is_new_line:
            self._turn_line(first)
        elif first < len(self.boxes) or words:
            self._write(f"{_BETWEEN} " if gap and not words else _BETWEEN, USUAL_INK)
        if words:
            self._write(_make_visible(words, self._whitespace), FAINT_INK)
            self._write(_BETWEEN, USUAL_INK)

    def _write_group(self, first: int, last: int) -> None:
        boxes = self.boxes
        text = boxes.spanned(first, last)
        breaks = 0 if first in boxes.labels else text.count("\n")
        goes_on = breaks > 0 and not text.endswith("\n")
        if goes_on:  # what follows the line break stands on the next line
            self._break_line(breaks)
            self._turn_line(first)
        is_special = boxes.kind[first] == SPECIAL
        self.starts.append(self._length)
        self._write(self._drawn_text(first, last), SPECIAL_INK if is_special else FAINT_INK if boxes.faint[first] else USUAL_INK)  # fmt: skip
        self.ends.append(self._length)
        if not goes_on:
            self._break_line(breaks)

    def _drawn_text(self, first: int, last: int) -> str:
        text = shorten(self.boxes.spanned(first, last))
        shown = _make_visible(text, self._whitespace)
        if self.is_mixed:
            is_label = first in self.boxes.labels
            shown = _ISOLATED.format(shown) if is_label else self._add_direction_marks(first, text, shown)
        # Each token of a group has room to be pointed at.
        room = _NBSP * ((last - first) // 2)
        return f"{room}{shown}{room}"

    def _add_direction_marks(self, first: int, text: str, shown: str) -> str:
        """In bidirectional text the spaces of a token stay with its letters, which stay joined to their neighbours."""
        if not any(letter.isalpha() for letter in text):
            return shown
        if not runs_right_to_left(text):
            return f"{_LEFT_MARK}{shown}{_LEFT_MARK}"
        source, begin = self.boxes.source, int(self.boxes.start[first])
        end = begin + len(text)
        before = begin > 0 and source[begin - 1].isalpha() and text[0].isalpha()
        after = end < len(source) and source[end].isalpha() and text[-1].isalpha()
        return f"{_RIGHT_MARK}{_JOINER * before}{shown}{_JOINER * after}{_RIGHT_MARK}"


def _shorten_gap(gap: str) -> str:
    """Untokenized text that is more than blanks, shortened; else empty."""
    text = gap.strip(" \n\t\r")
    if len(text) <= GAP_SHOWN:
        return text
    return tr("{text}… {number} more characters", text=text[:GAP_SHOWN], number=len(text) - GAP_SHOWN)


def _source_at(boxes: TokenBoxes, index: int) -> str:
    """The start of the text paragraph that contains a token."""
    place = int(boxes.start[index]) if index < len(boxes) else max(0, boxes.tail)
    begin = boxes.source.rfind("\n", 0, place) + 1
    return boxes.source[begin : begin + JUDGED]


@lru_cache(20_000)
def _make_visible(text: str, whitespace: bool) -> str:
    """The drawn form of a text, within which no line ends unless it is wider than one."""
    return _KEPT_TOGETHER.sub(_WORD_JOINER, visible(text, whitespace).replace(" ", _NBSP))


def _units(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def _linked_by_clusters(boxes: TokenBoxes) -> np.ndarray:
    """Whether each token starts inside a grapheme cluster that the previous token has started."""
    codes = np.frombuffer(boxes.source.encode("utf-32-le", "surrogatepass"), np.uint32)
    linked = np.zeros(len(boxes), bool)
    if len(boxes) < 2 or not len(codes) or (int(codes.max()) < 0x300 and not (codes == 0x0D).any()):
        return linked
    start, end = boxes.start, boxes.end
    follows = (start[1:] == end[:-1]) & (end[1:] > start[1:]) & (end[:-1] > start[:-1])
    finder = QTextBoundaryFinder(QTextBoundaryFinder.BoundaryType.Grapheme, boxes.source)
    units = np.concatenate([[0], np.cumsum(np.where(codes > 0xFFFF, 2, 1))])
    doubtful = np.flatnonzero(follows) + 1
    for index, place in zip(doubtful.tolist(), units[start[doubtful]].tolist(), strict=True):
        finder.setPosition(place)
        linked[index] = not finder.isAtBoundary()
    return linked
