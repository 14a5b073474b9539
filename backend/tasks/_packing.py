"""Owns packing: several examples in one feature, none seeing another, so that little of a batch is padding."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa

from backend.contract.heads import IGNORE

_LISTS = pa.list_(pa.int32())


def packed(batches: Iterator[pa.RecordBatch], length: int) -> Iterator[pa.RecordBatch]:
    """The features of each batch in as few of at most `length` tokens as first-fit in row order makes of them.

    `segment` counts a feature's examples from 1, `position` restarts with each; the first token of an example is no
    target, for what stands before it belongs to another. A packed feature bears the row of its first example.
    """
    for batch in batches:
        if batch.num_rows:
            yield _packed(batch, length)


def _packed(batch: pa.RecordBatch, length: int) -> pa.RecordBatch:
    ids, labels = (_views(batch[name]) for name in ("input_ids", "labels"))
    groups = first_fit([len(one) for one in ids], length)
    for one in labels:
        one[:1] = IGNORE
    lists = {
        "input_ids": [np.concatenate([ids[number] for number in group]) for group in groups],
        "labels": [np.concatenate([labels[number] for number in group]) for group in groups],
        "segment": [np.repeat(np.arange(1, len(group) + 1), [len(ids[n]) for n in group]) for group in groups],
        "position": [np.concatenate([np.arange(len(ids[number])) for number in group]) for group in groups],
    }
    arrays: dict[str, pa.Array] = {
        "row": batch["row"].take(pa.array([group[0] for group in groups])),
        "part": pa.array(np.zeros(len(groups), dtype=np.int32)),
    }
    return pa.RecordBatch.from_pydict(arrays | {name: pa.array(values, _LISTS) for name, values in lists.items()})


def first_fit(lengths: list[int], room: int) -> list[list[int]]:
    """The numbers of the lengths in groups of at most `room` in all, each put into the first group that has space."""
    groups: list[list[int]] = []
    left = np.zeros(len(lengths), dtype=np.int64)
    for number, length in enumerate(lengths):
        fitting = np.flatnonzero(left[: len(groups)] >= length)
        if len(fitting):
            place = int(fitting[0])
            groups[place].append(number)
            left[place] -= length
        else:
            left[len(groups)] = room - length
            groups.append([number])
    return groups


def _views(column: pa.Array) -> list[np.ndarray]:
    offsets, values = column.offsets.to_numpy(), column.values.to_numpy().copy()
    return [values[start:stop] for start, stop in pairwise(offsets)]
