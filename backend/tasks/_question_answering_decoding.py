"""Turns question-answering outputs into answers: ranked spans, n-best lists, the table, SQuAD files and scores.

The rules are those of transformers' question-answering examples (utils_qa, v4.27): the best starts and ends of every
window, paired, merged by row, cut to `n_best`; the null score is the minimum over a row's windows.
"""

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from backend.data.rows import Rows
from backend.metrics.answers import exact_match, f1
from backend.metrics.metric import Sums
from backend.tasks._question_answering_features import OUTSIDE, Answers
from backend.tasks._texts import strings
from backend.tasks.task import Columns, Outputs

_PAIRS = 1 << 19
"""Pairs of starts and ends that are ranked at once, some MB of them."""


@dataclass(frozen=True)
class SpanCandidates:
    """Candidate answers of all rows, grouped by row, best first. Arrays are (candidates,)."""

    row: np.ndarray  # int64
    start: np.ndarray  # int64, first character in the context
    end: np.ndarray  # int64, the one after the last
    score: np.ndarray  # float32, of start and end together
    start_score: np.ndarray  # float32
    end_score: np.ndarray  # float32

    def row_slices(self, rows: int) -> list[slice]:
        """The slice of candidates of every row."""
        edges = np.searchsorted(self.row, np.arange(rows + 1))
        return [slice(int(first), int(last)) for first, last in itertools.pairwise(edges)]


@dataclass(frozen=True)
class NullScores:
    """The "no answer" score of every row, from the window that rates it lowest. Arrays are (rows,) float32."""

    score: np.ndarray
    start_score: np.ndarray
    end_score: np.ndarray


