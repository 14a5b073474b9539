"""Tokens as paragraphs of Qt's text layout, each laid out on first view, so that 100,000 tokens are fast.

Qt shapes letters, orders both writing directions and fills lines; this module decides what to show of each token, and
that no token is broken across lines. All work that grows with the number of tokens is done by numpy.
"""

import re
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from PySide6.QtCore import QPointF, Qt, QTextBoundaryFinder
from PySide6.QtGui import QFont, QFontMetricsF, QTextCharFormat, QTextLayout, QTextLine, QTextOption

from app.core.i18n import tr
from app.core.text.direction import JUDGED, runs_right_to_left
from app.core.text.invisible_characters import visible
from app.core.text.token_boxes import LONGEST, SPECIAL, TokenBoxes, without_endless_groups
from app.widgets.text.marked_text import extent

LINE, BOX = 27, 21
MARGIN, PAD = 4, 2.5
"""Pixels around all tokens, and of a box beside its letters; a space separates two tokens."""
LEAST = 9.0
"""Pixels of a token that shares a character with others."""
GAP_SHOWN = 32
"""Characters of untouched text that are shown before a token."""
LONGEST_PARAGRAPH = 4_000
"""Characters that are laid out at once; a longer paragraph continues on a new line."""
EXACT = 30_000
"""Characters up to which all is laid out; in a longer text, parts that have not been visible yet have an estimated height."""
_KEPT = 200
"""Paragraphs whose layout stays in memory."""
_NBSP = "\u00a0"
_JOINER = "\u200d"
_LEFT_MARK, _RIGHT_MARK = "\u200e", "\u200f"
_ISOLATED = "\u2068{}\u2069"
"""A piece such as `</s>` keeps the order of its signs in a text from right to left."""
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]")


@dataclass(frozen=True)
class Place:
    """One token on a line; `left` counts from the view's left edge."""

    index: int
    left: float
    width: float


class _Item(NamedTuple):
    """Tokens drawn as one or, if `first` equals `last`, text that no token covers; UTF-16 units of the paragraph."""

    first: int
    last: int
    start: int
    end: int


