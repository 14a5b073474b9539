"""A comparison of tokenizers on screen: their counts by language as a table and as bars, their lines side by side."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.core.formatting import grouped
from app.core.i18n import figure, plain, tr
from backend.contract.tokens.comparison import DataComparison, LanguageCounts

MEASURES = ((tr("Per word"), "words"), (tr("Per character"), "characters"), (tr("Per row"), "rows"))
"""Title and what the tokens are divided by."""
UNITS = {"words": tr("tokens per word"), "characters": tr("tokens per character"), "rows": tr("tokens per row")}
ALL = tr("All")
MAX_GROUPS = 12
"""Languages whose bars are drawn; the table has all of them."""
COLUMNS = (
    "tokenizer", "language", "rows", "tokens", "per_word", "per_character", "per_row", "median", "longest", "unknown",
)  # fmt: skip


def rate(counts: LanguageCounts, tokenizer: int, by: str) -> float | None:
    """Tokens of one tokenizer divided by rows, words or characters; None where there are none."""
    whole = getattr(counts, by)
    return counts.tokens[tokenizer] / whole if whole else None


def bars(found: DataComparison, by: str) -> tuple[list[str], list[list[float]]]:
    """Names of the groups, and for each tokenizer the height in every group."""
    groups = _groups(found)[: MAX_GROUPS + 1]
    heights = [[rate(one, tokenizer, by) or 0.0 for one in groups] for tokenizer in range(len(found.tokenizers))]
    return [one.language or ALL for one in groups], heights


def _groups(found: DataComparison) -> list[LanguageCounts]:
    return [found.total, *found.languages]


@dataclass(frozen=True)
class RateRows:
    """The table's rows, as a RowTable takes them."""

    found: DataComparison
    names: Sequence[str]
    """Of the tokenizers, as people know them."""

    @property
    def columns(self) -> list[str]:
        """The language only where there are several."""
        return [name for name in COLUMNS if name != "language" or self.found.languages]

    @property
    def row_count(self) -> int:
        """A row for each tokenizer in each language, and in all of them."""
        return len(self.names) * (1 + len(self.found.languages))

    def place(self, row: int) -> tuple[LanguageCounts, int]:
        """The language and the tokenizer of a row."""
        language, tokenizer = divmod(row, len(self.names))
        return _groups(self.found)[language], tokenizer

    def value(self, row: int, name: str) -> float | str | None:
        """A cell for sorting."""
        counts, tokenizer = self.place(row)
        spread = (
            None
            if counts.language or (self.found.languages and row >= len(self.names))
            else self.found.spreads[tokenizer]
        )
        values = {
            "tokenizer": self.names[tokenizer],
            "language": counts.language or ALL if row < len(self.names) else counts.language or "–",
            "rows": counts.rows,
            "tokens": counts.tokens[tokenizer],
            "per_word": rate(counts, tokenizer, "words"),
            "per_character": rate(counts, tokenizer, "characters"),
            "per_row": rate(counts, tokenizer, "rows"),
            "median": None if spread is None else spread.p50,
            "longest": None if spread is None else spread.max,
            "unknown": counts.unknown[tokenizer],
        }
        return values[name]

    def cell(self, row: int, column: int) -> str | None:
        """A cell as it is shown."""
        value = self.value(row, self.columns[column])
        if isinstance(value, float):
            return figure(value, ".3f") if self.columns[column].startswith("per_") else grouped(round(value))
        return grouped(value) if isinstance(value, int) else value

    def copied(self, row: int, column: int) -> str | None:
        """The same as programs read it."""
        shown = self.cell(row, column)
        return shown and plain(shown)

    def order(self, column: str, descending: bool) -> list[int]:
        """The rows sorted by a column, those without a value last."""
        rows = range(self.row_count)
        if not column:
            return list(rows)
        known = [row for row in rows if self.value(row, column) is not None]
        unknown = [row for row in rows if self.value(row, column) is None]
        return [*sorted(known, key=lambda row: self.value(row, column), reverse=descending), *unknown]  # type: ignore[arg-type, return-value]


def padded(heights: Sequence[Sequence[int]]) -> list[list[int]]:
    """How many empty rows follow each line of each text, so that every line begins on the same row in all of them.

    `heights` are the rows that each line of each text takes by itself; a line without tokens takes one.
    """
    tallest = [max(line) for line in zip(*heights, strict=True)]
    return [[most - own for most, own in zip(tallest, text, strict=True)] for text in heights]


def gaps(lines: Sequence[int], spaces: Sequence[str], after: Sequence[int]) -> list[str]:
    """What stands before each token, with a line break for every row that has to be skipped.

    `lines` are the tokens' lines, `spaces` what the tokenizer leaves out before each of them, and `after` the rows to be
    left empty after each line.
    """
    made = []
    line = 0
    for own, space in zip(lines, spaces, strict=True):
        breaks = sum(1 + after[place] for place in range(line, own))
        made.append("\n" * breaks if breaks else space.replace("\n", " "))
        line = own
    return made
