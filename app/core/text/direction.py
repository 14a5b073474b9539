"""Detects whether a text is written from right to left."""

import unicodedata

JUDGED = 200
"""Characters among which the first with a direction is looked for."""


def runs_right_to_left(text: str) -> bool:
    """Whether a paragraph runs from right to left: its first letter decides (rule P2 of the bidirectional algorithm)."""
    strong = () if text.isascii() else map(unicodedata.bidirectional, text[:JUDGED])
    return next((kind != "L" for kind in strong if kind in ("L", "R", "AL")), False)
