"""Owns how the rows of added tokens begin in every table that has a row for each token: in numpy, alike in every engine."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from backend.engines.initial_weights import draw


@dataclass(frozen=True)
class NewTokens:
    """Tokens that were added to a vocabulary, and what they stood for before."""

    pieces: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """Id of an added token → ids of the pieces that it replaces. Without pieces a row begins as any new weight does."""
    known: int | None = None
    """How many ids the model was trained with. Later ones have no trained row, even where the table has rows to spare
    (mT5's has 12); None where nobody knows, and then every row of the table counts as trained."""

    def trained(self, rows: int) -> int:
        """How many of a table's rows were trained."""
        return rows if self.known is None else min(rows, self.known)

    def in_spare_rows(self, rows: int) -> list[int]:
        """Added tokens for which a table of so many rows has one already."""
        return [token for token in self.pieces if self.trained(rows) <= token < rows]

    def means(self, before: int, after: int) -> dict[int, list[int]]:
        """Row → the rows whose mean it begins as, in a table that grows from `before` to `after`."""
        trained = self.trained(before)
        found = {
            token: [piece for piece in pieces if 0 <= piece < trained]
            for token, pieces in self.pieces.items()
            if trained <= token < after
        }
        return {token: pieces for token, pieces in found.items() if pieces}

    def words(self, before: int, after: int) -> str:
        """What happens to a table that grows from `before` to `after`, for people; empty where nothing does."""
        spare, means = len(self.in_spare_rows(before)), len(self.means(before, after))
        parts = [f"{_rows(after - before)} added to the vocabulary of {before}"] if after > before else []
        if spare:
            parts.append(f"{_rows(spare)} to spare in the vocabulary of {before} taken by added tokens")
        if parts and means:
            parts.append(f"{_rows(means)} begun as the mean of the pieces replaced")
        return "; ".join(parts)


def grown(name: str, stored: np.ndarray, rows: int, config: Mapping[str, Any], seed: int, new: NewTokens) -> np.ndarray:
    """The table or bias `stored`, (rows before, …), with at least as many `rows`; `name` is its Hugging Face name.

    A row that is not the mean of others stays as it is stored, and beyond the stored ones is drawn as any new weight.
    """
    before = len(stored)
    values = draw(name, (rows, *stored.shape[1:]), dict(config), seed) if rows > before else stored.copy()
    values[:before] = stored
    for token, pieces in new.means(before, rows).items():
        values[token] = stored[pieces].mean(axis=0, dtype=np.float64)
    return values


def _rows(number: int) -> str:
    return f"{number} {'row' if number == 1 else 'rows'}"