class Paragraph:
    """Some tokens laid out together; Qt only breaks what is wider than a line."""

    def __init__(self, text: str, items: list[_Item], boxes: TokenBoxes, font: QFont, width: float) -> None:
        self._items, self._boxes = items, boxes
        self._is_mixed = bool(_RIGHT_TO_LEFT.search(text))
        self.layout = QTextLayout(text, font)
        self.layout.setTextOption(self._option())
        self.layout.setCacheEnabled(True)
        starts, ends = [item.start for item in items], [item.end for item in items]
        baseline = (BOX + QFontMetricsF(font).ascent() - QFontMetricsF(font).descent()) / 2
        self.layout.beginLayout()
        while (line := self.layout.createLine()).isValid():
            line.setLineWidth(width)
            reached = line.textStart() + line.textLength()
            fitting = bisect_right(ends, reached)
            following = starts[fitting] if fitting < len(starts) else ends[-1]
            if following > line.textStart():
                line.setNumColumns(following - line.textStart(), width)
            line.setPosition(QPointF(0, line.lineNumber() * LINE + baseline - line.ascent()))
        self.layout.endLayout()

    def _option(self) -> QTextOption:
        first = self._items[0].first if self._items else 0
        option = QTextOption()
        option.setWrapMode(QTextOption.WrapMode.WrapAnywhere)
        if self._is_mixed and runs_right_to_left(_source_at(self._boxes, first)):
            option.setTextDirection(Qt.LayoutDirection.RightToLeft)
            option.setAlignment(Qt.AlignmentFlag.AlignRight)
        else:
            option.setTextDirection(Qt.LayoutDirection.LeftToRight)
        return option

    @cached_property
    def lines(self) -> list[list[Place]]:
        """The tokens of each line, in text order."""
        found: list[list[Place]] = [[] for _ in range(self.layout.lineCount())]
        for item in self._items:
            pieces = list(self._pieces(item)) if item.last > item.first else []
            if item.last == item.first + 1:
                for number, left, right in pieces:
                    found[number].append(Place(item.first, left, right - left))
            elif pieces:
                number, left, right = pieces[0]
                found[number] += self._shares(item, left, right)
        return found

    def _pieces(self, item: _Item) -> Iterator[tuple[int, float, float]]:
        """Line, left and right of each part of an item; one wider than a line has several."""
        line = self.layout.lineForTextPosition(item.start)
        while line.isValid() and line.textStart() < item.end:
            start, end = max(item.start, line.textStart()), min(item.end, line.textStart() + line.textLength())
            left, right = extent(line, start, end, True) if self._is_mixed else _edges(line, start, end)
            yield line.lineNumber(), left + MARGIN, right + MARGIN + 2 * PAD
            line = self.layout.lineAt(line.lineNumber() + 1) if end < item.end else QTextLine()

    def _shares(self, item: _Item, left: float, right: float) -> list[Place]:
        """Tokens drawn as one, each with its share of the bytes."""
        boxes = self._boxes
        shares = boxes.weight[item.first : item.last] / boxes.weight[item.first : item.last].sum()
        widths = np.maximum(LEAST, shares * (right - left))
        widths *= (right - left) / widths.sum()
        turned = bool(_RIGHT_TO_LEFT.match(boxes.spanned(item.first, item.last)))
        edges = [left, *(left + np.cumsum(widths[::-1] if turned else widths)).tolist()]
        places = [Place(item.first, begin, end - begin) for begin, end in pairwise(edges)]
        numbers = range(item.last - 1, item.first - 1, -1) if turned else range(item.first, item.last)
        found = [replace(place, index=index) for place, index in zip(places, numbers, strict=True)]
        return found[::-1] if turned else found

    def formats(self, inks: dict[str, QTextCharFormat]) -> list[QTextLayout.FormatRange]:
        """Formats for another text colour: for `special` tokens, and for `faint` ones and the text between them."""
        boxes, found = self._boxes, []
        for item in self._items:
            is_gap = item.first == item.last
            if is_gap or boxes.faint[item.first] or boxes.kind[item.first] == SPECIAL:
                ink = "faint" if is_gap or boxes.kind[item.first] != SPECIAL else "special"
                made = QTextLayout.FormatRange()
                made.start, made.length, made.format = item.start, item.end - item.start, inks[ink]  # type: ignore[misc]
                found.append(made)
        return found


def _edges(line: QTextLine, start: int, end: int) -> tuple[float, float]:
    return line.cursorToX(start)[0], line.cursorToX(end)[0]  # pyright: ignore[reportIndexIssue]  it is (x, place)


def _source_at(boxes: TokenBoxes, index: int) -> str:
    """The start of the text paragraph that contains a token."""
    place = int(boxes.start[index]) if index < len(boxes) else boxes.tail
    begin = boxes.source.rfind("\n", 0, place) + 1
    return boxes.source[begin : begin + JUDGED]


