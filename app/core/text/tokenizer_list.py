"""Owns which tokenizers were made here: where they lie, how large they are, and which of them are gone."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.core import formatting
from app.core.i18n import tr
from app.core.preferences import Preferences
from backend.contract.tokens.training import MadeTokenizer

MOST = 100
"""That are remembered."""
COLUMNS = ("name", "pieces", "made", "folder")


@dataclass(frozen=True)
class MadeBefore:
    """One of them."""

    path: str
    pieces: int = 0
    when: float = 0
    """Seconds since 1970."""

    @property
    def is_there(self) -> bool:
        """Whether its folder still holds something."""
        folder = Path(self.path)
        return folder.is_dir() and any(folder.iterdir())

    @property
    def title(self) -> str:
        """In a choice: its name and when it was made."""
        return tr("{path} · made {when}", path=formatting.name_of_path(self.path), when=formatting.moment(self.when))


def remembered(preferences: Preferences) -> list[MadeBefore]:
    """The newest first; what somebody wrote into the settings by hand is left out."""
    entries = [entry for entry in preferences.made_tokenizers if _is_entry(entry)]
    return [
        MadeBefore(path, int(_number(entry, "pieces")), _number(entry, "when"))
        for entry in entries
        if isinstance(path := entry.get("path"), str) and path
    ]


def remember(preferences: Preferences, made: MadeTokenizer) -> None:
    """Put it at the top."""
    entry = {"path": made.path, "pieces": made.vocabulary, "when": time.time()}
    preferences.change("made_tokenizers", lambda kept: [entry, *_without(kept, made.path)][:MOST])


def forget(preferences: Preferences, path: str) -> None:
    """Offer it no more; its folder stays as it is."""
    preferences.change("made_tokenizers", lambda kept: _without(kept, path))


def _without(entries: Sequence[Any], path: str) -> list[dict]:
    return [entry for entry in entries if _is_entry(entry) and entry.get("path") != path]


def _number(entry: dict, name: str) -> float:
    value = entry.get(name)
    return value if isinstance(value, int | float) else 0


def _is_entry(entry: object) -> bool:
    return isinstance(entry, dict)


class MadeRows:
    """The tokenizers as a table shows them."""

    columns = COLUMNS

    def __init__(self, tokenizers: Sequence[MadeBefore]) -> None:
        self.tokenizers = tokenizers
        self._there = [each.is_there for each in tokenizers]

    @property
    def row_count(self) -> int:
        """One for each."""
        return len(self.tokenizers)

    def is_there(self, row: int) -> bool:
        """As it was when the table was made."""
        return self._there[row]

    def cell(self, row: int, column: int) -> str:
        """One value."""
        one = self.tokenizers[row]
        return {
            "name": formatting.name_of_path(one.path),
            "pieces": formatting.grouped(one.pieces) if one.pieces else "–",
            "made": formatting.moment(one.when or None),
            "folder": one.path if self._there[row] else tr("Gone: {path}", path=one.path),
        }[COLUMNS[column]]

    def color(self, row: int, column: str) -> str:
        """The colour token of a cell."""
        return "" if self._there[row] else "warning" if column == "folder" else "faint"
