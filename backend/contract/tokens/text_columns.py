"""Guesses which columns of a data set hold its texts, and which one the language."""

from collections.abc import Sequence

LANGUAGE_NAMES = ("language", "lang", "locale", "language_code", "lang_id")
LONG = 12
"""Characters of a usual cell from which a column is a text rather than a label."""
LOOKED_AT = 200
"""Rows that are enough for a guess."""

Cells = Sequence[str | None]


def text_column(columns: Sequence[str], rows: Sequence[Cells]) -> str:
    """The column with the longest typical cell among the first rows; empty if there are no columns."""
    lengths = _median_lengths(columns, rows)
    return max(columns, key=lengths.__getitem__, default="")


def likely_texts(columns: Sequence[str], rows: Sequence[Cells]) -> list[str]:
    """That column, and those with similarly long cells, such as translations; none if all are empty or numbers."""
    lengths = _median_lengths(columns, rows)
    longest = max(lengths.values(), default=0)
    if not longest:
        return []
    least = max(LONG, longest / 3) if longest >= LONG else longest
    return [name for name, length in lengths.items() if length >= least]


def language_column(columns: Sequence[str]) -> str:
    """The column with a usual name, or an empty text."""
    return next((name for name in columns if name.lower() in LANGUAGE_NAMES), "")


def _median_lengths(columns: Sequence[str], rows: Sequence[Cells]) -> dict[str, int]:
    """Each column's median cell length; numbers count as empty."""
    looked_at = rows[:LOOKED_AT]
    return {
        name: _median([len(cell) if cell and not _is_number(cell) else 0 for cell in _column(looked_at, place)])
        for place, name in enumerate(columns)
    }


def _column(rows: Sequence[Cells], place: int) -> list[str | None]:
    return [row[place] for row in rows if place < len(row)]


def _median(lengths: list[int]) -> int:
    return sorted(lengths)[len(lengths) // 2] if lengths else 0


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
