"""What a view of tokens draws: each token's stretch of text, in columns and never as an object per token."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np

from app.core.i18n import tr
from app.core.text.token_table import TokenTable
from backend.contract.tokens.tokens import TokenPiece

NORMAL, SPECIAL, UNKNOWN = 0, 1, 2
LONGEST, BEGINNING = 400, 60
"""Characters that are shown of one token, and of a longer one."""


@dataclass(frozen=True)
class TokenBoxes:
    """Arrays of one length, (tokens,); positions count characters of `source`."""

    source: str
    start: np.ndarray
    end: np.ndarray
    gap: np.ndarray
    """Where the skipped text before each token starts; it ends at `start`. −1 for none."""
    kind: np.ndarray
    """NORMAL, SPECIAL or UNKNOWN."""
    faint: np.ndarray
    """Whether the token is there without counting: padding, or shared with the window before."""
    linked: np.ndarray
    """Whether a token shares its characters with the one before, so that both are drawn as one group."""
    labels: Mapping[int, str] = field(default_factory=dict)
    """Token → what is shown of it in place of its stretch."""
    captions: Mapping[int, str] = field(default_factory=dict)
    """Token → a caption above it, which starts a new line."""
    tail: int = -1
    """Where the skipped text after the last token starts, up to the source's end; −1 for none."""

    def __len__(self) -> int:
        return len(self.start)

    def text(self, index: int) -> str:
        """The display text of a token."""
        label = self.labels.get(index)
        return self.source[self.start[index] : self.end[index]] if label is None else label

    def gap_text(self, index: int) -> str:
        """The untokenized text before a token or, after the last one, the rest."""
        if index >= len(self):
            return self.source[self.tail :] if self.tail >= 0 else ""
        return self.source[self.gap[index] : self.start[index]] if self.gap[index] >= 0 else ""

    def spanned(self, first: int, last: int) -> str:
        """The text that a group of tokens represents."""
        if last - first == 1:
            return self.text(first)
        return self.source[self.start[first] : max(self.end[first:last])]


def shorten(text: str) -> str:
    """The start of a very long text, and how much more there is."""
    return (
        text
        if len(text) <= LONGEST
        else tr("{text}… {number} more characters", text=text[:BEGINNING], number=len(text) - BEGINNING)
    )


def boxes_of_texts(texts: Sequence[str], specials: Sequence[bool] | None, gaps: Sequence[str] | None) -> TokenBoxes:
    """Boxes of consecutive texts, with the untokenized text before each."""
    count = len(texts)
    gaps = gaps if gaps is not None else [""] * count
    kind = np.array(specials, np.uint8) if specials is not None else np.zeros(count, np.uint8)
    pieces = [part for pair in zip(gaps, texts, strict=True) for part in pair]
    ends = np.cumsum(np.fromiter(map(len, pieces), np.int64, len(pieces)))
    starts = ends[0::2]
    return TokenBoxes(
        source="".join(pieces),
        start=starts,
        end=ends[1::2],
        gap=starts - np.fromiter(map(len, gaps), np.int64, count),
        kind=kind,
        faint=np.zeros(count, bool),
        linked=np.zeros(count, bool),
    )


# The boxes of a table of tokens: shared characters, windows, what was left out

_SPACES = ("Ġ", "▁")
"""The prefix of a piece that includes the space before its word."""
_FAR = 1 << 40


def boxes_of(table: TokenTable) -> TokenBoxes:
    """What the view draws: stretches of the text, including the space that a piece took before its word."""
    return _Maker(table).build() if len(table) else _nothing("".join(table.sources))


