"""The text that shows tokens: stretches of one ink, and where in it each token is."""

import re
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice, pairwise

from PySide6.QtCore import QTextBoundaryFinder

from app.core.i18n import tr
from app.core.text.direction import JUDGED, runs_right_to_left
from app.core.text.invisible_characters import visible
from app.core.text.shown_tokens import SPECIAL, ShownToken, shorten

USUAL_INK, SPECIAL_INK, FAINT_INK, CAPTION_INK = "token_text", "token_special_text", "faint", "caption"
GAP_SHOWN = 32
"""Characters of untouched text that are shown before a token."""
CONTEXT = 40
"""Characters before a token by which it is decided whether it starts within what people see as one character."""
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

    def __init__(self, tokens: Sequence[ShownToken], rest: str, whitespace: bool) -> None:
        self.tokens = tokens
        self.runs: list[tuple[str, list[str]]] = []
        """Ink and the parts of the text in it."""
        self.firsts = _firsts_of_groups(tokens)
        """The first token of each group."""
        self.starts: list[int] = []
        self.ends: list[int] = []
        """Where each group is in the text."""
        self.turned: list[int] = []
        """Where paragraphs that run from right to left begin."""
        self.is_mixed = any(not token.text.isascii() and RIGHT_TO_LEFT.search(token.text) for token in tokens)
        self._whitespace, self._length, self._is_new_line = whitespace, 0, True
        for first, last in pairwise([*self.firsts, len(tokens)]):
            self._write_before(first, tokens[first].gap, tokens[first].caption)
            self._write_group(first, last)
        if rest:
            self._write_before(len(tokens), rest)

    def group_at(self, position: int) -> int:
        """The last group that starts at a position or before it; −1 if none does."""
        return bisect_right(self.starts, position) - 1

    def group_of(self, token: int) -> int:
        """The group that a token belongs to."""
        return bisect_right(self.firsts, token) - 1

    def tokens_of(self, group: int) -> range:
        """The tokens of a group."""
        last = self.firsts[group + 1] if group + 1 < len(self.firsts) else len(self.tokens)
        return range(self.firsts[group], last)

    def source_of(self, group: int) -> str:
        """The text that a group stands for."""
        tokens = self.tokens_of(group)
        return _source(self.tokens, tokens.start, tokens.stop)

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
        """Let the line that starts here run as its text does, whatever pieces without text are in it."""
        if not self.is_mixed:
            return
        text = ""
        for place, token in enumerate(islice(self.tokens, first, None)):
            text += "" if token.is_piece else (token.gap if place else "") + token.added
            if "\n" in text or len(text) > JUDGED:
                break
        if runs_right_to_left(text):
            self.turned.append(self._length)

    def _write_before(self, first: int, gap: str, caption: str = "") -> None:
        """Write what stands before a token: line breaks, a caption, and words that no token covers."""
        words = _shorten_gap(gap)
        self._break_line(min(1, gap.count("\n")) if words else gap.count("\n"))
        if caption:
            self._break_line(0 if self._is_new_line else 1)
            self._write(caption, CAPTION_INK)
            self._break_line()
        if self._is_new_line:
            self._turn_line(first)
        else:
            self._write(f"{_BETWEEN} " if gap and not words else _BETWEEN, USUAL_INK)
        if words:
            self._write(_make_visible(words, self._whitespace), FAINT_INK)
            self._write(_BETWEEN, USUAL_INK)

    def _write_group(self, first: int, last: int) -> None:
        token, text = self.tokens[first], _source(self.tokens, first, last)
        breaks = 0 if token.is_piece else text.count("\n")
        goes_on = breaks > 0 and not text.endswith("\n")
        if goes_on:  # what follows the line break stands on the next line
            self._break_line(breaks)
            self._turn_line(first)
        ink = SPECIAL_INK if token.kind == SPECIAL else FAINT_INK if token.is_faint else USUAL_INK
        self.starts.append(self._length)
        self._write(self._drawn_text(first, last, text), ink)
        self.ends.append(self._length)
        if not goes_on:
            self._break_line(breaks)

    def _drawn_text(self, first: int, last: int, text: str) -> str:
        shown = _make_visible(shorten(text), self._whitespace)
        if self.is_mixed:
            is_piece = self.tokens[first].is_piece
            shown = _ISOLATED.format(shown) if is_piece else self._add_direction_marks(first, last, text, shown)
        # Each token of a group has room to be pointed at.
        room = _NBSP * ((last - first) // 2)
        return f"{room}{shown}{room}"

    def _add_direction_marks(self, first: int, last: int, text: str, shown: str) -> str:
        """In bidirectional text the spaces of a token stay with its letters, which stay joined to their neighbours."""
        if not any(letter.isalpha() for letter in text):
            return shown
        if not runs_right_to_left(text):
            return f"{_LEFT_MARK}{shown}{_LEFT_MARK}"
        before = self.tokens[first - 1].text[-1:] if first and not self.tokens[first].gap else ""
        after = self.tokens[last].text[:1] if last < len(self.tokens) and not self.tokens[last].gap else ""
        left = _JOINER * (before.isalpha() and text[0].isalpha())
        right = _JOINER * (after.isalpha() and text[-1].isalpha())
        return f"{_RIGHT_MARK}{left}{shown}{right}{_RIGHT_MARK}"


def _source(tokens: Sequence[ShownToken], first: int, last: int) -> str:
    return tokens[first].added if last == first + 1 else "".join(token.added for token in tokens[first:last])


def _firsts_of_groups(tokens: Sequence[ShownToken]) -> list[int]:
    """The tokens that share no character, nor what people see as one, with the token before."""
    firsts, before = [], ""
    for place, token in enumerate(tokens):
        before = f"{before}{token.gap}"[-CONTEXT:]
        if token.is_piece or not (token.is_linked or _starts_within(before, token.added)):
            firsts.append(place)
        before = "" if token.is_piece else before + token.added
    return firsts


def _starts_within(before: str, text: str) -> bool:
    """Whether a text starts inside a grapheme cluster."""
    if not before or not text or (text[0] < "\u0300" and (text[0], before[-1]) != ("\n", "\r")):
        return False
    finder = QTextBoundaryFinder(QTextBoundaryFinder.BoundaryType.Grapheme, before + text)
    finder.setPosition(_units(before))
    return not finder.isAtBoundary()


def _shorten_gap(gap: str) -> str:
    """Untokenized text that is more than blanks, shortened; else empty."""
    text = gap.strip(" \n\t\r")
    if len(text) <= GAP_SHOWN:
        return text
    return tr("{text}… {number} more characters", text=text[:GAP_SHOWN], number=len(text) - GAP_SHOWN)


@lru_cache(20_000)
def _make_visible(text: str, whitespace: bool) -> str:
    """The drawn form of a text, within which no line ends unless it is wider than one."""
    return _KEPT_TOGETHER.sub(_WORD_JOINER, visible(text, whitespace).replace(" ", _NBSP))


def _units(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
