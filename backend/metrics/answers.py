"""SQuAD answer scores: how answers are normalised and compared, and which null threshold would be best.

Like the official evaluation script (v2.0, Rajpurkar et al. 2018), but as fractions: 0.9 is its 90.0.
"""

import re
import string
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from backend.contract.metrics import Metric
from backend.metrics.metric import Predictions
from backend.statistics.resampling import WeightedScores, ratios

_ARTICLES = re.compile(r"\b(a|an|the)\b", re.UNICODE)
_PUNCTUATION = str.maketrans("", "", string.punctuation)  # ASCII only: a dash of Unicode stays


def normalise(answer: str) -> str:
    """Lower case, without ASCII punctuation and English articles, single spaces."""
    return " ".join(_ARTICLES.sub(" ", answer.lower().translate(_PUNCTUATION)).split())


def exact_match(prediction: str, references: Sequence[str]) -> float:
    """1.0 if the prediction equals one of the references; without references, if it is empty."""
    return max(float(normalise(prediction) == normalise(one)) for one in _or_none(references))


def f1(prediction: str, references: Sequence[str]) -> float:
    """The best word F1 with any of the references; without references, 1.0 if the prediction is empty."""
    return max(_f1(normalise(prediction).split(), normalise(one).split()) for one in _or_none(references))


def _or_none(references: Sequence[str]) -> Sequence[str]:
    # A reference of only articles or punctuation does not count, unless there is no other.
    return [one for one in references if normalise(one)] or [""]


def _f1(prediction: list[str], reference: list[str]) -> float:
    if not prediction or not reference:
        return float(prediction == reference)
    common = (Counter(prediction) & Counter(reference)).total()
    if common == 0:
        return 0.0
    precision, recall = common / len(prediction), common / len(reference)
    return 2 * precision * recall / (precision + recall)


def best_threshold(scores: np.ndarray, null_scores: np.ndarray, has_answer: np.ndarray) -> tuple[float, float]:
    """The best mean score over all null thresholds, and that threshold.

    `scores` (rows,) are those of each row's best non-empty answer. Rows are answered in the order of
    `null_scores`, up to the threshold; all others get no answer, which is right if there is none. Like the official
    script, it reports a threshold of 0.0 if answering nothing is best.
    """
    order = np.argsort(null_scores, kind="stable")
    gains = np.where(has_answer, scores, scores - 1.0)[order]
    totals = np.concatenate([[0.0], np.cumsum(gains)]) + np.count_nonzero(~has_answer)
    best = int(totals.argmax())
    return float(totals[best] / len(scores)), float(null_scores[order[best - 1]]) if best else 0.0


def _score(predictions: Predictions, facts: Any, settings: Any) -> dict[str, float]:
    """Every measure over the rows with known answers; empty if there are none."""
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


def _weighted_scores(predictions: Predictions, facts: Any, settings: Any) -> WeightedScores | None:
    measured = [
        f"{name}{part}" for name in ("loss", "exact_match", "f1") for part in ("", "_HasAns", "_NoAns")
        if predictions.total(f"{name}{part}")[1]
    ]  # fmt: skip
    if "exact_match" not in measured:
        return None
    right, known = predictions.sums["exact_match"]
    sums = {name: predictions.sums[name] for name in measured}
    return WeightedScores(ratios(sums), {"exact_match": right[known > 0] > 0})


_metric = partial(
    Metric,
    greater_is_better=True,
    range=(0, 1),
    tasks=("question_answering",),
    score=_score,
    weighted_scores=_weighted_scores,
)
METRICS = (
    _metric("loss", "Loss", greater_is_better=False, range=(0, None)),
    _metric("exact_match", "Exact match"),
    _metric("f1", "F1"),
)
