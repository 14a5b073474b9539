"""Scores of labels: accuracy, F1, precision and recall, Matthews' correlation."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from backend.contract.metrics import Metric
from backend.metrics.metric import Predictions


def known_labels(predictions: Predictions, facts: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Actual and predicted labels of the rows with a known label.

    New rows may have a label unknown to training; there is no loss for it either.
    """
    table = predictions.table
    known = table.filter(pc.is_in(table["actual"], pa.array(facts["labels"], pa.string())))
    return known["actual"].to_pylist(), known["prediction"].to_pylist()


def _score(predictions: Predictions, facts: Mapping[str, Any], settings: Any) -> dict[str, float]:
    """With two labels also precision, recall and F1 of the second.

    `combined` is then the mean of accuracy and F1, as for MRPC and QQP of GLUE.
    """
    from sklearn import metrics  # heavy; the catalog reads this module without it

    actual, predicted = known_labels(predictions, facts)
    if not actual:
        return {}
    labels = facts["labels"]
    total, count = predictions.total("loss")
    scores = {"loss": total / count, "accuracy": float(metrics.accuracy_score(actual, predicted))}
    if len(labels) == 2:
        precision, recall, f1, _ = metrics.precision_recall_fscore_support(
            actual,
            predicted,
            labels=labels,
            pos_label=labels[1],
            average="binary",
            zero_division=0,  # pyright: ignore[reportArgumentType]  scikit-learn's own annotation is too narrow
        )
        scores |= {"f1": float(f1), "precision": float(precision), "recall": float(recall)}
        scores["combined"] = (scores["accuracy"] + scores["f1"]) / 2
    for average in ("macro", "weighted"):
        f1 = metrics.f1_score(actual, predicted, labels=labels, average=average, zero_division=0)  # pyright: ignore[reportArgumentType]
        scores[f"f1_{average}"] = float(f1)
    # The coefficient of a constant is undefined; scikit-learn's 0 for it comes with a warning.
    varies = len(set(actual) | set(predicted)) > 1
    return scores | {"matthews": float(metrics.matthews_corrcoef(actual, predicted)) if varies else 0.0}


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
