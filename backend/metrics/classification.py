"""Scores of labels: accuracy, F1, precision and recall, Matthews' correlation."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from backend.contract.metrics import Metric
from backend.metrics.metric import Predictions
from backend.statistics.resampling import WeightedScores, divide, ratios


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


def _weighted_scores(predictions: Predictions, facts: Mapping[str, Any], settings: Any) -> WeightedScores | None:
    from scipy import sparse  # heavy, as above

    labels = facts["labels"]
    numbers = {label: number for number, label in enumerate(labels)}
    actual, predicted = (
        np.array([numbers.get(label, -1) for label in predictions.table[name].to_pylist()])
        for name in ("actual", "prediction")
    )
    known = np.flatnonzero((actual >= 0) & (predicted >= 0))
    if not len(known):
        return None
    pairs, cell = np.unique(np.stack([actual[known], predicted[known]]), axis=1, return_inverse=True)
    cells = sparse.csr_array((np.ones(len(known)), (known, cell.ravel())), (len(actual), pairs.shape[1]))
    of_actual, of_predicted = (
        sparse.csr_array((pairs[place][:, None] == np.arange(len(labels))).astype(np.float64)) for place in (0, 1)
    )
    share_of_labels = len(np.unique(pairs)) / len(labels)
    loss = ratios({"loss": predictions.sums["loss"]}) if "loss" in predictions.sums else None

    def scores(counts: np.ndarray) -> dict[str, np.ndarray]:
        found = _cell_scores(counts @ cells, of_actual, of_predicted, share_of_labels)
        return found if loss is None else found | loss(counts)

    right = actual[known] == predicted[known]
    shares = {"accuracy": right}
    if len(labels) == 2:
        shares |= {"precision": right[predicted[known] == 1], "recall": right[actual[known] == 1]}
    return WeightedScores(scores, shares)


def _cell_scores(cells: np.ndarray, of_actual: Any, of_predicted: Any, share_of_labels: float) -> dict[str, np.ndarray]:
    """The scores of `_score` from how often each pair of actual and predicted label occurs.

    `cells` (draws, pairs); `of_actual` and `of_predicted` (pairs, labels), sparse, say which labels each pair has. A rare
    label that a draw happens to miss is no mistake: its F1 doesn't count there. `share_of_labels` is that of all which occur.
    """
    actual, predicted, right = cells @ of_actual, cells @ of_predicted, cells @ (of_actual * of_predicted)
    total, hits = cells.sum(axis=1), right.sum(axis=1)
    f1 = divide(2 * right, actual + predicted)
    found = {
        "accuracy": divide(hits, total),
        "f1_macro": divide(f1.sum(axis=1), np.count_nonzero(actual + predicted, axis=1)) * share_of_labels,
        "f1_weighted": divide((f1 * actual).sum(axis=1), total),
        # Gorodkin 2004, as scikit-learn has it for any number of labels
        "matthews": divide(
            hits * total - (actual * predicted).sum(axis=1),
            np.sqrt((total**2 - (predicted**2).sum(axis=1)) * (total**2 - (actual**2).sum(axis=1))),
        ),
    }
    if of_actual.shape[1] != 2:
        return found
    found |= {"f1": f1[:, 1], "precision": divide(right, predicted)[:, 1], "recall": divide(right, actual)[:, 1]}
    return found | {"combined": (found["accuracy"] + found["f1"]) / 2}


_metric = partial(
    Metric,
    greater_is_better=True,
    range=(0, 1),
    tasks=("text_classification",),
    score=_score,
    weighted_scores=_weighted_scores,
)
METRICS = (
    _metric("loss", "Loss", greater_is_better=False, range=(0, None)),
    _metric("accuracy", "Accuracy"),
    _metric("f1", "F1"),
    _metric("precision", "Precision"),
    _metric("recall", "Recall"),
    _metric("combined", "Combined"),
    _metric("f1_macro", "Macro F1"),
    _metric("f1_weighted", "Weighted F1"),
    _metric("matthews", "Matthews correlation", range=(-1, 1)),
)
