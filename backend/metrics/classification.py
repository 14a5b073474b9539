"""Scores of labels: accuracy, F1, precision and recall, Matthews' correlation."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from backend.contract.metrics import Metric
from backend.metrics.metric import Predictions


def _count(predictions: Predictions, facts: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """How many rows have each label, are predicted to have it, and both: (labels,) int64.

    New rows may have a label unknown to training, and are left out; there is no loss for them either.
    """
    labels = pa.array(facts["labels"], pa.string())
    table = predictions.table
    known = table.filter(pc.is_in(table["actual"], labels))
    actual, predicted = (pc.index_in(known[name], labels).to_numpy() for name in ("actual", "prediction"))
    right = actual[actual == predicted]
    count_of = partial(np.bincount, minlength=len(labels))
    return count_of(actual), count_of(predicted), count_of(right)


def _divide(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """The quotients, and 0 for nothing divided by nothing."""
    return np.divide(above, below, out=np.zeros(len(above)), where=below > 0)


def _score(predictions: Predictions, facts: Mapping[str, Any], settings: Any) -> dict[str, float]:
    """As scikit-learn computes them, which takes seconds to import, with 0 for what is undefined.

    With two labels also precision, recall and F1 of the second; `combined` is then the mean of accuracy and F1, as for
    MRPC and QQP of GLUE.
    """
    actual, predicted, right = _count(predictions, facts)
    rows = actual.sum()
    if not rows:
        return {}
    total, count = predictions.total("loss")
    f1 = _divide(2 * right, actual + predicted)
    scores = {"loss": total / count, "accuracy": right.sum() / rows}
    if len(f1) == 2:
        precision, recall = _divide(right, predicted)[1], _divide(right, actual)[1]
        scores |= {"f1": f1[1], "precision": precision, "recall": recall}
        scores["combined"] = (scores["accuracy"] + f1[1]) / 2
    scores |= {"f1_macro": f1.mean(), "f1_weighted": np.average(f1, weights=actual)}
    scores["matthews"] = _correlate(actual.astype(float), predicted.astype(float), right.sum())
    return {name: float(value) for name, value in scores.items()}


def _correlate(actual: np.ndarray, predicted: np.ndarray, right: float) -> float:
    """Matthews' coefficient for any number of labels (Gorodkin 2004); that of a constant is undefined and counts as 0."""
    rows = actual.sum()
    varies = (rows**2 - predicted @ predicted) * (rows**2 - actual @ actual)
    return (right * rows - actual @ predicted) / np.sqrt(varies) if varies else 0.0


_TASKS = ("text_classification",)
METRICS = (
    Metric("loss", "Loss", greater_is_better=False, range=(0, None), tasks=_TASKS, score=_score),
    Metric("accuracy", "Accuracy", greater_is_better=True, range=(0, 1), tasks=_TASKS, score=_score),
    Metric("f1", "F1", greater_is_better=True, range=(0, 1), tasks=_TASKS, score=_score),
    Metric("precision", "Precision", greater_is_better=True, range=(0, 1), tasks=_TASKS, score=_score),
    Metric("recall", "Recall", greater_is_better=True, range=(0, 1), tasks=_TASKS, score=_score),
    Metric("combined", "Combined", greater_is_better=True, range=(0, 1), tasks=_TASKS, score=_score),
    Metric("f1_macro", "Macro F1", greater_is_better=True, range=(0, 1), tasks=_TASKS, score=_score),
    Metric("f1_weighted", "Weighted F1", greater_is_better=True, range=(0, 1), tasks=_TASKS, score=_score),
    Metric("matthews", "Matthews correlation", greater_is_better=True, range=(-1, 1), tasks=_TASKS, score=_score),
)
