"""Owns how batches come to one shape: filler rows and padding, up to the largest of them and to what devices can share."""

from collections.abc import Sequence

import numpy as np

from backend.contract.heads import IGNORE
from backend.engines.engine import Batch

_FILLERS = {"labels": IGNORE, "start_positions": IGNORE, "end_positions": IGNORE, "targets": IGNORE}
"""What is no target, of arrays that hold targets; a target that is a number is then NaN."""


def alike(batches: Sequence[Batch], groups: int = 1) -> list[Batch]:
    """Micro-batches with filler rows and padding up to the largest of them: one scan wants one shape.

    Their rows become a multiple of `groups`.
    """
    return [
        {name: _grown(array, _largest(batches, name, groups), name) for name, array in batch.items()}
        for batch in batches
    ]


def stacked(batches: Sequence[Batch], groups: int = 1) -> Batch:
    """On one another, (number, …); language models may have other numbers of targets."""
    return {
        name: np.stack([_grown(each[name], _largest(batches, name, groups), name) for each in batches])
        for name in batches[0]
    }


def _largest(batches: Sequence[Batch], name: str, groups: int) -> tuple[int, ...]:
    first, *others = (max(sizes) for sizes in zip(*(batch[name].shape for batch in batches), strict=True))
    return (-(-first // groups) * groups, *others)


def _grown(array: np.ndarray, shape: tuple[int, ...], name: str) -> np.ndarray:
    if array.shape == shape:
        return array
    filler = np.nan if array.dtype.kind == "f" else _FILLERS.get(name, 0)
    more = [(0, size - own) for own, size in zip(array.shape, shape, strict=True)]
    return np.pad(array, more, constant_values=filler)
