"""The tokens of an answer as numpy columns."""

from functools import cached_property

import numpy as np

from backend.contract.tokens.tokens import TokenColumns, TokenPiece, Tokens

SHOWN_AT_ONCE = 10_000
"""Tokens that a view shows; of more, one part after the other."""


class TokenTable:
    """Tokens by number. Columns are read-only numpy arrays (tokens,); per-token objects are only made on request."""

    def __init__(
        self, answer: Tokens, columns: dict[str, np.ndarray], sources: list[str] | None = None, first: int = 0
    ) -> None:
        self.answer = answer
        """Counts, notes, round trip and everything else that is not of one token; its own columns may be empty."""
        self.columns = columns
        self.sources = answer.sources if sources is None else sources
        """The texts that `start` and `end` count in; of a part of a table the stretch that it is of."""
        self.first = first
        """The number of the first token where this is a part of a longer table."""
        self.begin = self.byte_begin = 0
        """Where its stretch begins in the whole text, in characters and in bytes."""

    def __len__(self) -> int:
        return len(self.columns["piece"])

    @cached_property
    def ids(self) -> np.ndarray:
        """(tokens,) int64."""
        return np.array([one.id for one in self.answer.pieces] or [0], np.int64)[self.columns["piece"][:]]

    @cached_property
    def longest_window(self) -> int:
        """Tokens in the longest window, which is what a model receives at once, without padding."""
        windows = self.columns["window"][:]
        if not windows.any():
            return self.answer.tokens
        return int(np.bincount(windows, weights=self.columns["mask"][:] == 1).max())

    def piece(self, token: int) -> TokenPiece:
        """The facts about a token's piece."""
        return self.answer.pieces[int(self.columns["piece"][token])]

    def text(self, token: int) -> str:
        """A token's characters; empty if it is not from a text. Not for a file, whose text is not here."""
        which = int(self.columns["sequence"][token])
        if which < 0 or not self.sources:
            return ""
        return self.sources[which][self.columns["start"][token] : self.columns["end"][token]]

    def raw(self, token: int) -> bytes:
        """The text bytes of the token."""
        which = int(self.columns["sequence"][token])
        if which < 0 or not self.sources:
            return b""
        source = self.sources[which].encode()
        return source[self.columns["byte_start"][token] : self.columns["byte_end"][token]]

    def part(self, first: int, last: int, source: str | None = None) -> "TokenTable":
        """Tokens `first` to `last` (exclusive) with their stretch of text: for a file it is `source`."""
        columns = {name: values[first:last] for name, values in self.columns.items()}
        if len(self.sources) > 1:
            return TokenTable(self.answer, columns, self.sources, first)
        begin, end = self.stretch(first, last)
        byte_begin, byte_end = self.stretch(first, last, "byte_")
        for kind, least, most in (("", begin, end), ("byte_", byte_begin, byte_end)):
            for name in (f"{kind}start", f"{kind}end"):
                columns[name] = np.clip(columns[name], least, most) - least
        stretch = self.sources[0][begin:end] if source is None else source
        made = TokenTable(self.answer, columns, [stretch], first)
        made.begin, made.byte_begin = begin, byte_begin
        return made

    def stretch(self, first: int, last: int, name: str = "") -> tuple[int, int]:
        """Where the text of tokens `first` to `last` starts and ends, in characters or (`byte_`) in bytes."""
        own = self.columns["sequence"][first:last] >= 0
        if not own.any():
            return 0, 0
        starts, ends = (
            self.columns[f"{name}start"][first:last],
            self.columns[f"{name}end"][first:last],
        )
        begin = int(starts[own].min()) if first else 0
        return begin, int(ends[own].max())


def no_tokens() -> TokenTable:
    """An empty table."""
    return TokenTable(Tokens(), {name: np.zeros(0, np.int32) for name in TokenColumns.__struct_fields__})
