"""Owns lists of ids and of pieces as people type and read them."""

import json
import re
from collections.abc import Sequence

from app.core.i18n import tr
from backend.contract.safe_text import parse_json


def read_ids(text: str) -> list[int]:
    """`101, 7592 102` or `[101, 7592]`. Raises ValueError with what is no id."""
    words = [word for word in re.split(r"[\s,;\[\]()]+", text) if word]
    wrong = next((word for word in words if not re.fullmatch(r"\d{1,15}", word)), None)
    if wrong is not None:
        raise ValueError(tr("{wrong!r} is no id; write whole numbers, for example 101, 7592, 102.", wrong=wrong[:40]))
    return [int(word) for word in words]


def read_pieces(text: str) -> list[str]:
    """A JSON list, or one a line where there are several lines, or what stands between spaces."""
    stripped = text.strip()
    if stripped.startswith("["):
        try:
            values = parse_json(stripped)
        except ValueError:  # [CLS] and its like begin so too
            values = None
        if isinstance(values, list) and all(isinstance(value, str) for value in values):
            return values
    if "\n" in stripped:
        return [line for line in stripped.split("\n") if line]
    return stripped.split()


def write_pieces(pieces: Sequence[str | None], ids: Sequence[int | None]) -> str:
    """What `read_pieces` reads again, as far as every id has a piece; one that has none is `⟨no piece 99⟩`."""
    words = [
        tr("⟨no piece {number}⟩", number=number) if piece is None else piece
        for piece, number in zip(pieces, ids, strict=True)
    ]
    if any(piece is None for piece in pieces) or not any(_is_ambiguous(word) for word in words):
        return " ".join(words)
    return json.dumps(words, ensure_ascii=False)


def _is_ambiguous(piece: str) -> bool:
    return not piece or any(sign.isspace() for sign in piece)


def write_ids(ids: Sequence[int | None]) -> str:
    """`101, 7592`; a piece without an id is `–`."""
    return ", ".join("–" if number is None else str(number) for number in ids)