def plain_spans(
    outputs: Outputs, features: pa.Table, rows: int, n_best: int, longest: int
) -> tuple[SpanCandidates, NullScores]:
    """Candidates ranked by the sum of start and end logit; answers have at most `longest` tokens."""
    owners = features["row"].to_numpy().astype(np.int64)
    found, nulls = [], []
    for part in _window_slices(features, n_best):
        starts, ends = (_pad(outputs[name][part], -np.inf) for name in ("start_logits", "end_logits"))
        window = np.arange(len(starts))
        null_index = features["null_index"].to_numpy()[part]
        nulls.append(np.stack([starts[window, null_index], ends[window, null_index]], axis=1))
        start_index, end_index = _top_k(starts, n_best), _top_k(ends, n_best)
        found.append(
            _rank_pairs(
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
    return _merge(found, n_best), _lowest_null_scores(null.sum(axis=1), null, owners, rows)


def beam_spans(
    outputs: Outputs, features: pa.Table, rows: int, n_best: int, longest: int
) -> tuple[SpanCandidates, NullScores]:
    """Candidates ranked by the sum of the head's scores for a start and for an end given that start.

    The head flattens its ends as (ends, starts): the pair of start i and its end j is at j·S + i. (transformers'
    example reads it as i·E + j, which pairs a start with another start's ends.)
    """
    owners = features["row"].to_numpy().astype(np.int64)
    found = []
    for part in _window_slices(features, n_best):
        start_index, start_score = (np.stack(outputs[f"start_top_{name}"][part]) for name in ("index", "log_probs"))
        end_index, end_score = (
            np.stack(outputs[f"end_top_{name}"][part])
            .reshape(len(start_index), -1, start_index.shape[1])
            .swapaxes(1, 2)
            for name in ("index", "log_probs")
        )
        start_index = np.broadcast_to(start_index[:, :, None], end_index.shape)
        found.append(
            _rank_pairs(start_index, end_index, start_score[:, :, None], end_score, features[part], n_best, longest)
        )
    null = np.array([float(one) for one in outputs["cls_logits"]], dtype=np.float32)
    return _merge(found, n_best), _lowest_null_scores(null, np.stack([null, null], axis=1), owners, rows)


def span_loss(outputs: Outputs, features: pa.Table, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Every row's summed loss over a plain head's windows, and their number, if the answers are known."""
    losses, owners = _window_loss(outputs, features), features["row"].to_numpy()
    known = ~np.isnan(losses)
    return np.bincount(owners[known], losses[known], rows), np.bincount(owners[known], minlength=rows)


def _window_loss(outputs: Outputs, features: pa.Table) -> np.ndarray:
    """(windows,) float64: mean cross-entropy of start and end over the window's tokens, NaN if they are unknown."""
    losses = [np.zeros(0)]
    for part in _window_slices(features, 1):
        loss = np.zeros(len(outputs["start_logits"][part]))
        for name, targets in (("start_logits", "start_positions"), ("end_logits", "end_positions")):
            logits = _pad(outputs[name][part], -np.inf).astype(np.float64)
            target = features[targets].to_numpy()[part]
            chosen = logits[np.arange(len(logits)), np.maximum(target, 0)]
            loss += np.where(target >= 0, np.logaddexp.reduce(logits, axis=1) - chosen, np.nan) / 2
        losses.append(loss)
    return np.concatenate(losses)


def _window_slices(features: pa.Table, n_best: int) -> Iterator[slice]:
    size = max(1, min(1024, _PAIRS // n_best**2))
    return (slice(first, first + size) for first in range(0, features.num_rows, size))


def _rank_pairs(
    start_index: np.ndarray,  # (windows, starts, ends)
    end_index: np.ndarray,  # the same
    start_score: np.ndarray,  # broadcasts to it
    end_score: np.ndarray,
    features: pa.Table,
    n_best: int,
    longest: int,
) -> SpanCandidates:
    """The best pairs of every window that are inside its context, in order and not too long."""
    offsets = [_pad_column(features[name]) for name in ("offset_start", "offset_end")]
    score = (start_score + end_score).astype(np.float32)
    shape = score.shape
    start_score, end_score = np.broadcast_to(start_score, shape), np.broadcast_to(end_score, shape)
    length = end_index - start_index + 1
    starts, ends = (_take_offsets(table, index) for table, index in zip(offsets, (start_index, end_index), strict=True))
    allowed = (starts != OUTSIDE) & (ends != OUTSIDE) & (length >= 1) & (length <= longest) & np.isfinite(score)
    flat = np.where(allowed, score, -np.inf).reshape(shape[0], -1)
    best = _top_k(flat, n_best)
    kept = np.isfinite(np.take_along_axis(flat, best, 1))

    def take_best(values: np.ndarray) -> np.ndarray:
        return np.take_along_axis(values.reshape(shape[0], -1), best, 1)[kept]

    owners = np.repeat(features["row"].to_numpy().astype(np.int64), kept.sum(axis=1))
    return SpanCandidates(
        owners, take_best(starts), take_best(ends), take_best(score), take_best(start_score), take_best(end_score)
    )


def _take_offsets(offsets: np.ndarray, index: np.ndarray) -> np.ndarray:
    """Offsets of tokens; a token beyond the window (a beam may end in the padding) counts as outside of the context."""
    inside = index < offsets.shape[1]
    flat = np.where(inside, index, 0).reshape(len(offsets), -1)
    return np.where(inside, np.take_along_axis(offsets, flat, 1).reshape(index.shape), OUTSIDE)


def _merge(parts: list[SpanCandidates], n_best: int) -> SpanCandidates:
    """All windows' candidates by row and score; ties go to the earlier window, then the better start."""
    arrays = [np.concatenate([getattr(part, name) for part in parts]) for name in SpanCandidates.__dataclass_fields__]
    order = np.lexsort((-arrays[3], arrays[0]))
    row = arrays[0][order]
    rank = np.arange(len(row)) - np.searchsorted(row, row)
    order = order[rank < n_best]
    return SpanCandidates(*(array[order] for array in arrays))


def _lowest_null_scores(score: np.ndarray, both: np.ndarray, owners: np.ndarray, rows: int) -> NullScores:
    order = np.lexsort((score, owners))  # stable: of equal windows the first
    first = order[np.searchsorted(owners[order], np.arange(rows))]
    return NullScores(score[first], both[first, 0], both[first, 1])


def _top_k(values: np.ndarray, count: int) -> np.ndarray:
    """(rows, at most count) indices of the greatest values, greatest first; ties keep their order."""
    width = values.shape[1]
    if width > 4 * count:  # most of a long row need not be sorted
        some = np.sort(np.argpartition(-values, count - 1, axis=1)[:, :count], axis=1)
        order = np.argsort(-np.take_along_axis(values, some, 1), axis=1, kind="stable")
        return np.take_along_axis(some, order, 1)
    return np.argsort(-values, axis=1, kind="stable")[:, :count]


def _pad(arrays: list[np.ndarray], filler: float) -> np.ndarray:
    lengths = np.array([len(one) for one in arrays])
    matrix = np.full((len(arrays), lengths.max(initial=1)), filler, dtype=np.float32)
    matrix[np.arange(matrix.shape[1]) < lengths[:, None]] = np.concatenate(arrays)
    return matrix


def _pad_column(column: pa.ChunkedArray) -> np.ndarray:
    lengths = pc.list_value_length(column).to_numpy()
    matrix = np.full((len(lengths), int(lengths.max(initial=1))), OUTSIDE, dtype=np.int64)
    matrix[np.arange(matrix.shape[1]) < lengths[:, None]] = pc.list_flatten(column).to_numpy()
    return matrix


class Candidate(NamedTuple):
    """One candidate answer; without a position if it is not part of the context."""

    text: str
    start: int | None
    end: int | None
    score: float
    start_score: float
    end_score: float


NOTHING_POSSIBLE = Candidate("empty", None, None, 0.0, 0.0, 0.0)
"""What transformers' example puts where a plain head leaves no span at all."""
NO_BEAM_POSSIBLE = Candidate("", None, None, -2e-6, -1e-6, -1e-6)
"""The same for a beam head."""


@dataclass(frozen=True)
class QuestionPrediction:
    """The prediction for one question."""

    chosen: Candidate
    score: float
    """How sure the choice is, 0 to 1: of a plain head its probability among the n-best list, of a beam head the product
    of those of its start and end, or that there is no answer."""
    best_text: str
    """The best answer that is not empty, whatever the null score."""
    null_score: float | None
    """How much better no answer is than the best one; None where questions are known to have answers."""
    n_best: list[dict[str, Any]]


def candidate(context: str, start: int, end: int, scores: tuple[float, float, float]) -> Candidate:
    """A candidate without the white space that some tokenizers (sentencepiece) include in a word."""
    text = context[start:end]
    bare = text.strip()
    start += len(text) - len(text.lstrip())
    return Candidate(bare, start, start + len(bare), *scores)


def choose_plain(
    entries: list[Candidate], null: Candidate | None, n_best: int, null_threshold: float
) -> QuestionPrediction:
    """For a plain head. With `null`, "no answer" is one of the candidates and always kept in the list."""
    if null is not None:
        place = sum(one.score >= null.score for one in entries)
        entries = [*entries[:place], null, *entries[place:]][:n_best]
        entries = entries if place < n_best else [*entries, null]
    if not any(one.text for one in entries):
        entries = [NOTHING_POSSIBLE, *entries]
    probabilities = _softmax(entries)
    best = next(place for place, one in enumerate(entries) if one.text)
    chosen, null_score = 0, None
    if null is not None:
        null_score = null.score - entries[best].start_score - entries[best].end_score
        chosen = entries.index(null) if null_score > null_threshold else best
    return QuestionPrediction(
        entries[chosen],
        probabilities[chosen],
        entries[best].text,
        null_score,
        _to_dicts(entries, probabilities, "logit"),
    )


def choose_beam(entries: list[Candidate], null_score: float | None, null_threshold: float) -> QuestionPrediction:
    """For a beam head, which scores "no answer" separately: `null_score` is its logit."""
    entries = entries or [NO_BEAM_POSSIBLE]
    probabilities = _softmax(entries)
    listed = _to_dicts(entries, probabilities, "log_prob")
    if null_score is not None and null_score > null_threshold:
        none = Candidate("", None, None, null_score, null_score, null_score)
        return QuestionPrediction(none, float(1 / (1 + np.exp(-null_score))), entries[0].text, null_score, listed)
    best = entries[0]
    # What transformers' head calls log_probs are probabilities.
    sure = max(0.0, best.start_score) * max(0.0, best.end_score)
    return QuestionPrediction(best, sure, best.text, null_score, listed)


def _softmax(entries: list[Candidate]) -> list[float]:
    scores = np.array([one.score for one in entries])
    exponents = np.exp(scores - scores.max())
    return (exponents / exponents.sum()).tolist()


def _to_dicts(entries: list[Candidate], probabilities: list[float], kind: str) -> list[dict[str, Any]]:
    return [
        {"text": one.text, "probability": probability, f"start_{kind}": one.start_score, f"end_{kind}": one.end_score}
        for one, probability in zip(entries, probabilities, strict=True)
    ]


def question_names(rows: Rows, columns: Columns) -> list[str]:
    """A row's name in the documents; a repeated name gets a number, so that none is lost."""
    column = columns.get("id")
    if column is None or column not in rows.table.column_names:
        return [str(row) for row in range(len(rows))]
    seen: dict[str, int] = {}
    names = []
    for name in strings(rows.table[column]).to_pylist():
        seen[name] = seen.get(name, 0) + 1
        names.append(name if seen[name] == 1 else f"{name}-{seen[name]}")
    return names


def answer_table(predictions: list[QuestionPrediction], answers: list[Answers | None]) -> pa.Table:
    """One row per question: answer and first reference, character positions, and the n-best list as JSON text."""
    actual = [None if one is None else "".join(one.texts[:1]) for one in answers]
    return pa.table(
        {
            "prediction": pa.array([one.chosen.text for one in predictions], pa.string()),
            "actual": pa.array(actual, pa.string()),
            "score": pa.array([one.score for one in predictions], pa.float64()),
            "start": pa.array([one.chosen.start for one in predictions], pa.int64()),
            "end": pa.array([one.chosen.end for one in predictions], pa.int64()),
            "null_score": pa.array([one.null_score for one in predictions], pa.float64()),
            "n_best": pa.array([msgspec.json.encode(one.n_best).decode() for one in predictions], pa.string()),
        }
    )


def squad_documents(predictions: list[QuestionPrediction], names: list[str], may_be_none: bool) -> dict[str, Any]:
    """The files beside the CSV, as in transformers' example: answers, n-best lists and null scores by question."""
    each = list(zip(names, predictions, strict=True))
    lists = msgspec.json.encode({name: one.n_best for name, one in each})  # large: json itself would take seconds
    found: dict[str, Any] = {
        "predictions.json": {name: one.chosen.text for name, one in each},
        "nbest_predictions.json": msgspec.json.format(lists, indent=1).decode(),
    }
    return found | ({"null_odds.json": {name: one.null_score for name, one in each}} if may_be_none else {})


def text_scores(texts: Iterable[str], answers: list[Answers | None]) -> Sums:
    """Each row's exact match and F1 against its best reference."""
    known = np.array([one is not None for one in answers], dtype=np.float64)
    references = [one.texts if one is not None else () for one in answers]
    pairs = list(zip(texts, references, strict=True))
    return {
        name: (known * [measure(text, own) for text, own in pairs], known)
        for name, measure in (("exact_match", exact_match), ("f1", f1))
    }


def answer_scores(predictions: list[QuestionPrediction], answers: list[Answers | None], may_be_none: bool) -> Sums:
    """Each row's scores against its best reference, and those of its best non-empty answer."""
    known = np.array([one is not None for one in answers], dtype=np.float64)
    references = [one.texts if one is not None else () for one in answers]
    has_answer = np.array([bool(one) for one in references], dtype=np.float64)
    sums = text_scores((one.chosen.text for one in predictions), answers)
    for name, measure in (("exact_match", exact_match), ("f1", f1)):
        values, _ = sums[name]
        if may_be_none or (known > has_answer).any():
            sums[f"{name}_HasAns"] = values * has_answer, has_answer
            sums[f"{name}_NoAns"] = values * (1 - has_answer), known - has_answer
        if may_be_none:
            pairs = zip(predictions, references, strict=True)
            sums[f"answered_{name}"] = known * [measure(one.best_text, own) for one, own in pairs], known
    if may_be_none:
        null_scores = [one.null_score for one in predictions]
        sums |= {"null_score": (np.array(null_scores, dtype=np.float64), known), "has_answer": (has_answer, known)}
    return sums
