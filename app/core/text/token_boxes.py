"""Owns what a view of tokens draws: for each token a stretch of a text, columns and never an object per token."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from app.core.i18n import tr

NORMAL, SPECIAL, UNKNOWN = 0, 1, 2
LONGEST, BEGINNING = 400, 60
"""Characters that are shown of one token, and of a longer one."""
MAX_LINKED = 40
"""Tokens that are drawn as one group; a longer one would not fit on a line."""


@dataclass(frozen=True)
class TokenBoxes:
    """Arrays of one length, (tokens,); places count characters of `source`."""

    source: str
    start: np.ndarray
    end: np.ndarray
    gap: np.ndarray
    """Where the untouched text before each token begins; it ends at `start`. −1 for none."""
    kind: np.ndarray
    """NORMAL, SPECIAL or UNKNOWN."""
    faint: np.ndarray
    """Whether the token is there without counting: padding, or shared with the window before."""
    linked: np.ndarray
    """Whether a token shares its characters with the one before, so that both are drawn as one group."""
    weight: np.ndarray
    """A token's part of its group's width."""
    labels: Mapping[int, str] = field(default_factory=dict)
    """Token → what is shown of it in place of its stretch."""
    captions: Mapping[int, str] = field(default_factory=dict)
    """Token → a line of words above it; it begins a line."""
    tail: int = -1
    """Where the untouched text after the last token begins, up to the source's end; −1 for none."""

    def __len__(self) -> int:
        return len(self.start)

    def text(self, index: int) -> str:
        """What is shown of a token."""
        label = self.labels.get(index)
        return self.source[self.start[index] : self.end[index]] if label is None else label

    def gap_text(self, index: int) -> str:
        """The untouched text before a token; of the one after the last, what is left."""
        if index >= len(self):
            return self.source[self.tail :] if self.tail >= 0 else ""
        return self.source[self.gap[index] : self.start[index]] if self.gap[index] >= 0 else ""

    def group(self, index: int) -> tuple[int, int]:
        """First and last + 1 of the tokens that are drawn as one with a token."""
        first, last = index, index + 1
        while self.linked[first]:
            first -= 1
        while last < len(self) and self.linked[last]:
            last += 1
        return first, last

    def shown(self, first: int, last: int) -> str:
        """The same as `spanned`, shortened where it would take many lines."""
        return shortened(self.spanned(first, last))

    def spanned(self, first: int, last: int) -> str:
        """The text that a group of tokens stands for."""
        if last - first == 1:
            return self.text(first)
        return self.source[self.start[first] : max(self.end[first:last])]


def shortened(text: str) -> str:
    """The beginning of a very long text, and how much more there is."""
    return (
        text
        if len(text) <= LONGEST
        else tr("{text}… {number} more characters", text=text[:BEGINNING], number=len(text) - BEGINNING)
    )


def of_texts(texts: Sequence[str], specials: Sequence[bool] | None, gaps: Sequence[str] | None) -> TokenBoxes:
    """Boxes of texts that follow each other, with the untouched text before each."""
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
        weight=np.ones(count),
    )


def without_endless_groups(linked: np.ndarray) -> np.ndarray:
    """The same links, but cut where a group has more than MAX_LINKED tokens."""
    if not linked.any():
        return linked
    places = np.arange(len(linked))
    first = np.maximum.accumulate(np.where(linked, 0, places))
    return linked & ((places - first) % MAX_LINKED != 0)
