"""Owns what is written and measured of answered questions: the table, SQuAD's own files, and each row's scores."""

from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from backend.data.rows import Rows
from backend.tasks._n_best import Said
from backend.tasks._question_answering_features import Answers
from backend.tasks._squad_metrics import best_threshold, exact_match, f1
from backend.tasks._texts import strings
from backend.tasks.task import Columns, Predictions, Sums


def names(rows: Rows, columns: Columns) -> list[str]:
    """What a row is called in the documents; a name that occurs again gets a number, so that none is lost."""
    column = columns.get("id")
    if column is None or column not in rows.table.column_names:
        return [str(row) for row in range(len(rows))]
    seen: dict[str, int] = {}
    names = []
    for name in strings(rows.table[column]).to_pylist():
        seen[name] = seen.get(name, 0) + 1
        names.append(name if seen[name] == 1 else f"{name}-{seen[name]}")
    return names


def table(said: list[Said], answers: list[Answers | None]) -> pa.Table:
    """A row for each question: answer and first reference, place in characters, and the n-best list as JSON text."""
    actual = [None if one is None else "".join(one.texts[:1]) for one in answers]
    return pa.table(
        {
            "prediction": pa.array([one.chosen.text for one in said], pa.string()),
            "actual": pa.array(actual, pa.string()),
            "score": pa.array([one.score for one in said], pa.float64()),
            "start": pa.array([one.chosen.start for one in said], pa.int64()),
            "end": pa.array([one.chosen.end for one in said], pa.int64()),
            "null_score": pa.array([one.null_score for one in said], pa.float64()),
            "n_best": pa.array([msgspec.json.encode(one.n_best).decode() for one in said], pa.string()),
        }
    )


def documents(said: list[Said], names: list[str], may_be_none: bool) -> dict[str, Any]:
    """Beside the CSV, as transformers' example writes them: answers, n-best lists and null scores by question."""
    each = list(zip(names, said, strict=True))
    lists = msgspec.json.encode({name: one.n_best for name, one in each})  # large: json itself would take seconds
    found: dict[str, Any] = {
        "predictions.json": {name: one.chosen.text for name, one in each},
        "nbest_predictions.json": msgspec.json.format(lists, indent=1).decode(),
    }
    return found | ({"null_odds.json": {name: one.null_score for name, one in each}} if may_be_none else {})


def scores(said: list[Said], answers: list[Answers | None], may_be_none: bool) -> Sums:
    """Each row's measures against its best reference; those of the best answer that is not empty beside."""
    known = np.array([one is not None for one in answers], dtype=np.float64)
    references = [one.texts if one is not None else () for one in answers]
    has_answer = np.array([bool(one) for one in references], dtype=np.float64)
    sums: Sums = {}
    for name, measure in (("exact_match", exact_match), ("f1", f1)):
        pairs = zip(said, references, strict=True)
        values = known * [measure(one.chosen.text, own) for one, own in pairs]
        sums[name] = values, known
        if may_be_none or (known > has_answer).any():
            sums[f"{name}_HasAns"] = values * has_answer, has_answer
            sums[f"{name}_NoAns"] = values * (1 - has_answer), known - has_answer
        if may_be_none:
            pairs = zip(said, references, strict=True)
            sums[f"answered_{name}"] = known * [measure(one.best_text, own) for one, own in pairs], known
    if may_be_none:
        null_scores = [one.null_score for one in said]
        sums |= {"null_score": (np.array(null_scores, dtype=np.float64), known), "has_answer": (has_answer, known)}
    return sums


def means(predictions: Predictions) -> dict[str, float]:
    """Every measure over the rows whose answers are known; empty where none is."""
    found = {}
    for name in ("loss", "exact_match", "f1"):
        for variant in (name, f"{name}_HasAns", f"{name}_NoAns"):
            total, count = predictions.total(variant)
            found |= {variant: total / count} if count else {}
    if "exact_match" not in found or "null_score" not in predictions.sums:
        return found if "exact_match" in found else {}
    (null_scores, known), (has_answer, _) = predictions.sums["null_score"], predictions.sums["has_answer"]
    kept = known > 0
    for name in ("exact_match", "f1"):
        own = predictions.sums[f"answered_{name}"][0][kept]
        best, threshold = best_threshold(own, null_scores[kept], has_answer[kept] > 0)
        found |= {f"best_{name}": best, f"best_{name}_threshold": threshold}
    return found
