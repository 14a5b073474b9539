"""Owns `confusion`, `prediction_statistics` and `threshold_counts`: predicted labels against actual ones."""

from collections import Counter
from typing import TYPE_CHECKING

from backend.contract.arrow_numbers import numbers
from backend.contract.errors import InputError
from backend.contract.rpc.predictions import (
    THRESHOLD_STEPS,
    LabelScore,
    PredictionStatistics,
    ReliabilityBin,
    ThresholdCounts,
)
from backend.contract.rpc.queries import Confusion
from backend.helper.queries.derived_columns import PROBABILITY
from backend.helper.queries.prediction_pages import read, read_columns
from backend.helper.query import Arguments, Query, Tell, needed

if TYPE_CHECKING:
    import pyarrow as pa

MAX_LABELS = 100
"""Labels of a confusion matrix; more cannot be read, and seldom are labels."""
BINS = 10
"""Of the reliability diagram, equally wide."""
PAIR = ["actual", "prediction"]
_Cells = dict[tuple[str, str], int]


def _confusion(arguments: Arguments, tell: Tell) -> Confusion:
    return _matrix(_cells(read_columns(needed(arguments, "parquet"), PAIR)))


def _statistics(arguments: Arguments, tell: Tell) -> PredictionStatistics:
    """Counts, scores of every label, and how honest the confidence is."""
    path = needed(arguments, "parquet")
    read_columns(path, PAIR)
    table = read(path, tell)
    cells = _cells(table)
    scores = label_scores(cells)
    known = [one.f1 or 0.0 for one in scores]
    bins = reliability(table)
    return PredictionStatistics(
        rows=sum(cells.values()),
        right=sum(count for (actual, predicted), count in cells.items() if actual == predicted),
        confusion=_matrix(cells),
        labels=scores[:MAX_LABELS],
        macro_f1=sum(known) / len(known) if known else None,
        bins=bins,
        calibration_error=calibration_error(bins),
        probabilities=[name.removeprefix(PROBABILITY) for name in table.column_names if name.startswith(PROBABILITY)],
    )


def _cells(table: "pa.Table") -> _Cells:
    """(actual, predicted) → rows."""
    import pyarrow as pa
    import pyarrow.compute as compute

    known = pa.table([compute.cast(table[name], pa.string()) for name in PAIR], names=PAIR).drop_null()
    found = known.group_by(PAIR).aggregate([([], "count_all")]).to_pylist()
    return {(cell["actual"], cell["prediction"]): cell["count_all"] for cell in found}


def _matrix(cells: _Cells) -> Confusion:
    totals: Counter[str] = Counter()
    for (actual, predicted), count in cells.items():
        totals[actual] += count
        totals[predicted] += 0
    labels = sorted(label for label, _ in totals.most_common(MAX_LABELS))
    places = {label: place for place, label in enumerate(labels)}
    counts = [[0] * len(labels) for _ in labels]
    for (actual, predicted), count in cells.items():
        if actual in places and predicted in places:
            counts[places[actual]][places[predicted]] = count
    return Confusion(labels=labels, counts=counts, left_out=sum(cells.values()) - sum(map(sum, counts)))


def label_scores(cells: _Cells) -> list[LabelScore]:
    """Precision, recall and F1 of each label one against the rest, the most frequent actual label first."""
    actual, predicted, right = Counter[str](), Counter[str](), Counter[str]()
    for (one, other), count in cells.items():
        actual[one] += count
        predicted[other] += count
        right[one] += count if one == other else 0
    labels = sorted(actual.keys() | predicted.keys(), key=lambda label: (-actual[label], label))
    return [score(label, right[label], actual[label], predicted[label]) for label in labels]


def score(label: str, right: int, actual: int, predicted: int) -> LabelScore:
    """Precision, recall and F1 = 2·right / (actual + predicted)."""
    return LabelScore(
        label=label,
        precision=right / predicted if predicted else None,
        recall=right / actual if actual else None,
        f1=2 * right / (actual + predicted) if actual + predicted else None,
        actual=actual,
        predicted=predicted,
    )


def reliability(table: "pa.Table") -> list[ReliabilityBin]:
    """Mean confidence and accuracy in bins of equal width (low, high], as Guo et al. draw them.

    Confidence is the probability of the predicted label, the largest one. Source: C. Guo et al., On Calibration of
    Modern Neural Networks, ICML 2017, section 2 (https://arxiv.org/abs/1706.04599). Empty without probabilities.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as compute

    names = [name for name in table.column_names if name.startswith(PROBABILITY)]
    if not names or not set(PAIR) <= set(table.column_names):
        return []
    confidence = numbers(compute.max_element_wise(*[table[name] for name in names])).astype(np.float64)
    pair = [compute.cast(table[name], pa.string()) for name in PAIR]
    equal = compute.call_function("equal", pair)
    known = numbers(compute.call_function("is_valid", [equal])) & ~np.isnan(confidence)
    right = numbers(equal)[known].astype(np.float64)
    confidence = confidence[known].astype(np.float64)
    place = np.clip(np.ceil(confidence * BINS).astype(np.int64) - 1, 0, BINS - 1)
    counts = np.bincount(place, minlength=BINS)
    sums = [np.bincount(place, weights=values, minlength=BINS) for values in (confidence, right)]
    return [
        ReliabilityBin(
            low=number / BINS,
            high=(number + 1) / BINS,
            count=int(counts[number]),
            confidence=float(sums[0][number] / counts[number]) if counts[number] else None,
            accuracy=float(sums[1][number] / counts[number]) if counts[number] else None,
        )
        for number in range(BINS)
    ]


def calibration_error(bins: list[ReliabilityBin]) -> float | None:
    """Expected calibration error: the bins' mean of |accuracy − confidence|, weighted by their rows (Guo et al. 2017, eq. 3)."""
    total = sum(one.count for one in bins)
    apart = [one.count * abs(one.accuracy - one.confidence) for one in bins if one.accuracy is not None and one.confidence is not None]  # fmt: skip
    return sum(apart) / total if total else None


def _threshold_counts(arguments: Arguments, tell: Tell) -> ThresholdCounts:
    """Rows at or above every threshold, right and wrong, so that a slider needs no question."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as compute

    path, label = needed(arguments, "parquet"), needed(arguments, "label")
    column = f"{PROBABILITY}{label}"
    if column not in read(path, tell).column_names:
        raise InputError(f"{label!r}: there is no probability of this label in the file")
    table = read_columns(path, ["actual", column])
    actual = compute.cast(table["actual"], pa.string())
    known = numbers(compute.call_function("is_valid", [actual]))
    is_label = numbers(compute.call_function("equal", [actual, pa.scalar(label)]))
    chance = numbers(compute.cast(table[column], pa.float64()))
    thresholds = np.arange(THRESHOLD_STEPS + 1) / THRESHOLD_STEPS
    positive, negative = (np.sort(chance[known & which]) for which in (is_label, ~is_label))
    counts = [len(found) - np.searchsorted(found, thresholds, side="left") for found in (positive, negative)]
    return ThresholdCounts(
        label=label,
        true_positives=counts[0].tolist(),
        false_positives=counts[1].tolist(),
        positives=len(positive),
        negatives=len(negative),
    )


QUERIES = (
    Query("confusion", _confusion),
    Query("prediction_statistics", _statistics, warm_by="parquet"),
    Query("threshold_counts", _threshold_counts, warm_by="parquet"),
)
