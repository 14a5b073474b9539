"""Owns the guess which column of a file holds its texts, and which one their languages."""

from collections.abc import Sequence

LANGUAGE_NAMES = ("language", "lang", "locale", "language_code", "lang_id")


def text_column(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The one with the longest cells among the first rows; empty where there are no columns."""
    lengths = [sum(len(row[place]) for row in rows) for place in range(len(columns))]
    return columns[max(range(len(columns)), key=lengths.__getitem__)] if columns else ""


def language_column(columns: Sequence[str]) -> str:
    """The one with a usual name, or nothing."""
    return next((name for name in columns if name.lower() in LANGUAGE_NAMES), "")
