"""Owns the n-best lists of question answering: from the outputs of windows to ranked answers, one list per row.

The rules are those of transformers' question-answering examples (utils_qa, v4.27): the best starts and ends of every
window, paired, merged by row, cut to `n_best`; the null score is the least over a row's windows.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from backend.tasks._context_windows import OUTSIDE
from backend.tasks.task import Outputs

_PAIRS = 1 << 19
"""Pairs of starts and ends that are ranked at once, some MB of them."""


@dataclass(frozen=True)
class Spans:
    """Candidate answers of all rows, those of a row together and best first. Arrays are (candidates,)."""

    row: np.ndarray  # int64
    start: np.ndarray  # int64, first character in the context
    end: np.ndarray  # int64, the one after the last
    score: np.ndarray  # float32, of start and end together
    start_score: np.ndarray  # float32
    end_score: np.ndarray  # float32

    def by_row(self, rows: int) -> list[slice]:
        """Which candidates are a row's, for every row."""
        edges = np.searchsorted(self.row, np.arange(rows + 1))
        return [slice(int(first), int(last)) for first, last in itertools.pairwise(edges)]


@dataclass(frozen=True)
class Nulls:
    """How good "no answer" is for every row, by the window that finds it least likely. Arrays are (rows,) float32."""

    score: np.ndarray
    start_score: np.ndarray
    end_score: np.ndarray


def plain_spans(outputs: Outputs, features: pa.Table, rows: int, n_best: int, longest: int) -> tuple[Spans, Nulls]:
    """Ranked by the sum of start and end logit; answers have at most `longest` tokens."""
    owners = features["row"].to_numpy().astype(np.int64)
    found, nulls = [], []
    for part in _parts(features, n_best):
        starts, ends = (_padded(outputs[name][part], -np.inf) for name in ("start_logits", "end_logits"))
        window = np.arange(len(starts))
        null_index = features["null_index"].to_numpy()[part]
        nulls.append(np.stack([starts[window, null_index], ends[window, null_index]], axis=1))
        start_index, end_index = _top(starts, n_best), _top(ends, n_best)
        found.append(
            _ranked(
                np.broadcast_to(start_index[:, :, None], (*start_index.shape, end_index.shape[1])),
                np.broadcast_to(end_index[:, None, :], (*start_index.shape, end_index.shape[1])),
                np.take_along_axis(starts, start_index, 1)[:, :, None],
                np.take_along_axis(ends, end_index, 1)[:, None, :],
                features[part],
                n_best,
                longest,
            )
        )
    null = np.concatenate(nulls)
    return _merged(found, n_best), _least(null.sum(axis=1), null, owners, rows)


def beam_spans(outputs: Outputs, features: pa.Table, rows: int, n_best: int, longest: int) -> tuple[Spans, Nulls]:
    """Ranked by the sum of what the head says of a start and of an end for that start.

    The head flattens its ends as (ends, starts): the pair of start i and its end j stands at j·S + i. (transformers'
    example reads it as i·E + j, which pairs a start with the ends of another one.)
    """
    owners = features["row"].to_numpy().astype(np.int64)
    found = []
    for part in _parts(features, n_best):
        start_index, start_score = (np.stack(outputs[f"start_top_{name}"][part]) for name in ("index", "log_probs"))
        end_index, end_score = (
            np.stack(outputs[f"end_top_{name}"][part])
            .reshape(len(start_index), -1, start_index.shape[1])
            .swapaxes(1, 2)
            for name in ("index", "log_probs")
        )
        start_index = np.broadcast_to(start_index[:, :, None], end_index.shape)
        found.append(
            _ranked(start_index, end_index, start_score[:, :, None], end_score, features[part], n_best, longest)
        )
    null = np.array([float(one) for one in outputs["cls_logits"]], dtype=np.float32)
    return _merged(found, n_best), _least(null, np.stack([null, null], axis=1), owners, rows)


