"""Where each box of a view of tokens lies: widths measured once a character, lines by one sum, and both directions.

All that grows with the number of tokens is done by numpy; only lines that are looked at get boxes.
"""

import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from PySide6.QtCore import QTextBoundaryFinder
from PySide6.QtGui import QFontMetricsF

from app.core.i18n import tr
from app.core.text import bidirectional, invisible_characters
from app.core.text.token_boxes import LONGEST, TokenBoxes, without_endless_groups

PAD, GAP, SPACE = 4, 3, 6
LEAST = 9.0
"""Pixels of a token that shares a character with others."""
MARGIN = 4
MAX_MEASURED = 4_000
"""Different texts of connected scripts that are measured as they are; more get the sum of their letters."""
GAP_SHOWN = 32
"""Characters of untouched text that are shown before a token."""
_LINES_KEPT = 400


@dataclass(frozen=True)
class Place:
    """One token of a line; `left` counts from the view's left edge."""

    index: int
    left: float
    width: float


class TokenLayout:
    """Boxes in lines of one width; `boxes` know after this which tokens are drawn as one."""

    def __init__(self, metrics: QFontMetricsF) -> None:
        self._metrics = metrics
        self._letters: dict[bool, np.ndarray] = {}
        self._measured: dict[tuple[str, bool], float] = {}
        self.starts = np.zeros(1, np.int64)

    def set_boxes(self, boxes: TokenBoxes, whitespace: bool) -> None:
        """Other tokens, or white space shown otherwise; `wrap` follows."""
        self._whitespace = whitespace
        codes = np.frombuffer(boxes.source.encode("utf-32-le", "surrogatepass"), np.uint32)
        self._right = bidirectional.has_right_to_left(codes)
        linked = boxes.linked | linked_by_clusters(boxes.source, codes, boxes.start, boxes.end)
        self.boxes = boxes = replace(boxes, linked=without_endless_groups(linked))
        self._measure(boxes, codes)
        self._breaks, self._captions = self._line_ends(boxes, codes)

    # Widths

    def _measure(self, boxes: TokenBoxes, codes: np.ndarray) -> None:
        sums = self._sums(codes)
        count = len(boxes)
        widths = sums[boxes.end] - sums[boxes.start]
        empty = boxes.end == boxes.start
        widths[empty] = self._width("")
        connecting = np.flatnonzero(_connects(codes))
        is_long = boxes.end - boxes.start > LONGEST
        for index in np.flatnonzero(is_long | (_counted(connecting, boxes.start, boxes.end) > 0)).tolist():
            widths[index] = self._width(boxes.shown(index, index + 1), 0.0 if is_long[index] else float(widths[index]))
        for index, label in boxes.labels.items():
            widths[index] = self._width(label)
        widths += 2 * PAD
        for first, last in _groups(boxes.linked):
            widths[first:last] = self._shared(boxes, first, last)
        leads = self._leads(boxes, codes)
        glued = np.zeros(count, bool)
        glued[:-1] = boxes.linked[1:]
        tail = [GAP + 1.0 + self._width(self.shown_gap(count))] if boxes.tail >= 0 else []
        self._widths, self._lead = widths, leads
        self._advance = np.concatenate([[0.0], np.cumsum(leads + widths + np.where(glued, 0, GAP)), tail])
        if tail:
            self._advance[-1] += self._advance[-2]

    def _sums(self, codes: np.ndarray) -> np.ndarray:
        """Per place, (characters + 1,): the widths of all characters before."""
        table = self._letters.get(self._whitespace)
        if table is None:
            table = self._letters[self._whitespace] = np.full(0x110000, np.nan, np.float32)
        letters = table[codes]
        unknown = np.isnan(letters)
        if unknown.any():
            for code in np.unique(codes[unknown]).tolist():
                table[code] = self._metrics.horizontalAdvance(_shown_letter(code, self._whitespace))
            letters = table[codes]
        sums = np.zeros(len(codes) + 1)
        np.cumsum(letters, out=sums[1:])
        return sums

    def _width(self, text: str, otherwise: float = 0.0) -> float:
        key = (text, self._whitespace)
        found = self._measured.get(key)
        if found is None:
            if len(self._measured) >= MAX_MEASURED and otherwise:
                return otherwise
            found = self._measured[key] = self._metrics.horizontalAdvance(invisible_characters.visible(*key))
        return found

    def _shared(self, boxes: TokenBoxes, first: int, last: int) -> np.ndarray:
        """The widths of tokens that are drawn as one: what its text takes, each by its share of the bytes."""
        shares = boxes.weight[first:last] / boxes.weight[first:last].sum()
        whole = max(self._width(boxes.shown(first, last), 1.0) + 2 * PAD, (last - first) * LEAST)
        widths = np.maximum(LEAST, shares * whole)
        return widths * (whole / widths.sum()) if widths.sum() > whole else widths

    def _leads(self, boxes: TokenBoxes, codes: np.ndarray) -> np.ndarray:
        """Pixels before each token: a blank's where only blanks were left out, else the width of what was."""
        leads = np.zeros(len(boxes))
        has_gap = (boxes.gap >= 0) & (boxes.gap < boxes.start)
        if not has_gap.any():
            return leads
        begin = np.where(has_gap, boxes.gap, boxes.start)
        length = boxes.start - begin
        is_space = has_gap & (length == 1) & (codes[np.minimum(begin, len(codes) - 1)] == 0x20)
        leads[is_space] = SPACE
        other = has_gap & ~is_space
        if not other.any():
            return leads
        ended = _counted(np.flatnonzero(codes == 0x0A), begin, boxes.start)
        leads[other & (ended < length)] = SPACE
        worded = other & (_counted(np.flatnonzero(~_is_blank(codes)), begin, boxes.start) > 0)
        for index in np.flatnonzero(worded).tolist():
            leads[index] = self._width(self.shown_gap(index)) + SPACE
        return leads

    def shown_gap(self, index: int) -> str:
        """Untouched text before a token that is more than blanks, shortened; else nothing."""
        text = self.boxes.gap_text(index).strip(" \n\t\r")
        return (
            text
            if len(text) <= GAP_SHOWN
            else tr("{text}… {number} more characters", text=text[:GAP_SHOWN], number=len(text) - GAP_SHOWN)
        )

    # Lines

    def _line_ends(self, boxes: TokenBoxes, codes: np.ndarray) -> tuple[np.ndarray, dict[int, str]]:
        """Tokens before which a line ends, as often as it does; a caption takes a line of its own."""
        ends = np.flatnonzero(codes == 0x0A)
        places = np.arange(len(boxes))
        begin = np.where(boxes.gap >= 0, boxes.gap, boxes.start)
        ended = _counted(ends, begin, boxes.start)
        # Words that were left out stand on one line.
        before = np.repeat(places, np.where(self._lead > SPACE, np.minimum(ended, 1), ended))
        within = _counted(ends, boxes.start, boxes.end)
        within[list(boxes.labels)] = 0
        within[:-1][boxes.linked[1:]] = 0
        # A token that goes on after its line break stands on the next line.
        goes_on = (within > 0) & (codes[np.maximum(boxes.end - 1, 0)] != 0x0A) if len(codes) else within > 0
        before = np.concatenate([before, np.repeat(places, np.where(goes_on, within, 0))])
        after = np.repeat(places + 1, np.where(goes_on, 0, within))
        captions = [index for index in boxes.captions for _ in range(1 if index == 0 else 2)]
        return np.sort(np.concatenate([before, after, np.array(captions, np.int64)])), dict(boxes.captions)

    def wrap(self, width: float) -> None:
        """Flow into lines of this many pixels."""
        self._width_of_view = width
        self._kept: dict[int, list[Place]] = {}
        firsts = np.flatnonzero(~self.boxes.linked)
        count = len(self.boxes)
        advance = np.append(self._advance[firsts], self._advance[count])
        breaks = np.searchsorted(firsts, self._breaks, side="left")
        if self.boxes.tail >= 0:
            firsts, advance = np.append(firsts, count), np.append(advance, self._advance[-1])
            count += 1
        starts = line_starts(advance, breaks, max(60.0, width - 2 * MARGIN + GAP))
        self.starts = np.append(firsts, count)[starts]

    def line_count(self) -> int:
        """How many lines there are."""
        return len(self.starts) - 1

    def line_of(self, index: int) -> int:
        """The line that a token is on."""
        return int(np.searchsorted(self.starts, index, side="right")) - 1

    def caption(self, line: int) -> str:
        """The words that stand on a line without tokens."""
        index = int(self.starts[line])
        is_empty = index == self.starts[line + 1]
        is_last = line + 2 < len(self.starts) and self.starts[line + 2] > index
        return self._captions.get(index, "") if is_empty and is_last else ""

    def places(self, line: int) -> list[Place]:
        """The tokens of a line with where they lie, in the order of the text."""
        found = self._kept.get(line)
        if found is None:
            if len(self._kept) > _LINES_KEPT:
                self._kept.clear()
            found = self._kept[line] = self._placed(int(self.starts[line]), int(self.starts[line + 1]))
        return found

    def _placed(self, begin: int, end: int) -> list[Place]:
        if begin == end:
            return []
        # Blanks at a line's beginning are not shown.
        lead = 0.0 if self._has_words_before(begin) else self._lead[begin] if begin < len(self._lead) else 0.0
        if self._right:
            return self._both_ways(begin, end, lead)
        left = MARGIN - self._advance[begin] - lead
        last = min(end, len(self.boxes))
        edges = self._advance[begin:last] + self._lead[begin:last] + left
        widths = self._widths[begin:last]
        found = [Place(begin + n, *pair) for n, pair in enumerate(zip(edges.tolist(), widths.tolist(), strict=True))]
        return found if last == end else [*found, self._tail_place(left)]

    def _tail_place(self, left: float) -> Place:
        return Place(len(self.boxes), float(self._advance[-2]) + left + GAP + 1, 0.0)

    def _has_words_before(self, index: int) -> bool:
        return index < len(self.boxes) and self._lead[index] > SPACE

    def _both_ways(self, begin: int, end: int, lead: float) -> list[Place]:
        last = min(end, len(self.boxes))
        groups = list(_all_groups(self.boxes.linked, begin, last))
        ways = [bidirectional.direction(self.boxes.spanned(first, after)) for first, after in groups]
        is_right = self._runs_right(begin)
        whole = float(self._advance[last] - self._advance[begin]) - lead - GAP
        x = max(float(MARGIN), self._width_of_view - MARGIN - whole) if is_right else float(MARGIN)
        found: list[Place] = []
        for place in bidirectional.visual_order(ways, is_right):
            first, after = groups[place]
            before = 0.0 if first == begin and not self._has_words_before(begin) else float(self._lead[first])
            turned = ways[place] == bidirectional.RIGHT
            if not is_right:
                x += before
            for index in range(after - 1, first - 1, -1) if turned else range(first, after):
                found.append(Place(index, x, float(self._widths[index])))
                x += float(self._widths[index])
            x += GAP + (before if is_right else 0.0)
        found.sort(key=lambda one: one.index)
        return found if last == end else [*found, Place(last, x, 0.0)]

    def _runs_right(self, index: int) -> bool:
        """Whether a token's paragraph runs from right to left."""
        place = int(self.boxes.start[index]) if index < len(self.boxes) else self.boxes.tail
        begin = self.boxes.source.rfind("\n", 0, place) + 1
        return bidirectional.base_is_right(self.boxes.source[begin : begin + 200])


