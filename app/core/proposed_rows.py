"""Owns the proposed tokens as a table shows them, and the reading of the lists that people write."""

from collections.abc import Mapping, Sequence

from app.core import wording
from backend.contract.tokenizer_making import ProposedToken, TokenCounts

COLUMNS = ("token", "pieces_now", "occurs", "note")


class ProposedRows:
    """A line for each proposed token; `counts` only where data was counted."""

    def __init__(self, tokens: Sequence[ProposedToken], counts: Mapping[str, int] | None = None) -> None:
        self.tokens, self._counts = tokens, counts
        self.columns = [name for name in COLUMNS if name != "occurs" or counts is not None]
        self.row_count = len(tokens)

    def cell(self, row: int, column: int) -> object:
        """One value."""
        token = self.tokens[row]
        return {
            "token": token.text,
            "pieces_now": "  ".join(token.pieces),
            "occurs": "" if token.problem else (self._counts or {}).get(token.text, 0),
            "note": note_of(token),
        }[self.columns[column]]

    def color(self, row: int, column: str) -> str:
        """The colour token of a cell."""
        token = self.tokens[row]
        if column == "note":
            return "warning" if token.problem else "muted"
        return "faint" if token.problem else ""


def note_of(token: ProposedToken) -> str:
    """What a person should know of a proposed token."""
    if token.problem and token.known is not None:
        return f"Already: id {token.known}"
    if token.problem:
        return token.problem[:1].upper() + token.problem[1:]
    if token.known is not None:
        return f"Is there (id {token.known}); becomes special"
    unknown = "" if token.ids else "Unknown until now"
    return ", ".join(filter(None, ("Special" if token.special else "", unknown.lower() if token.special else unknown)))


def line_of(token: ProposedToken) -> str:
    """All that is known of a proposed token."""
    pieces = f"{token.text} is now {'  '.join(token.pieces)}" if token.pieces else token.text
    return " · ".join(filter(None, (pieces, note_of(token))))


def new_tokens(tokens: Sequence[ProposedToken]) -> list[ProposedToken]:
    """Those that can be added."""
    return [token for token in tokens if not token.problem]


def tokens_of(text: str) -> list[str]:
    """One token on each line; spaces around it are no part of it."""
    return [line.strip() for line in text.splitlines() if line.strip()]


def saved_words(counts: TokenCounts) -> str:
    """What adding the tokens would change in the counted texts."""
    less = 1 - counts.tokens_after / counts.tokens_before if counts.tokens_before else 0.0
    if abs(less) >= 0.0005:
        change = f"{less:.1%} fewer" if less > 0 else f"{-less:.1%} more"
    else:
        change = "hardly fewer" if less > 0 else "hardly more" if less < 0 else "no fewer"
    before, after = wording.grouped(counts.tokens_before), wording.grouped(counts.tokens_after)
    return f"{wording.count(counts.rows, 'text')}: {before} tokens become {after} ({change})"
