"""Packs the rows of a step's batches into fewer and fuller ones, so that a CPU computes hardly any padding.

Unlike the torch engine's rows, laid end to end, these keep few shapes: a new one is a program to compile.
"""

from collections.abc import Sequence

import numpy as np

from backend.contract.heads import IGNORE
from backend.engines.engine import Batch

SHORTEST = 64
"""Packed rows have this length, or that of the next power of two into which the longest row fits."""


def pack_alike(batches: Sequence[Batch]) -> Sequence[Batch]:
    """The batches, all of one shape, with their rows packed; as they are if that would not make them smaller.

    Whatever has a value for each token becomes (packed rows, length), with the number of each token's row as `segment` (0 is
    padding) and its `position` there. `starts` and `lengths`, (rows,), say where rows are among the tokens of all packed rows.
    """
    masks = [batch["attention_mask"].reshape(-1, batch["attention_mask"].shape[-1]) for batch in batches]  # choices too
    rows_lengths = [mask.sum(axis=1) for mask in masks]
    longest = int(max(lengths.max() for lengths in rows_lengths))
    width = max(SHORTEST, 1 << (longest - 1).bit_length())
    found = [_first_fit(lengths, width) for lengths in rows_lengths]
    count = _round_up(max(packed for _, packed in found))
    fits = all((mask == (np.arange(mask.shape[1]) < mask.sum(axis=1)[:, None])).all() for mask in masks)
    if not fits or count * width >= masks[0].size:
        return batches
    return [
        _pack(batch, lengths, starts, (count, width))
        for batch, lengths, (starts, _) in zip(batches, rows_lengths, found, strict=True)
    ]


def _first_fit(lengths: np.ndarray, width: int) -> tuple[np.ndarray, int]:
    """Where each row starts among the tokens of packed rows that are filled longest row first, and how many there are."""
    starts, room = np.zeros(len(lengths), np.int64), []
    for row in np.argsort(-lengths, kind="stable").tolist():
        length = int(lengths[row])
        number = next((number for number, left in enumerate(room) if left >= length), len(room))
        if number == len(room):
            room.append(width)
        starts[row] = (number + 1) * width - room[number]
        room[number] -= length
    return starts, len(room)


def _round_up(count: int) -> int:
    """To one of few numbers: four between two powers of two."""
    multiple = max(1, 2 ** max(0, count - 1).bit_length() // 8)
    return -(-count // multiple) * multiple


def _pack(batch: Batch, lengths: np.ndarray, starts: np.ndarray, shape: tuple[int, int]) -> Batch:
    mask = batch["attention_mask"]
    sources = np.flatnonzero(mask)  # (tokens,)
    within = np.arange(len(sources)) - np.repeat(lengths.cumsum() - lengths, lengths)  # (tokens,)
    places = np.repeat(starts, lengths) + within  # (tokens,)

    def put(values: np.ndarray, filler: int = 0) -> np.ndarray:
        grid = np.full(shape, filler, values.dtype)
        grid.reshape(-1)[places] = values
        return grid  # (packed rows, length)

    packed = {
        name: put(array.reshape(-1)[sources], IGNORE if name == "labels" else 0)
        if array.shape == mask.shape and name != "has_label"  # there may be as many labels as tokens
        else array
        for name, array in batch.items()
    }
    segment = put(np.repeat(np.arange(1, len(lengths) + 1), lengths))
    return {**packed, "segment": segment, "position": put(within), "starts": starts, "lengths": lengths}