class TokenParagraphs:
    """Paragraphs at one width; after `set_boxes`, `boxes` know which tokens are drawn as one."""

    def __init__(self, font: QFont) -> None:
        self._font, self._metrics = font, QFontMetricsF(font)
        self._font.setFeature(QFont.Tag("calt"), 0)  # `<|` is no arrow here
        self._cell = self._metrics.horizontalAdvance("x")

    def set_boxes(self, boxes: TokenBoxes, whitespace: bool) -> None:
        """Set other tokens, or another display of white space; call `wrap` afterwards."""
        self._whitespace = whitespace
        codes = np.frombuffer(boxes.source.encode("utf-32-le", "surrogatepass"), np.uint32)
        linked = boxes.linked | _linked_by_clusters(boxes, codes)
        self.boxes = replace(boxes, linked=without_endless_groups(linked))
        self._split(codes)

    # Paragraphs

    def _split(self, codes: np.ndarray) -> None:
        """Where each paragraph starts, the empty lines above it, and its approximate width in characters."""
        boxes, count = self.boxes, len(self.boxes)
        begins, times = np.unique(np.append(self._breaks(codes), 0), return_counts=True)
        first = begins[np.searchsorted(begins, np.arange(count), side="right") - 1]
        part = (boxes.start - boxes.start[first]) // LONGEST_PARAGRAPH
        further = np.flatnonzero((part[1:] > part[:-1]) & (first[1:] == first[:-1]) & ~boxes.linked[1:]) + 1
        self._firsts = np.union1d(begins, further)
        self._empty = np.zeros(len(self._firsts), np.int64)
        self._empty[np.searchsorted(self._firsts, begins)] = times - 1
        characters = np.minimum(boxes.end - boxes.start, LONGEST) + 1
        characters[list(boxes.labels)] += np.array([len(label) for label in boxes.labels.values()], np.int64)
        reached = np.concatenate([[0], np.cumsum(characters)])
        self._edges = np.append(self._firsts, count)
        self._characters = np.diff(reached[self._edges])

    def _breaks(self, codes: np.ndarray) -> np.ndarray:
        """Tokens before which a line ends, repeated for empty lines; a caption takes its own line."""
        boxes, places = self.boxes, np.arange(len(self.boxes))
        ends = np.flatnonzero(codes == 0x0A)
        begin = np.where(boxes.gap >= 0, boxes.gap, boxes.start)
        ended = _count_between(ends, begin, boxes.start)
        has_words = _count_between(np.flatnonzero(~_is_blank(codes)), begin, boxes.start) > 0
        # Words that were left out stand on one line.
        before = np.repeat(places, np.where(has_words, np.minimum(ended, 1), ended))
        within = _count_between(ends, boxes.start, boxes.end)
        within[list(boxes.labels)] = 0
        within[:-1][boxes.linked[1:]] = 0
        # A token that continues after its line break stands on the next line.
        continues = (within > 0) & (codes[np.maximum(boxes.end - 1, 0)] != 0x0A) if len(codes) else within > 0
        before = np.concatenate([before, np.repeat(places, np.where(continues, within, 0))])
        after = np.repeat(places + 1, np.where(continues, 0, within))
        captions = [index for index in boxes.captions for _ in range(1 if index == 0 else 2)]
        breaks = np.concatenate([before, after, np.array(captions, np.int64)])
        whole = np.append(np.flatnonzero(~boxes.linked), len(boxes))
        return whole[np.searchsorted(whole, breaks)]

    def wrap(self, width: float) -> None:
        """Flow into lines with this width in pixels."""
        self._width = max(60.0, width - 2 * MARGIN - 2 * PAD)
        self._kept: OrderedDict[int, Paragraph] = OrderedDict()
        has_tokens = self._characters > 0
        has_tokens[-1] |= self.boxes.tail >= 0
        self._own = np.where(has_tokens, np.maximum(1, np.ceil(self._characters * self._cell / self._width)), 0).astype(np.int64)  # fmt: skip
        self._is_known = ~has_tokens
        self._count_lines()
        if self._characters.sum() <= EXACT:
            for number in np.flatnonzero(has_tokens).tolist():
                self._look_at(number)
            self._count_lines()

    def _count_lines(self) -> None:
        self._tops = np.concatenate([[0], np.cumsum(self._empty + self._own)])

    def lay_out(self, first: int, last: int) -> int:
        """Lay out the paragraphs on these lines; returns by how many lines those that start there have moved."""
        number = self._number_at(first)
        moved = number if self._tops[number] >= first else min(number + 1, len(self._own))
        before = int(self._tops[moved])
        while number < len(self._own) and self._tops[number] <= last + int(self._tops[moved]) - before:
            if not self._is_known[number]:
                self._look_at(number)
                self._count_lines()
            number += 1
        return int(self._tops[moved]) - before

    @property
    def laid_out(self) -> int:
        """How many paragraphs have been laid out."""
        return int((self._is_known & (self._own > 0)).sum())

    def _look_at(self, number: int) -> Paragraph:
        found = self._kept.get(number)
        if found is None:
            found = self._kept[number] = self._lay_out(number)
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
            self._own[number], self._is_known[number] = found.layout.lineCount(), True
        return found

    def paragraph(self, number: int) -> Paragraph:
        """One paragraph, laid out."""
        is_known = self._is_known[number]
        found = self._look_at(number)
        if not is_known:
            self._count_lines()
        return found

    def _lay_out(self, number: int) -> Paragraph:
        begin, end = (int(edge) for edge in self._edges[number : number + 2])
        boxes, words, items, at = self.boxes, [], [], 0
        start, gap = boxes.start[begin:end], boxes.gap[begin:end]
        has_gap = ((gap >= 0) & (gap < start)).tolist()
        firsts = (np.flatnonzero(~boxes.linked[begin:end]) + begin).tolist()
        is_mixed = bool(end > begin and _RIGHT_TO_LEFT.search(boxes.source[start[0] : boxes.end[end - 1]]))
        parts = [(first, last, *self._drawn_text(first, last, is_mixed)) for first, last in pairwise([*firsts, end])]
        if end == len(boxes) and boxes.tail >= 0 and number == len(self._firsts) - 1:
            parts.append((end, end, "", 0))
            has_gap.append(True)
        for first, last, shown, units in parts:
            if has_gap[first - begin]:
                if between := self.gap_text(first):
                    text, length = _make_visible(between, self._whitespace)
                    words.append(text)
                    items.append(_Item(first, first, at, at + length))
                    at += length + 1
                elif first > begin:
                    words.append("")
                    at += 1
            if last > first:
                words.append(shown)
                items.append(_Item(first, last, at, at + units))
                at += units + 1
        return Paragraph(" ".join(words), items, boxes, self._font, self._width)

    def _drawn_text(self, first: int, last: int, is_mixed: bool) -> tuple[str, int]:
        """The drawn text of a group of tokens, and its length in UTF-16 units."""
        text = self.boxes.shown(first, last)
        shown, units = _make_visible(text, self._whitespace)
        if not is_mixed and last == first + 1:
            return shown, units
        if is_mixed:
            shown = (
                _ISOLATED.format(shown) if first in self.boxes.labels else self._add_direction_marks(first, text, shown)
            )
        lacking = (last - first) * LEAST - 2 * PAD - self._metrics.horizontalAdvance(shown) if last - first > 1 else 0
        room = _NBSP * max(0, round(lacking / self._cell / 2 + 0.49))
        return f"{room}{shown}{room}", _units(shown) + 2 * len(room)

    def _add_direction_marks(self, first: int, text: str, shown: str) -> str:
        """Add direction marks to a token in bidirectional text: its spaces stay with its letters, which stay joined."""
        if not any(letter.isalpha() for letter in text):
            return shown
        if not runs_right_to_left(text):
            return f"{_LEFT_MARK}{shown}{_LEFT_MARK}"
        source, begin = self.boxes.source, int(self.boxes.start[first])
        end = begin + len(text)
        before = begin > 0 and source[begin - 1].isalpha() and text[0].isalpha()
        after = end < len(source) and source[end].isalpha() and text[-1].isalpha()
        return f"{_RIGHT_MARK}{_JOINER * before}{shown}{_JOINER * after}{_RIGHT_MARK}"

    def gap_text(self, index: int) -> str:
        """Untokenized text before a token that is more than blanks, shortened; else empty."""
        text = self.boxes.gap_text(index).strip(" \n\t\r")
        return (
            text
            if len(text) <= GAP_SHOWN
            else tr("{text}… {number} more characters", text=text[:GAP_SHOWN], number=len(text) - GAP_SHOWN)
        )

    # Lines

    def line_count(self) -> int:
        """The number of lines; for a long text approximate."""
        return int(self._tops[-1])

    def _number_at(self, line: int) -> int:
        return min(len(self._own) - 1, max(0, int(np.searchsorted(self._tops, line, side="right")) - 1))

    def paragraphs_between(self, first: int, last: int) -> Iterator[tuple[int, str, Paragraph | None]]:
        """The paragraphs that overlap these lines, each with its first line and its caption."""
        for number in range(self._number_at(first), self._number_at(last) + 1):
            top, own = int(self._tops[number] + self._empty[number]), int(self._own[number])
            caption = self.boxes.captions.get(int(self._firsts[number]), "") if self._empty[number] else ""
            yield top, caption, self.paragraph(number) if own else None

    def line_of(self, index: int) -> int:
        """The line on which a token starts."""
        number = int(np.searchsorted(self._firsts, index, side="right")) - 1
        lines = self.paragraph(number).lines
        own = next(place for place, line in enumerate(lines) if any(one.index == index for one in line))
        return int(self._tops[number] + self._empty[number]) + own

    def places(self, line: int) -> list[Place]:
        """The tokens of a line with their positions, in text order."""
        number = self._number_at(line)
        if not self._own[number]:
            return []
        lines = self.paragraph(number).lines
        own = line - int(self._tops[number] + self._empty[number])
        return lines[own] if 0 <= own < len(lines) else []


