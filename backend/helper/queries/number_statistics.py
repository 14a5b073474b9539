"""Owns `number_statistics` and `entity_scores`: predicted numbers and predicted entities against the actual ones."""

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from backend.contract.arrow_numbers import numbers
from backend.contract.errors import InputError
from backend.contract.rpc.predictions import EntityScores, NumberPoint, NumberStatistics
from backend.contract.rpc.queries import Progress
from backend.helper.queries.prediction_pages import read_columns
from backend.helper.queries.prediction_statistics import PAIR, score
from backend.helper.query import Arguments, Query, Tell, needed

if TYPE_CHECKING:
    import numpy as np

MAX_POINTS = 2000
WORST_POINTS = 200
"""Of them those that are furthest off."""


def _numbers(arguments: Arguments, tell: Tell) -> NumberStatistics:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as compute

    table = read_columns(needed(arguments, "parquet"), PAIR)
    try:
        actual, predicted = (numbers(compute.cast(table[name], pa.float64())) for name in PAIR)
    except pa.ArrowInvalid:
        raise InputError("the predictions of this file are no numbers") from None
    rows = np.flatnonzero(np.isfinite(actual) & np.isfinite(predicted))
    if not len(rows):
        raise InputError("no row of this file has an actual number to compare with")
    actual, predicted = actual[rows], predicted[rows]
    error = predicted - actual
    shown = _shown(np.abs(error))
    return NumberStatistics(
        rows=len(rows),
        pearson=_correlation(actual, predicted),
        spearman=_correlation(_ranks(actual), _ranks(predicted)),
        mean_absolute_error=float(np.abs(error).mean()),
        root_mean_squared_error=float(np.sqrt(np.square(error).mean())),
        mean_error=float(error.mean()),
        low=float(min(actual.min(), predicted.min())),
        high=float(max(actual.max(), predicted.max())),
        points=[NumberPoint(int(rows[one]), float(actual[one]), float(predicted[one])) for one in shown],
    )


def _shown(distance: "np.ndarray") -> "np.ndarray":
    """Places of the rows that are drawn: all, or evenly spaced ones and the furthest off."""
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
    """Ranks from 0; equal values share the mean of theirs, as Spearman's correlation wants."""
    import numpy as np

    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts + 1) / 2)[places]


def _entities(arguments: Arguments, tell: Tell) -> EntityScores:
    table = read_columns(needed(arguments, "parquet"), PAIR).drop_null()
    right, actual, predicted = Counter[str](), Counter[str](), Counter[str]()
    whole = done = 0
    for batch in table.to_batches(max_chunksize=2000):
        for true, said in zip(batch["actual"].to_pylist(), batch["prediction"].to_pylist(), strict=True):
            there, found = spans(str(true).split()), spans(str(said).split())
            actual.update(kind for kind, _, _ in there)
            predicted.update(kind for kind, _, _ in found)
            right.update(kind for kind, _, _ in there & found)
            whole += true == said
        done += batch.num_rows
        tell(Progress(done, table.num_rows, "rows"))
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
    parts = [_parted(tag) for tag in tags]
    found, begin = set(), 0
    for place, (present, following) in enumerate(pairwise([*parts, ("O", "")])):
        if place == 0 or _begins(parts[place - 1], present):
            begin = place
        if present[0] != "O" and _begins(present, following):
            found.add((present[1], begin, place + 1))
    return found


def _parted(tag: str) -> tuple[str, str]:
    if tag in ("O", ""):
        return ("O", "")
    letter, dash, kind = tag.partition("-")
    return (letter, kind) if dash and letter in "BIESLU" else ("S", tag)


def _begins(before: tuple[str, str], present: tuple[str, str]) -> bool:
    """Whether something else begins with `present`."""
    return (
        present[0] in "BSUO" or before[0] in "ESLUO" or before[1] != present[1]
    )  # what ends, or is outside, is followed by something else


QUERIES: tuple[Any, ...] = (
    Query("number_statistics", _numbers, warm_by="parquet"),
    Query("entity_scores", _entities, warm_by="parquet"),
)
