"""Splits off a fraction of the training rows, always the same one for the same rows and seed."""

from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from backend.data.fingerprint import fingerprint, generator
from backend.data.rows import Rows


def split_off(
    rows: Rows,
    fraction: float,
    seed: int,
    by: Literal["label", "random", "contiguous"],
    labels: pa.ChunkedArray | None,
) -> tuple[Rows, Rows]:
    """The remaining rows and those split off, both in the input's order.

    `label` keeps every label's share in both parts and at least one row of each label in the remaining part;
    `contiguous` takes the end of the text. Rows that the input skipped stay with the first part.
    """
    aside = np.zeros(len(rows), dtype=bool)
    count = _count(len(rows), fraction)
    if by == "contiguous":
        aside[len(rows) - count :] = True
    elif by == "label" and labels is not None:
        aside[_sample_each_label(labels, fraction, count, generator("split", seed, rows.fingerprint))] = True
    else:
        aside[generator("split", seed, rows.fingerprint).permutation(len(rows))[:count]] = True
    how = (rows.fingerprint, "split", fraction, seed, by)
    stay, taken = (
        rows.take(np.flatnonzero(mask), fingerprint(*how, part)) for mask, part in ((~aside, "stay"), (aside, "aside"))
    )
    return stay.with_skipped(rows.skipped), taken


def _count(rows: int, fraction: float) -> int:
    """Rows to split off: the nearest number, with at least one in each part."""
    return max(0, min(rows - 1, max(1, round(rows * fraction))))


def _sample_each_label(labels: pa.ChunkedArray, fraction: float, count: int, rng: np.random.Generator) -> np.ndarray:
    codes = _codes(labels)
    sizes = np.bincount(codes)
    quotas = _quotas(sizes, fraction, count, rng)
    shuffled = rng.permutation(len(codes))
    by_label = shuffled[np.argsort(codes[shuffled], kind="stable")]
    starts = np.cumsum(sizes) - sizes
    place = np.arange(len(codes)) - starts[codes[by_label]]  # place of each row within its label
    return by_label[place < quotas[codes[by_label]]]


def _codes(labels: pa.ChunkedArray) -> np.ndarray:
    """An id for each label; null is a label too."""
    encoded = pc.dictionary_encode(labels, null_encoding="encode").combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):  # chunks stay separate if they cannot be joined
        encoded = encoded.unify_dictionaries()
        return np.concatenate([chunk.indices.to_numpy() for chunk in encoded.chunks])
    return encoded.indices.to_numpy()


def _quotas(sizes: np.ndarray, fraction: float, count: int, rng: np.random.Generator) -> np.ndarray:
    """Rows of each label to split off: largest remainders, random ties, and never a label's last row."""
    wished = sizes * fraction
    quotas = np.minimum(np.floor(wished).astype(np.int64), np.maximum(sizes - 1, 0))
    room = sizes - 1 - quotas
    lot = rng.permutation(len(sizes))
    for label in lot[np.argsort(-(wished - quotas)[lot], kind="stable")]:
        if quotas.sum() >= count:
            break
        if room[label] > 0:
            quotas[label] += 1
    return quotas
