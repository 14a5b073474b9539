"""Chooses the sample rows that each evaluation shows: the worst, the best, and a fixed selection."""

import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from backend.contract.messages import message
from backend.contract.rpc.predictions import SEPARATOR
from backend.contract.run.events import RowsSampled, SampledRow
from backend.data.fingerprint import generator
from backend.data.rows import Rows
from backend.inference.predictions_file import join_predictions
from backend.tasks.task import Columns, Predictions

EACH = 3
"""Rows of each kind."""
RATED = 2000
"""Rows among which the best and the worst are looked for, since each is looked at in Python."""
LONGEST_TEXT = 600
LONGEST_LIST = 2000
"""Characters of a value in an event; text is truncated, anything else is omitted."""
LONGEST_ROW = 6000
"""Characters of all values of a row; columns that come when they are used up are left out."""


def choose_samples(
    step: int, rows: Rows, predictions: Predictions, columns: Columns, seed: int, numbers: np.ndarray
) -> RowsSampled:
    """The worst rows first, then the best, then a random selection that is the same at every step.

    `numbers` maps each of `rows` to its row in the split.
    """
    order = generator("samples", rows.fingerprint, seed).permutation(len(rows))
    drawn = order[:EACH]
    measure, rated = ratings(predictions.table, order[EACH:RATED])
    ranked = sorted(rated, key=lambda place: rated[place])
    half = min(EACH, len(ranked) // 2)
    chosen = [("worst", place) for place in ranked[:half]]
    chosen += [("best", place) for place in reversed(ranked[len(ranked) - half :])]
    chosen += [("drawn", int(place)) for place in drawn]
    _, own = ratings(predictions.table, drawn)
    return RowsSampled(
        time=time.time(),
        step=step,
        measure=measure,
        columns=dict(columns),
        rows=[
            SampledRow(row=int(numbers[place]), kind=kind, values=values, rating=rated.get(place, own.get(place)))
            for (kind, place), values in zip(chosen, _values(rows, predictions, columns, chosen), strict=True)
        ],
    )


def _values(
    rows: Rows, predictions: Predictions, columns: Columns, chosen: Sequence[tuple[str, int]]
) -> list[dict[str, Any]]:
    places = np.array([place for _, place in chosen], np.int64)
    table = join_predictions(rows.take(places, f"{rows.fingerprint}-samples"), predictions.take(places))
    first = {*_READ, *columns.values()}
    return [_fitting({name: shorten(value) for name, value in row.items()}, first) for row in table.to_pylist()]


def _fitting(row: dict[str, Any], first: Set[str]) -> dict[str, Any]:
    """The columns that fit, in order; those in `first` take precedence."""
    left, kept = LONGEST_ROW, set[str]()
    for name in sorted(row, key=lambda name: name not in first):
        left -= len(json.dumps({name: row[name]}, ensure_ascii=False))
        if left >= 0:
            kept.add(name)
    return {name: value for name, value in row.items() if name in kept}


def shorten(value: Any) -> Any:
    """A value small enough for an event: plain JSON, truncated."""
    if isinstance(value, str):
        return value if len(value) <= LONGEST_TEXT else f"{value[:LONGEST_TEXT]}…"
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return round(value, 6) if np.isfinite(value) else None
    text = json.dumps(value, ensure_ascii=False, default=str)
    return json.loads(text) if len(text) <= LONGEST_LIST else None


def ratings(table: pa.Table, places: np.ndarray) -> tuple[str, dict[int, float]]:
    """What is measured, and each row's rating by it, higher being better; empty if nothing is known."""
    names = table.column_names
    wanted = [name for name in names if name in _READ or name.startswith("probability_")]
    some = table.select(wanted).take(pa.array(places, pa.int64())).to_pylist()
    separator = (table.schema.metadata or {}).get(SEPARATOR.encode())
    measure, rate = _ranking(names, some, separator and separator.decode())
    found = {int(place): rate(row) for place, row in zip(places, some, strict=True)}
    return measure, {place: value for place, value in found.items() if value is not None and np.isfinite(value)}


_READ = ("prediction", "actual", "loss", "lost_words")


def _ranking(names: Sequence[str], some: Sequence[Mapping[str, Any]], separator: str | None):
    first = next((row["actual"] for row in some if row.get("actual") is not None), None)
    if "loss" in names:
        return "loss", lambda row: None if row["loss"] is None else -float(row["loss"])
    if separator:
        return message("mean probability of the correct answers"), partial(_label_probability, separator)
    if any(name.startswith("probability_") for name in names):
        return message("probability of the correct answer"), lambda row: row.get(f"probability_{row['actual']}")
    if isinstance(first, int | float) and not isinstance(first, bool):
        return "difference", _closeness
    if "lost_words" in names:
        return message("correct tags"), _same_words
    return message("words in common"), _word_f1


def _label_probability(separator: str, row: Mapping[str, Any]) -> float | None:
    """That each label is there or not, as it is."""
    if row["actual"] is None:
        return None
    there = set(row["actual"].split(separator))
    chances = {
        name.removeprefix("probability_"): value for name, value in row.items() if name.startswith("probability_")
    }
    return float(np.mean([value if label in there else 1 - value for label, value in chances.items()]))


def _closeness(row: Mapping[str, Any]) -> float | None:
    predicted, actual = row["prediction"], row["actual"]
    return None if predicted is None or actual is None else -abs(float(predicted) - float(actual))


def _same_words(row: Mapping[str, Any]) -> float | None:
    if row["actual"] is None:
        return None
    predicted, actual = _text(row["prediction"]).split(), _text(row["actual"]).split()
    same = sum(one == other for one, other in zip(predicted, actual, strict=False))
    return same / max(len(predicted), len(actual), 1)


def _word_f1(row: Mapping[str, Any]) -> float | None:
    """Word F1; with several right answers, against the nearest."""
    if row["actual"] is None:
        return None
    several = row["actual"] if isinstance(row["actual"], list) else [row["actual"]]
    return max((_f1(_text(row["prediction"]), _text(one)) for one in several), default=None)


def _f1(predicted: str, actual: str) -> float:
    own, right = Counter(predicted.lower().split()), Counter(actual.lower().split())
    if not own and not right:
        return 1.0
    return 2 * (own & right).total() / (own.total() + right.total())


def _text(value: object) -> str:
    return "" if value is None else str(value)
