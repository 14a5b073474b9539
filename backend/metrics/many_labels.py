"""Scores of several labels per row: F1 by micro, macro, weighted and sample average, mean average precision, exact match."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from backend.contract.metrics import Metric
from backend.metrics.metric import Predictions
from backend.statistics.resampling import WeightedScores, divide, ratios

MANY = "many"
"""The value of `task.labels_per_row`, and what its metrics are told apart by."""
LEVELS = "/"
"""What stands between the levels of a hierarchical label."""
MOST_LABELS = 50
"""Of more labels than these the F1 of each is no metric; the predictions page has it."""


def label_matrix(column: pa.ChunkedArray, labels: Sequence[str], separator: str) -> np.ndarray:
    """(rows, labels) bool, from each row's labels as one text; a missing text has none."""
    encoded = pc.dictionary_encode(pc.fill_null(column.cast(pa.string()), "")).combine_chunks()
    encoded = encoded.unify_dictionaries().chunk(0) if isinstance(encoded, pa.ChunkedArray) else encoded
    places = {label: place for place, label in enumerate(labels)}
    has = np.zeros((len(encoded.dictionary), len(labels)), dtype=bool)
    for row, text in enumerate(encoded.dictionary.to_pylist()):
        has[row, [places[one] for one in text.split(separator) if one in places]] = True
    return has[encoded.indices.to_numpy()] if len(has) else np.zeros((0, len(labels)), dtype=bool)


def level_labels(labels: Sequence[str]) -> list[list[int]]:
    """For each level of hierarchical labels, which prefix each label has there, by number; -1 above its own level.

    Empty unless some labels share what stands before a `/`, or one stands before another: else that is mere punctuation.
    """
    paths = [label.split(LEVELS) for label in labels]
    depth = max(map(len, paths), default=0)
    if depth < 2 or any(not part.strip() for path in paths for part in path):
        return []
    parents = [LEVELS.join(path[:-1]) for path in paths if len(path) > 1]
    if len(set(parents)) == len(parents) and not set(parents) & set(labels):
        return []
    found = []
    for level in range(1, depth + 1):
        prefixes = [LEVELS.join(path[:level]) if len(path) >= level else None for path in paths]
        numbers = {prefix: number for number, prefix in enumerate(dict.fromkeys(p for p in prefixes if p is not None))}
        found.append([-1 if prefix is None else numbers[prefix] for prefix in prefixes])
    return found


