"""Owns what is known of tokens while they are worked on: numpy arrays of one length."""

from dataclasses import dataclass, fields

import numpy as np

NOWHERE = -1
"""Of no text, of no word."""


@dataclass(frozen=True)
class Columns:
    """Tokens; `start` and `end` are characters of the text that `sequence` names, 0 where it names none."""

    ids: np.ndarray
    sequence: np.ndarray
    start: np.ndarray
    end: np.ndarray
    word: np.ndarray
    type: np.ndarray
    mask: np.ndarray
    window: np.ndarray

    def __len__(self) -> int:
        return len(self.ids)


def joined(parts: list[Columns]) -> Columns:
    """Columns after each other."""
    if len(parts) == 1:
        return parts[0]
    return Columns(**{one.name: np.concatenate([getattr(part, one.name) for part in parts]) for one in fields(Columns)})