def _shown_letter(code: int, whitespace: bool) -> str:
    letter = chr(code)
    if code in invisible_characters.JOINERS or 0x300 <= code < 0x370:
        return ""
    return (invisible_characters.SHOWN if whitespace else invisible_characters.HIDDEN).get(code, letter)


def _connects(codes: np.ndarray) -> np.ndarray:
    """Characters whose width depends on what is beside them: marks, connected scripts, emoji."""
    if not len(codes) or int(codes.max()) < 0x300:
        return np.zeros(len(codes), bool)
    found = (codes >= 0x300) & (codes < 0x370) | (codes >= 0x590) & (codes < 0x10A0)
    found |= (codes >= 0x1700) & (codes < 0x1C80) | (codes >= 0x200C) & (codes <= 0x200D)
    found |= (codes >= 0x20D0) & (codes < 0x2100) | (codes >= 0xFB00) & (codes < 0xFF00) | (codes >= 0x10000)
    return found


def _is_blank(codes: np.ndarray) -> np.ndarray:
    return (codes == 0x20) | (codes >= 0x09) & (codes <= 0x0D)


def _counted(places: np.ndarray, begin: np.ndarray, end: np.ndarray) -> np.ndarray:
    """How many of the sorted `places` lie from each begin up to its end."""
    if not len(places):
        return np.zeros(len(begin), np.int64)
    return np.searchsorted(places, end) - np.searchsorted(places, begin)


