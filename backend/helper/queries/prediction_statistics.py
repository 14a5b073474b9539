"""Answers how good a file's predictions are: labels, thresholds, numbers and entities against the actual ones."""

from collections import Counter
from itertools import pairwise, product
from typing import TYPE_CHECKING

from backend.contract.arrow_numbers import numbers
from backend.contract.errors import InputError
from backend.contract.rpc.predictions import (
    THRESHOLD_STEPS,
    Confusion,
    EntityScores,
    LabelScore,
    NumberPoint,
    NumberStatistics,
    PredictionStatistics,
    ReliabilityBin,
    ThresholdCounts,
)
from backend.contract.rpc.protocol import Progress
from backend.helper.queries.derived_columns import PROBABILITY, has_label
from backend.helper.queries.predictions import label_separator, read, read_columns
from backend.helper.query import Arguments, Query, ReportProgress, require

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

PAIR = ["actual", "prediction"]
_Cells = dict[tuple[str, str], int]
MAX_LABELS = 100
"""Labels of a confusion matrix; more cannot be read, and seldom are labels."""
MAX_POINTS = 2000
WORST_POINTS = 200
"""Of them those that are furthest off."""


def _confusion(arguments: Arguments, report: ReportProgress) -> Confusion:
    path = require(arguments, "parquet")
    cells, separator = _cells(read_columns(path, PAIR)), label_separator(path)
    return _matrix(_together(cells, separator) if separator else cells)


def _statistics(arguments: Arguments, report: ReportProgress) -> PredictionStatistics:
    """Counts, scores of every label, and calibration; without actual labels only how often each is predicted."""
    from backend.statistics.calibration import calibration_error  # loads numpy

    path = require(arguments, "parquet")
    read_columns(path, ["prediction"])
    table, separator = read(path, report), label_separator(path)
    if "actual" not in table.column_names:
        return _count_predictions(table, separator)
    cells = _cells(table)
    scores = several_label_scores(cells, separator) if separator else label_scores(cells)
    known = [one.f1 or 0.0 for one in scores]
    bins = _reliability_of_labels(table, separator) if separator else _reliability(table)
    return PredictionStatistics(
        rows=sum(cells.values()),
        right=sum(count for (actual, predicted), count in cells.items() if actual == predicted),
        confusion=_matrix(_together(cells, separator) if separator else cells),
        labels=scores[:MAX_LABELS],
        macro_f1=sum(known) / len(known) if known else None,
        bins=bins,
        calibration_error=calibration_error(bins),
        probabilities=[name.removeprefix(PROBABILITY) for name in table.column_names if name.startswith(PROBABILITY)],
        separator=separator,
    )


def _count_predictions(table: "pa.Table", separator: str) -> PredictionStatistics:
    import pyarrow as pa
    import pyarrow.compute as compute

    found = compute.value_counts(compute.cast(table["prediction"], pa.string()).drop_null()).to_pylist()
    counts = Counter({one["values"]: one["counts"] for one in found})
    rows = counts.total()
    if separator:
        each = [(label, count) for cell, count in counts.items() for label in _split(cell, separator)]
        counts = Counter[str]()
        for label, count in each:
            counts[label] += count
    ordered = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    scores = [score(label, 0, 0, count) for label, count in ordered[:MAX_LABELS]]
    return PredictionStatistics(
        rows=rows, right=0, confusion=_matrix({}), labels=scores, macro_f1=None, separator=separator
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


def _split(cell: str, separator: str) -> list[str]:
    return [label for label in cell.split(separator) if label]


def _together(cells: _Cells, separator: str) -> _Cells:
    """(a label that rows have, one that is predicted for them) → rows."""
    found = Counter[tuple[str, str]]()
    for (actual, predicted), count in cells.items():
        for pair in product(_split(actual, separator), _split(predicted, separator)):
            found[pair] += count
    return dict(found)


def several_label_scores(cells: _Cells, separator: str) -> list[LabelScore]:
    """The same for rows with several labels: each label is there or not."""
    actual, predicted, right = Counter[str](), Counter[str](), Counter[str]()
    for (one, other), count in cells.items():
        there, found = set(_split(one, separator)), set(_split(other, separator))
        for counts, labels in ((actual, there), (predicted, found), (right, there & found)):
            for label in labels:
                counts[label] += count
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


def _reliability(table: "pa.Table") -> list[ReliabilityBin]:
    """Of the probability of the predicted label, the largest one; empty without probabilities."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as compute

    from backend.statistics.calibration import reliability

    names = [name for name in table.column_names if name.startswith(PROBABILITY)]
    if not names or not set(PAIR) <= set(table.column_names):
        return []
    confidence = numbers(compute.max_element_wise(*[table[name] for name in names])).astype(np.float64)
    pair = [compute.cast(table[name], pa.string()) for name in PAIR]
    equal = compute.call_function("equal", pair)
    known = numbers(compute.call_function("is_valid", [equal])) & ~np.isnan(confidence)
    return reliability(confidence[known], numbers(equal)[known].astype(np.float64))


def _reliability_of_labels(table: "pa.Table", separator: str) -> list[ReliabilityBin]:
    """Of the probability of each label in each row."""
    import numpy as np

    from backend.statistics.calibration import reliability

    names = [name for name in table.column_names if name.startswith(PROBABILITY)]
    if not names:
        return []
    known = numbers(table["actual"].is_valid())
    chances = np.stack([numbers(table[name]).astype(np.float64) for name in names], axis=1)  # (rows, labels)
    there = np.stack(
        [numbers(has_label(table["actual"], name.removeprefix(PROBABILITY), separator)) for name in names], axis=1
    )
    return reliability(chances[known].ravel(), there[known].ravel().astype(np.float64))


def _threshold_counts(arguments: Arguments, report: ReportProgress) -> ThresholdCounts:
    """Rows at or above every threshold, right and wrong, so that moving a slider needs no query."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as compute

    path, label = require(arguments, "parquet"), require(arguments, "label")
    column = f"{PROBABILITY}{label}"
    if column not in read(path, report).column_names:
        raise InputError("{label}: the file has no probabilities for this label", label=repr(label))
    table, separator = read_columns(path, ["actual", column]), label_separator(path)
    actual = compute.cast(table["actual"], pa.string())
    known = numbers(compute.call_function("is_valid", [actual]))
    is_label = numbers(
        has_label(actual, label, separator) if separator else compute.call_function("equal", [actual, pa.scalar(label)])
    )
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


def _numbers(arguments: Arguments, report: ReportProgress) -> NumberStatistics:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as compute

    table = read_columns(require(arguments, "parquet"), PAIR)
    try:
        actual, predicted = (numbers(compute.cast(table[name], pa.float64())) for name in PAIR)
    except pa.ArrowInvalid:
        raise InputError("the predictions of this file are not numbers") from None
    rows = np.flatnonzero(np.isfinite(actual) & np.isfinite(predicted))
    if not len(rows):
        raise InputError("no row of this file has an actual number to compare with")
    actual, predicted = actual[rows], predicted[rows]
    error = predicted - actual
    sampled = _sample_points(np.abs(error))
    return NumberStatistics(
        rows=len(rows),
        pearson=_correlation(actual, predicted),
        spearman=_correlation(_ranks(actual), _ranks(predicted)),
        mean_absolute_error=float(np.abs(error).mean()),
        root_mean_squared_error=float(np.sqrt(np.square(error).mean())),
        mean_error=float(error.mean()),
        low=float(min(actual.min(), predicted.min())),
        high=float(max(actual.max(), predicted.max())),
        points=[NumberPoint(int(rows[one]), float(actual[one]), float(predicted[one])) for one in sampled],
    )


def _sample_points(distance: "np.ndarray") -> "np.ndarray":
    """Indices of the rows to plot: all, or evenly spaced ones and the largest errors."""
    import numpy as np

    if len(distance) <= MAX_POINTS:
        return np.arange(len(distance))
    even = np.linspace(0, len(distance) - 1, MAX_POINTS - WORST_POINTS).astype(np.int64)
    return np.union1d(even, np.argpartition(-distance, WORST_POINTS)[:WORST_POINTS])


def _correlation(one: "np.ndarray", other: "np.ndarray") -> float | None:
    import numpy as np

    if len(one) < 2 or one.std() == 0 or other.std() == 0:
        return None
    return float(np.corrcoef(one, other)[0, 1])


def _ranks(values: "np.ndarray") -> "np.ndarray":
    """Ranks from 0; equal values share their mean rank, as in Spearman's correlation."""
    import numpy as np

    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts + 1) / 2)[places]


