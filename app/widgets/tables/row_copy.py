"""Owns what Ctrl+C takes from a table of rows: the chosen lines, cells separated by tabs, as a spreadsheet pastes them."""

from collections.abc import Iterable, Sequence

from PySide6.QtCore import QItemSelection

MAX_LINES = 5000
"""Lines that are copied at once; more take longer than a person should wait for a key, and are exported better."""


def chosen_lines(selection: QItemSelection) -> tuple[list[int], bool]:
    """Lines of a selection from top to bottom, and whether there are more than are copied."""
    ranges = sorted({(selection.at(place).top(), selection.at(place).bottom()) for place in range(selection.count())})
    lines: list[int] = []
    for top, bottom in ranges:
        lines += range(top, min(bottom + 1, top + MAX_LINES + 1 - len(lines)))
        if len(lines) > MAX_LINES:
            return lines[:MAX_LINES], True
    return lines, False


def as_tsv(rows: Iterable[Sequence[object]]) -> str:
    """Lines of cells; a cell with a tab, a line break or a quote is quoted as spreadsheets expect."""
    return "\n".join("\t".join(_cell(value) for value in row) for row in rows)


def _cell(value: object) -> str:
    text = "" if value is None else " ".join(map(str, value)) if isinstance(value, list) else str(value)
    return '"' + text.replace('"', '""') + '"' if any(mark in text for mark in '\t\n\r"') else text