def _groups(linked: np.ndarray) -> Iterator[tuple[int, int]]:
    """First and last + 1 of each group of several tokens."""
    if not linked.any():
        return
    edges = np.flatnonzero(np.diff(np.concatenate([[0], linked.astype(np.int8), [0]])))
    for begin, end in zip(edges[0::2].tolist(), edges[1::2].tolist(), strict=True):
        yield begin - 1, end


def _all_groups(linked: np.ndarray, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """First and last + 1 of each group, those of one token too."""
    firsts = [begin + place for place in np.flatnonzero(~linked[begin:end]).tolist()]
    yield from pairwise([*firsts, end])


def line_starts(advance: np.ndarray, breaks: np.ndarray, width: float) -> np.ndarray:
    """Starts of the lines and at the end the number of boxes; between two equal starts lies an empty line.

    `advance` is (boxes + 1,): where each box begins if there were one line. `breaks` is sorted: a box before which a
    line must end, as many times as there are line breaks.
    """
    places, count = advance.tolist(), len(advance) - 1
    starts, begin = [0], 0
    for stop in [*breaks.tolist(), count]:
        while begin < stop:
            fits = bisect_right(places, places[begin] + width, begin) - 1
            begin = min(stop, max(begin + 1, fits))
            starts.append(begin)
    if not len(breaks):
        return np.array(starts, np.int64)
    repeated, counts = np.unique(breaks, return_counts=True)
    # The first of several breaks ends the line before; at the very beginning there is none.
    empty = np.repeat(repeated, counts - (repeated > 0))
    return np.sort(np.concatenate([np.array(starts, np.int64), empty]), kind="stable")


# Grapheme clusters: what people see as one character is never cut

_AROUND = 64
"""Characters before a place from which on clusters are counted; longer ones are beyond any script."""
_EXTENDS, _JOINS = 1, 2
_VIRAMA = 9
"""The canonical combining class of signs that join two consonants."""


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


def is_cut_within(source: str, place: int) -> bool:
    """Whether a cut before the character at `place` would part a cluster."""
    begin = max(0, place - _AROUND)
    before, around = source[begin:place], source[begin : place + 2]
    finder = QTextBoundaryFinder(QTextBoundaryFinder.BoundaryType.Grapheme, around)
    finder.setPosition(len(before.encode("utf-16-le", "surrogatepass")) // 2)
    return not finder.isAtBoundary()


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