def _matrices(predictions: Predictions, facts: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Actual and predicted labels of all rows, each (rows, labels) bool."""
    table, labels, separator = predictions.table, facts["labels"], facts["separator"]
    return label_matrix(table["actual"], labels, separator), label_matrix(table["prediction"], labels, separator)


def _score(predictions: Predictions, facts: Mapping[str, Any], settings: Any) -> dict[str, float]:
    """As in scikit-learn: labels that no row has or is predicted to have count as 0, and in `mean_average_precision` not at all.

    A row without labels of which none is predicted is right, so that it counts as 1 (`zero_division=1`).
    """
    from sklearn import metrics  # heavy; the catalog reads this module without it

    known = np.flatnonzero(predictions.table["actual"].is_valid().to_numpy())
    if not len(known):
        return {}
    known_predictions, labels = predictions.take(known), facts["labels"]
    actual, predicted = _matrices(known_predictions, facts)
    total, count = predictions.total("loss")
    scores = {"loss": total / count} if count else {}
    for average in ("micro", "macro", "weighted", "samples"):
        precision, recall, f1, _ = metrics.precision_recall_fscore_support(
            actual, predicted, average=average, zero_division=int(average == "samples")  # pyright: ignore[reportArgumentType]  too narrow
        )  # fmt: skip
        scores |= {f"f1_{average}": float(f1)}
        if average in ("micro", "macro"):
            scores |= {f"precision_{average}": float(precision), f"recall_{average}": float(recall)}
    names = [f"probability_{label}" for label in labels]
    if set(names) <= set(known_predictions.table.column_names):
        chances = np.stack([known_predictions.table[name].to_numpy() for name in names], axis=1)
        occurs = np.flatnonzero(actual.any(axis=0))
        each = [metrics.average_precision_score(actual[:, place], chances[:, place]) for place in occurs]
        scores["mean_average_precision"] = float(np.mean(each)) if each else 0.0
    exact = float(metrics.accuracy_score(actual, predicted))
    scores |= {"exact_match": exact, "accuracy": exact}
    return scores | _level_scores(actual, predicted, labels) | _label_scores(actual, predicted, labels)


def _level_scores(actual: np.ndarray, predicted: np.ndarray, labels: Sequence[str]) -> dict[str, float]:
    """Micro F1 of each level of a hierarchy: whoever predicts `sport/tennis` for `sport/golf` is right at the first."""
    found = {}
    for level, numbers in enumerate(level_labels(labels), 1):
        one, other = (_at_level(has, numbers) for has in (actual, predicted))
        found[f"f1_micro_level_{level}"] = 2 * float((one & other).sum()) / max(1, int(one.sum() + other.sum()))
    return found


def _at_level(has: np.ndarray, numbers: Sequence[int]) -> np.ndarray:
    """(rows, labels) → (rows, prefixes) bool."""
    prefixes = np.array(numbers)
    found = [has[:, prefixes == number].any(axis=1) for number in range(prefixes.max() + 1)]
    return np.stack(found, axis=1)


def _label_scores(actual: np.ndarray, predicted: np.ndarray, labels: Sequence[str]) -> dict[str, float]:
    if len(labels) > MOST_LABELS:
        return {}
    f1 = divide(2.0 * (actual & predicted).sum(axis=0), (actual.sum(axis=0) + predicted.sum(axis=0)).astype(float))
    return {_name_label(label): float(value) for label, value in zip(labels, f1, strict=True)}


def _name_label(label: str) -> str:
    """The name of a label's F1: in a metric's name a `/` comes after a file, and averages have names, too."""
    plain = label.replace(LEVELS, ".")
    return f"f1_of_{plain}"


def _weighted_scores(predictions: Predictions, facts: Mapping[str, Any], settings: Any) -> WeightedScores | None:
    known = predictions.table["actual"].is_valid().to_numpy()
    if not known.any():
        return None
    labels = facts["labels"]
    actual, predicted = _matrices(predictions, facts)
    actual, predicted = actual & known[:, None], predicted & known[:, None]
    right = actual & predicted
    of_row = (actual.sum(axis=1) + predicted.sum(axis=1)).astype(float)
    row_f1 = np.where(of_row > 0, divide(2.0 * right.sum(axis=1), of_row), known)
    exact = (actual == predicted).all(axis=1) & known
    sums = {
        name: (values.astype(float), known.astype(float))
        for name, values in {"f1_samples": row_f1, "exact_match": exact, "accuracy": exact}.items()
    }
    sums |= {name: predictions.sums[name] for name in ("loss",) if name in predictions.sums}
    for level, numbers in enumerate(level_labels(labels), 1):
        one, other = (_at_level(has, numbers) for has in (actual, predicted))
        both = 2.0 * (one & other).sum(axis=1), (one.sum(axis=1) + other.sum(axis=1)).astype(float)
        sums[f"f1_micro_level_{level}"] = both
    means = ratios(sums)
    of_right, of_actual, of_predicted = (has.astype(np.float64) for has in (right, actual, predicted))

    share = float((of_actual + of_predicted).any(axis=0).mean())

    def scores(counts: np.ndarray) -> dict[str, np.ndarray]:
        hits, there, found = counts @ of_right, counts @ of_actual, counts @ of_predicted  # each (draws, labels)
        return means(counts) | _count_scores(hits, there, found, labels, share)

    return WeightedScores(scores, {"exact_match": exact[known], "accuracy": exact[known]})


def _count_scores(
    hits: np.ndarray, actual: np.ndarray, predicted: np.ndarray, labels: Sequence[str], share_of_labels: float
) -> dict[str, np.ndarray]:
    """The scores that follow from how often each label is right, actual and predicted, each (draws, labels).

    A rare label that a draw happens to miss is no mistake: its scores don't count there. `share_of_labels` is that of all
    which occur.
    """
    f1 = divide(2 * hits, actual + predicted)
    all_hits, all_actual, all_predicted = (one.sum(axis=1) for one in (hits, actual, predicted))
    occurring = np.count_nonzero(actual + predicted, axis=1)
    found = {
        "f1_micro": divide(2 * all_hits, all_actual + all_predicted),
        "precision_micro": divide(all_hits, all_predicted),
        "recall_micro": divide(all_hits, all_actual),
        "f1_macro": divide(f1.sum(axis=1), occurring) * share_of_labels,
        "precision_macro": divide(divide(hits, predicted).sum(axis=1), occurring) * share_of_labels,
        "recall_macro": divide(divide(hits, actual).sum(axis=1), occurring) * share_of_labels,
        "f1_weighted": divide((f1 * actual).sum(axis=1), all_actual),
    }
    if len(labels) > MOST_LABELS:
        return found
    return found | {_name_label(label): f1[:, place] for place, label in enumerate(labels)}


_metric = partial(
    Metric,
    greater_is_better=True,
    range=(0, 1),
    tasks=("text_classification",),
    variant=MANY,
    score=_score,
    weighted_scores=_weighted_scores,
)
METRICS = (
    _metric("loss", "Loss", greater_is_better=False, range=(0, None)),
    _metric("mean_average_precision", "Mean average precision", weighted_scores=None),
    _metric("f1_micro", "Micro F1"),
    _metric("f1_macro", "Macro F1"),
    _metric("f1_weighted", "Weighted F1"),
    _metric("f1_samples", "Sample F1"),
    _metric("exact_match", "Exact match"),
    _metric("accuracy", "Accuracy"),
    _metric("precision_micro", "Micro precision"),
    _metric("recall_micro", "Micro recall"),
    _metric("precision_macro", "Macro precision"),
    _metric("recall_macro", "Macro recall"),
    _metric("f1", "F1"),
)
