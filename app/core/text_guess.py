"""Owns the guess which columns of some data a tokenizer can learn from."""

from collections.abc import Sequence

LONG = 12
"""Characters of a usual cell from which a column is a text rather than a label."""


def likely_texts(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The column with the longest cells among the first rows, and those nearly as long, such as translations."""
    lengths = {
        name: _usual_length([row[place] for row in rows if place < len(row)]) for place, name in enumerate(columns)
    }
    longest = max(lengths.values(), default=0)
    if not longest:
        return []
    least = max(LONG, longest / 3) if longest >= LONG else longest
    return [name for name, length in lengths.items() if length >= least]


def _usual_length(cells: Sequence[str]) -> float:
    """The middle length; numbers count as nothing."""
    lengths = sorted(0 if _is_number(cell) else len(cell) for cell in cells)
    return lengths[len(lengths) // 2] if lengths else 0


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