def loss(outputs: Outputs, features: pa.Table, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Summed loss of a plain head's windows and their number for every row, where the answers are known."""
    losses, owners = _window_loss(outputs, features), features["row"].to_numpy()
    known = ~np.isnan(losses)
    return np.bincount(owners[known], losses[known], rows), np.bincount(owners[known], minlength=rows)


def _window_loss(outputs: Outputs, features: pa.Table) -> np.ndarray:
    """(windows,) float64: mean cross-entropy of start and end over the window's tokens, NaN where they are unknown."""
    losses = [np.zeros(0)]
    for part in _parts(features, 1):
        loss = np.zeros(len(outputs["start_logits"][part]))
        for name, targets in (("start_logits", "start_positions"), ("end_logits", "end_positions")):
            logits = _padded(outputs[name][part], -np.inf).astype(np.float64)
            target = features[targets].to_numpy()[part]
            chosen = logits[np.arange(len(logits)), np.maximum(target, 0)]
            loss += np.where(target >= 0, np.logaddexp.reduce(logits, axis=1) - chosen, np.nan) / 2
        losses.append(loss)
    return np.concatenate(losses)


def _parts(features: pa.Table, n_best: int) -> Iterator[slice]:
    size = max(1, min(1024, _PAIRS // n_best**2))
    return (slice(first, first + size) for first in range(0, features.num_rows, size))


def _ranked(
    start_index: np.ndarray,  # (windows, starts, ends)
    end_index: np.ndarray,  # the same
    start_score: np.ndarray,  # broadcasts to it
    end_score: np.ndarray,
    features: pa.Table,
    n_best: int,
    longest: int,
) -> Spans:
    """The best pairs of every window that lie in its context, run forwards and are not too long."""
    offsets = [_padded_column(features[name]) for name in ("offset_start", "offset_end")]
    score = (start_score + end_score).astype(np.float32)
    shape = score.shape
    start_score, end_score = np.broadcast_to(start_score, shape), np.broadcast_to(end_score, shape)
    length = end_index - start_index + 1
    starts, ends = (_looked_up(table, index) for table, index in zip(offsets, (start_index, end_index), strict=True))
    allowed = (starts != OUTSIDE) & (ends != OUTSIDE) & (length >= 1) & (length <= longest) & np.isfinite(score)
    flat = np.where(allowed, score, -np.inf).reshape(shape[0], -1)
    best = _top(flat, n_best)
    kept = np.isfinite(np.take_along_axis(flat, best, 1))

    def chosen(values: np.ndarray) -> np.ndarray:
        return np.take_along_axis(values.reshape(shape[0], -1), best, 1)[kept]

    owners = np.repeat(features["row"].to_numpy().astype(np.int64), kept.sum(axis=1))
    return Spans(owners, chosen(starts), chosen(ends), chosen(score), chosen(start_score), chosen(end_score))


def _looked_up(offsets: np.ndarray, index: np.ndarray) -> np.ndarray:
    """Offsets of tokens; a token beyond the window (a beam may end in the padding) is outside of the context."""
    inside = index < offsets.shape[1]
    flat = np.where(inside, index, 0).reshape(len(offsets), -1)
    return np.where(inside, np.take_along_axis(offsets, flat, 1).reshape(index.shape), OUTSIDE)


def _merged(parts: list[Spans], n_best: int) -> Spans:
    """All windows' candidates by row and score; of equal ones the earlier window's, then the better start's."""
    arrays = [np.concatenate([getattr(part, name) for part in parts]) for name in Spans.__dataclass_fields__]
    order = np.lexsort((-arrays[3], arrays[0]))
    row = arrays[0][order]
    rank = np.arange(len(row)) - np.searchsorted(row, row)
    order = order[rank < n_best]
    return Spans(*(array[order] for array in arrays))


def _least(score: np.ndarray, both: np.ndarray, owners: np.ndarray, rows: int) -> Nulls:
    order = np.lexsort((score, owners))  # stable: of equal windows the first
    first = order[np.searchsorted(owners[order], np.arange(rows))]
    return Nulls(score[first], both[first, 0], both[first, 1])


def _top(values: np.ndarray, count: int) -> np.ndarray:
    """(rows, at most count) indices of the greatest values, the greatest first; of equal ones the first."""
    width = values.shape[1]
    if width > 4 * count:  # most of a long row need not be sorted
        some = np.sort(np.argpartition(-values, count - 1, axis=1)[:, :count], axis=1)
        order = np.argsort(-np.take_along_axis(values, some, 1), axis=1, kind="stable")
        return np.take_along_axis(some, order, 1)
    return np.argsort(-values, axis=1, kind="stable")[:, :count]


def _padded(arrays: list[np.ndarray], filler: float) -> np.ndarray:
    lengths = np.array([len(one) for one in arrays])
    matrix = np.full((len(arrays), lengths.max(initial=1)), filler, dtype=np.float32)
    matrix[np.arange(matrix.shape[1]) < lengths[:, None]] = np.concatenate(arrays)
    return matrix


def _padded_column(column: pa.ChunkedArray) -> np.ndarray:
    lengths = pc.list_value_length(column).to_numpy()
    matrix = np.full((len(lengths), int(lengths.max(initial=1))), OUTSIDE, dtype=np.int64)
    matrix[np.arange(matrix.shape[1]) < lengths[:, None]] = pc.list_flatten(column).to_numpy()
    return matrix