@lru_cache(20_000)
def _make_visible(text: str, whitespace: bool) -> tuple[str, int]:
    """The drawn form of a text, and its length in UTF-16 units."""
    shown = visible(text, whitespace).replace(" ", _NBSP)
    return shown, _units(shown)


def _units(text: str) -> int:
    """Length as Qt counts it, in UTF-16."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def _is_blank(codes: np.ndarray) -> np.ndarray:
    return (codes == 0x20) | (codes >= 0x09) & (codes <= 0x0D)


def _count_between(places: np.ndarray, begin: np.ndarray, end: np.ndarray) -> np.ndarray:
    """How many of the sorted `places` are between each start and its end."""
    return np.searchsorted(places, end) - np.searchsorted(places, begin)


def _linked_by_clusters(boxes: TokenBoxes, codes: np.ndarray) -> np.ndarray:
    """Whether each token starts inside a grapheme cluster that the previous token has started."""
    linked = np.zeros(len(boxes), bool)
    if len(boxes) < 2 or not len(codes) or (int(codes.max()) < 0x300 and not (codes == 0x0D).any()):
        return linked
    start, end = boxes.start, boxes.end
    follows = (start[1:] == end[:-1]) & (end[1:] > start[1:]) & (end[:-1] > start[:-1])
    # Most boundaries lie between letters of Latin or between ideographs, of which none joins the one before.
    plain = (codes < 0x300) & (codes != 0x0D) & (codes != 0x0A) | (codes >= 0x2E80) & (codes < 0xA000) & (codes != 0x3099) & (codes != 0x309A)  # fmt: skip
    doubtful = np.flatnonzero(follows & ~(plain[np.minimum(start[1:], len(codes) - 1)] & plain[np.maximum(start[1:] - 1, 0)])) + 1  # fmt: skip
    if len(doubtful):
        finder = QTextBoundaryFinder(QTextBoundaryFinder.BoundaryType.Grapheme, boxes.source)
        units = np.concatenate([[0], np.cumsum(np.where(codes > 0xFFFF, 2, 1))])
        for index, place in zip(doubtful.tolist(), units[start[doubtful]].tolist(), strict=True):
            finder.setPosition(place)
            linked[index] = not finder.isAtBoundary()
    return linked
