"""A comparison of tokenizers on screen: counts by language as a table and as bars."""

from collections.abc import Sequence

from app.core.formatting import group_digits
from app.core.i18n import figure, tr
from app.core.table_rows import TableRows
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
    """One tokenizer's tokens divided by rows, words or characters; None if there are none."""
    whole = getattr(counts, by)
    return counts.tokens[tokenizer] / whole if whole else None


def rates_by_language(found: DataComparison, by: str) -> list[tuple[str, list[float | None]]]:
    """Each tokenizer's rate in all languages together and in each of the first ones, whose names need not differ."""
    tokenizers = range(len(found.tokenizers))
    return [
        (
            one.language or (ALL if one is found.total else "–"),
            [rate(one, tokenizer, by) for tokenizer in tokenizers],
        )
        for one in _groups(found)[: MAX_GROUPS + 1]
    ]


def _groups(found: DataComparison) -> list[LanguageCounts]:
    return [found.total, *found.languages]


def rate_rows(found: DataComparison, names: Sequence[str]) -> TableRows:
    """A row for each tokenizer overall and per language; the language column only if there are several."""
    has_languages = bool(found.languages)
    columns = [name for name in COLUMNS if name != "language" or has_languages]
    rows = []
    for number, counts in enumerate(_groups(found)):
        for place, name in enumerate(names):
            spread = found.spreads[place] if number == 0 else None
            values = {
                "tokenizer": name,
                "language": counts.language or (ALL if number == 0 else "–"),
                "rows": counts.rows,
                "tokens": counts.tokens[place],
                "per_word": rate(counts, place, "words"),
                "per_character": rate(counts, place, "characters"),
                "per_row": rate(counts, place, "rows"),
                "median": None if spread is None else spread.p50,
                "longest": None if spread is None else spread.max,
                "unknown": counts.unknown[place],
            }
            rows.append([values[column] for column in columns])
    return TableRows(columns, rows, shown=_cell_text)


def _cell_text(value: float | str | None, column: str) -> str | None:
    if isinstance(value, float):
        return figure(value, ".3f") if column.startswith("per_") else group_digits(round(value))
    return group_digits(value) if isinstance(value, int) else value