def _entities(arguments: Arguments, report: ReportProgress) -> EntityScores:
    table = read_columns(require(arguments, "parquet"), PAIR).drop_null()
    right, actual, predicted = Counter[str](), Counter[str](), Counter[str]()
    whole = done = 0
    for batch in table.to_batches(max_chunksize=2000):
        for true, prediction in zip(batch["actual"].to_pylist(), batch["prediction"].to_pylist(), strict=True):
            there, found = spans(str(true).split()), spans(str(prediction).split())
            actual.update(kind for kind, _, _ in there)
            predicted.update(kind for kind, _, _ in found)
            right.update(kind for kind, _, _ in there & found)
            whole += true == prediction
        done += batch.num_rows
        report(Progress(done, table.num_rows, "rows"))
    kinds = sorted(actual.keys() | predicted.keys(), key=lambda kind: (-actual[kind], kind))
    total = score("", right.total(), actual.total(), predicted.total())
    return EntityScores(
        rows=table.num_rows,
        right=whole,
        types=[score(kind, right[kind], actual[kind], predicted[kind]) for kind in kinds],
        precision=total.precision,
        recall=total.recall,
        f1=total.f1,
    )


def spans(tags: list[str]) -> set[tuple[str, int, int]]:
    """(type, first word, word after the last) of each entity, as conlleval cuts BIO, IOB1, IOBES and BILOU tags.

    Source: the CoNLL-2000 script conlleval.pl (https://www.clips.uantwerpen.be/conll2000/chunking/output.html). A tag
    without a scheme (`NOUN`) is an entity of one word.
    """
    parts = [_split_tag(tag) for tag in tags]
    found, begin = set(), 0
    for place, (present, following) in enumerate(pairwise([*parts, ("O", "")])):
        if place == 0 or _is_start(parts[place - 1], present):
            begin = place
        if present[0] != "O" and _is_start(present, following):
            found.add((present[1], begin, place + 1))
    return found


def _split_tag(tag: str) -> tuple[str, str]:
    if tag in ("O", ""):
        return ("O", "")
    letter, dash, kind = tag.partition("-")
    return (letter, kind) if dash and letter in "BIESLU" else ("S", tag)


def _is_start(before: tuple[str, str], present: tuple[str, str]) -> bool:
    """Whether a new entity starts at `present`."""
    return (
        present[0] in "BSUO" or before[0] in "ESLUO" or before[1] != present[1]
    )  # what ends, or is outside, is followed by something else


QUERIES = (
    Query("confusion", _confusion),
    Query("prediction_statistics", _statistics, warm_by="parquet"),
    Query("threshold_counts", _threshold_counts, warm_by="parquet"),
    Query("number_statistics", _numbers, warm_by="parquet"),
    Query("entity_scores", _entities, warm_by="parquet"),
)
