"""Parses and writes lists of ids and pieces as people type and read them."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from app.core.i18n import tr
from backend.contract.safe_text import parse_json

# Several lists, one a line

LARGEST = 2**63 - 1


@dataclass(frozen=True)
class Written:
    """Lists of ids or lists of pieces, or why the text is neither."""

    ids: list[list[int]]
    pieces: list[list[str]]
    problem: str = ""

    @property
    def nothing(self) -> bool:
        """Whether the text is empty."""
        return not self.ids and not self.pieces and not self.problem


def read_lists(text: str) -> Written:
    """Numbers are ids and words are pieces; lists may be JSON, Python, or separated by spaces or commas."""
    whole = _json(text)
    rows = whole if whole is not None else [found for line in text.splitlines() if (found := _row(line))]
    rows = [row for row in rows if row]
    if all(isinstance(one, int) for row in rows for one in row):
        return _ids([[one for one in row if isinstance(one, int)] for row in rows])
    return Written([], [[str(one) for one in row] for row in rows])


def _ids(rows: list[list[int]]) -> Written:
    wrong = next((one for row in rows for one in row if not 0 <= one <= LARGEST), None)
    if wrong is not None:
        return Written([], [], tr("{wrong} is not an ID; IDs are whole numbers starting at 0.", wrong=wrong))
    return Written(rows, [])


def _json(text: str) -> list[list[int | str]] | None:
    """A JSON list, or a list of lists, over any number of lines."""
    try:
        found = parse_json(text)
    except ValueError:
        return None
    if not isinstance(found, list):
        return None
    rows = found if any(isinstance(one, list) for one in found) else [found]
    return [[_one(item) for item in row] for row in rows if isinstance(row, list)]


def _one(item: object) -> int | str:
    return item if isinstance(item, int) and not isinstance(item, bool) else str(item)


def _row(line: str) -> list[int | str]:
    as_list = _json(line.strip().rstrip(","))
    if as_list is not None:
        return as_list[0] if as_list else []
    bare = re.sub(r"^\s*[\[(]|[\])]\s*,?\s*$", "", line) if re.fullmatch(r"[\s\d,;\[\]()-]*", line) else line
    if re.fullmatch(r"[\s\d,;-]*", bare):
        return [int(word) for word in re.findall(r"-?\d+", bare)]
    if re.match(r"\s*\[\s*['\"]", line):  # a list as Python prints it
        return [_unquote(word) for word in re.findall(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", line)]
    return list(line.split())


def _unquote(word: str) -> str:
    return word[1:-1].replace("\\'", "'").replace('\\"', '"').replace("\\\\", "\\")


# One list


def read_ids(text: str) -> list[int]:
    """`101, 7592 102` or `[101, 7592]`. Raises ValueError with the part that is not an id."""
    words = [word for word in re.split(r"[\s,;\[\]()]+", text) if word]
    wrong = next((word for word in words if not re.fullmatch(r"\d{1,15}", word)), None)
    if wrong is not None:
        raise ValueError(
            tr("{wrong!r} is not an ID; enter whole numbers, for example 101, 7592, 102.", wrong=wrong[:40])
        )
    return [int(word) for word in words]


def read_pieces(text: str) -> list[str]:
    """A JSON list, or one piece per line if there are several lines, or split at spaces."""
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
    """Text that `read_pieces` can read again if every id has a piece; one without is `⟨no piece 99⟩`."""
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