class _Maker:
    """Converts columns to boxes."""

    def __init__(self, table: TokenTable) -> None:
        self._table, columns = table, table.columns
        self._pieces = table.answer.pieces
        self._texts = table.sources or [""]
        self._joined = "".join(self._texts)
        self._bases = np.concatenate([[0], np.cumsum([len(text) for text in self._texts])])
        self._sequence = columns["sequence"].astype(np.int64)
        self._of_text = self._sequence >= 0
        base = self._bases[np.maximum(self._sequence, 0)]
        self._start, self._end = columns["start"] + base, columns["end"] + base
        self._piece = columns["piece"]

    def build(self) -> TokenBoxes:
        labels = self._labels()
        gap = self._gaps()
        self._take_spaces(gap)
        gap = np.where(gap < self._start, gap, -1)
        tail = self._rest(gap)
        kind = np.array([_kind(piece) for piece in self._pieces], np.uint8)[self._piece]
        kind[~self._of_text] = SPECIAL
        return TokenBoxes(
            source=self._joined,
            start=self._start,
            end=self._end,
            gap=gap,
            kind=kind,
            faint=(self._table.columns["mask"] == 0) | self._shared,
            linked=self._find_linked(labels),
            labels=labels,
            captions=self._captions(),
            tail=tail,
        )

    def _labels(self) -> dict[int, str]:
        """Tokens without text of their own are shown as their piece."""
        bare = np.array([piece.piece in _SPACES for piece in self._pieces], bool)[self._piece]
        for index in np.flatnonzero(bare & (self._end > self._start)).tolist():
            if not self._joined[self._start[index]].isspace():  # a space that was put before the text
                self._end[index] = self._start[index]
        empty = self._end <= self._start
        return {index: self._pieces[self._piece[index]].piece for index in np.flatnonzero(empty).tolist()}

    def _gaps(self) -> np.ndarray:
        """Where the untokenized text before each token starts; −1 if unknown."""
        windows = self._table.columns["window"].astype(np.int64)
        key = windows * 2 + np.maximum(self._sequence, 0)
        reached = np.maximum.accumulate(np.where(self._of_text, key * _FAR + self._end, -1))
        before = np.concatenate([[-1], reached[:-1]])
        goes_on = (before >= 0) & (before // _FAR == key)
        begin = np.where(windows == windows[0], self._bases[np.maximum(self._sequence, 0)], -1)
        if self._table.first:
            begin = np.full(len(key), -1)
        return np.where(self._of_text, np.where(goes_on, before % _FAR, begin), -1)

    def _take_spaces(self, gap: np.ndarray) -> None:
        takes = np.array([piece.piece.startswith(_SPACES) for piece in self._pieces], bool)[self._piece]
        codes = np.frombuffer(self._joined.encode("utf-32-le", "surrogatepass"), np.uint32)
        takes &= self._of_text & (gap >= 0) & (gap < self._start) & (self._end > self._start)
        if takes.any():
            takes &= codes[np.maximum(self._start - 1, 0)] == 0x20
            self._start[takes] -= 1

    def _rest(self, gap: np.ndarray) -> int:
        """Put text after the last token before the special token that follows, else at the very end."""
        if self._table.first + len(self._table) < self._whole():
            return -1
        last_window = self._table.columns["window"] == self._table.columns["window"][-1]
        tail = -1
        for number in range(len(self._texts)):
            own = np.flatnonzero(last_window & (self._sequence == number))
            limit = int(self._bases[number + 1])
            reached = int(self._end[own].max()) if len(own) else int(self._bases[number])
            if reached >= limit:
                continue
            after = int(own[-1]) + 1 if len(own) else 1
            if after < len(self._table) and not self._of_text[after]:
                gap[after], self._start[after], self._end[after] = reached, limit, limit
            elif number == len(self._texts) - 1:
                tail = reached
        return tail

    def _whole(self) -> int:
        return self._table.answer.tokens + self._table.answer.padding

    def _find_linked(self, labels: Mapping[int, str]) -> np.ndarray:
        """Whether a token covers some of the same characters as the one before."""
        linked = np.zeros(len(self._table), bool)
        window = self._table.columns["window"]
        linked[1:] = (
            (self._sequence[1:] == self._sequence[:-1])
            & self._of_text[1:]
            & (window[1:] == window[:-1])
            & (self._start[1:] < self._end[:-1])
            & (self._end[1:] > self._start[1:])
        )
        linked[list(labels)] = False
        return linked

    def _windows(self) -> Iterator[tuple[int, int]]:
        """First and last + 1 of the tokens of each window."""
        window = self._table.columns["window"]
        return pairwise([0, *(np.flatnonzero(np.diff(window)) + 1).tolist(), len(window)])

    @cached_property
    def _shared(self) -> np.ndarray:
        """Whether a token also occurred in the previous window."""
        found = np.zeros(len(self._table), bool)
        reached = [-1] * len(self._texts)
        for begin, end in self._windows():
            for number in range(len(self._texts)):
                own = self._sequence[begin:end] == number
                if own.any():
                    ends = self._end[begin:end]
                    found[begin:end] |= own & (ends <= reached[number])
                    reached[number] = max(reached[number], int(ends[own].max()))
        return found

    def _captions(self) -> dict[int, str]:
        """Captions above windows and chat turns, and where the model stops reading."""
        answer = self._table.answer
        if answer.windows > 1:
            return self._window_captions(answer.windows)
        said = {}
        for turn in answer.turns:
            own = np.flatnonzero(self._of_text & (self._start + self._table.begin >= turn.start))
            if len(own) and turn.end > turn.start:
                said[int(own[0])] = turn.role
        beyond = (answer.limit or 0) - self._table.first
        if answer.limit and 0 < beyond < len(self._table):
            said[beyond] = tr(
                "The model reads {limit:,} tokens; anything after that is beyond its limit", limit=answer.limit
            )
        return said

    def _window_captions(self, windows: int) -> dict[int, str]:
        said: dict[int, str] = {}
        for begin, end in self._windows():
            number = int(self._table.columns["window"][begin])
            both = int(self._shared[begin:end].sum())
            words = tr(" · {both} (dashed) shared with the previous window", both=both) if both else ""
            filled = int((self._table.columns["mask"][begin:end] == 0).sum())
            padding = tr(" · {filled} padding", filled=filled) if filled else ""
            said[begin] = tr(
                "Window {number} of {windows} · {end} tokens{padding}{words}",
                number=number + 1,
                windows=windows,
                end=end - begin,
                padding=padding,
                words=words,
            )
        return said


def _kind(piece: TokenPiece) -> int:
    return UNKNOWN if piece.unknown else SPECIAL if piece.special else NORMAL


def _nothing(source: str) -> TokenBoxes:
    none, never = np.zeros(0, np.int64), np.zeros(0, bool)
    return TokenBoxes(source, none, none, none, np.zeros(0, np.uint8), never, never)
