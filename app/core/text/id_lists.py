"""Parses lists of ids and pieces as people type them."""

import re
from dataclasses import dataclass

from app.core.i18n import tr
from backend.contract.safe_text import parse_json

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
