"""Turns running text into features: rows joined and cut into blocks, or several examples packed into one feature.

`spans_row` and `spans_length` of a feature say, span by span, which rows its tokens come from.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from backend.contract.heads import IGNORE

Tokens = dict[str, np.ndarray]
"""Arrays of the same tokens, (tokens,) each: `input_ids`, `owner` (the row of each) and what else is cut alike."""


def tokens_of(first_row: int, ids: list[list[int]]) -> Tokens:
    """The tokens of consecutive rows, one after another."""
    lengths = [len(one) for one in ids]
    rows = np.arange(first_row, first_row + len(ids), dtype=np.int32)
    return {"input_ids": flatten(ids, np.int32), "owner": np.repeat(rows, lengths)}


def flatten(lists: list[list[int]], kind: type[np.integer]) -> np.ndarray:
    """All numbers of all lists."""
    return np.fromiter((number for one in lists for number in one), kind, sum(map(len, lists)))


def cut_into_blocks(chunks: Iterable[Tokens], length: int, shortest: int) -> Iterator[pa.RecordBatch]:
    """All tokens as one text, cut every `length` tokens, across chunks.

    The last block is the rest, unless it has fewer than `shortest` tokens; nothing else is ever dropped.
    """
    left: Tokens = {}
    for chunk in chunks:
        left = {name: np.concatenate([left[name], values]) for name, values in chunk.items()} if left else chunk
        whole = len(left["input_ids"]) // length * length
        if whole:
            yield _to_blocks({name: values[:whole] for name, values in left.items()}, length)
            left = {name: values[whole:] for name, values in left.items()}
    rest = len(left.get("input_ids", ()))
    if rest >= shortest:
        yield _to_blocks(left, rest)


def _to_blocks(tokens: Tokens, length: int) -> pa.RecordBatch:
    owners = tokens["owner"].reshape(-1, length)
    # A span starts where the row changes, and where a block starts.
    begins = np.diff(owners, axis=1, prepend=-1) != 0
    starts = np.flatnonzero(begins)
    offsets = np.append(0, np.cumsum(begins.sum(axis=1)))
    spans = {
        "spans_row": _lists(owners.ravel()[starts], offsets),
        "spans_length": _lists(np.diff(np.append(starts, owners.size)).astype(np.int32), offsets),
    }
    cuts = np.arange(len(owners) + 1) * length
    lists = {name: _lists(values, cuts) for name, values in tokens.items() if name != "owner"}
    return _batch(owners[:, 0], lists | spans)


def _lists(values: np.ndarray, offsets: np.ndarray) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(values))


def features_of_rows(
    rows: list[int], lists: Mapping[str, Sequence[Sequence[int] | np.ndarray]], **more: pa.Array
) -> pa.RecordBatch:
    """One feature per row, which holds only that row's tokens; `more` are further columns."""
    arrays: dict[str, pa.Array] = {name: pa.array(values, pa.list_(pa.int32())) for name, values in lists.items()}
    spans = {
        "spans_row": _lists(np.array(rows, np.int32), np.arange(len(rows) + 1)),
        "spans_length": _lists(
            np.array([len(one) for one in lists["input_ids"]], np.int32), np.arange(len(rows) + 1)
        ),
    }  # fmt: skip
    return _batch(np.array(rows, np.int32), arrays | spans | more)


def _batch(rows: np.ndarray, columns: Mapping[str, pa.Array]) -> pa.RecordBatch:
    numbers = {"row": pa.array(rows, pa.int32()), "part": pa.array(np.zeros(len(rows), dtype=np.int32))}
    return pa.RecordBatch.from_pydict(numbers | dict(columns))


def flat_values(column: pa.ChunkedArray) -> np.ndarray:
    """All values of a list column."""
    return pc.list_flatten(column).to_numpy()


def list_starts(column: pa.ChunkedArray) -> np.ndarray:
    """The index in all values where each list of a column starts; empty lists are left out."""
    lengths = pc.list_value_length(column).to_numpy()
    return (np.cumsum(lengths) - lengths)[lengths > 0]


def row_of_tokens(features: pa.Table) -> np.ndarray:
    """(tokens,) the row of every token of all features."""
    return np.repeat(flat_values(features["spans_row"]), flat_values(features["spans_length"]))


def group_by_row(values: np.ndarray, owner: np.ndarray, rows: int) -> list[np.ndarray]:
    """The values of each row. Features keep the rows' order, so a row's values are adjacent, across blocks too."""
    return np.split(values, np.cumsum(np.bincount(owner, minlength=rows))[:-1])


_LISTS = pa.list_(pa.int32())


def pack(batches: Iterator[pa.RecordBatch], length: int) -> Iterator[pa.RecordBatch]:
    """Pack the features of each batch into as few features of at most `length` tokens as first-fit in row order gives.

    Packed examples do not see each other, and little of a batch is padding.
    `segment` counts a feature's examples from 1, `position` restarts with each; the first token of an example is not a
    target, because another example precedes it. A packed feature has the row of its first example.
    """
    for batch in batches:
        if batch.num_rows:
            yield _pack_batch(batch, length)


def _pack_batch(batch: pa.RecordBatch, length: int) -> pa.RecordBatch:
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
    """The indices of the lengths in groups of at most `room` in total, each put into the first group with space."""
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
