"""Scores of numbers: mean squared error, Pearson's and Spearman's correlation and their mean, as for STS-B of GLUE."""

from typing import Any

import numpy as np

from backend.contract.metrics import Metric
from backend.metrics.metric import Predictions


def _score(predictions: Predictions, facts: Any, settings: Any) -> dict[str, float]:
    known = predictions.labelled_rows()
    if known.num_rows == 0:
        return {}
    actual, predicted = (known[name].to_numpy().astype(np.float64) for name in ("actual", "prediction"))
    pearson, spearman = _correlations(actual, predicted)
    total, count = predictions.total("loss")
    return {"loss": total / count, "pearson": pearson, "spearman": spearman, "combined": (pearson + spearman) / 2}


def _correlations(actual: np.ndarray, predicted: np.ndarray) -> tuple[float, float]:
    """Pearson's and Spearman's; the correlation with a constant is undefined and counts as 0."""
    from scipy import stats  # heavy; the catalog reads this module without it

    if not (_varies(actual) and _varies(predicted)):
        return 0.0, 0.0
    pearson, spearman = stats.pearsonr(actual, predicted), stats.spearmanr(actual, predicted)
    return float(pearson.statistic), float(spearman.statistic)  # pyright: ignore[reportAttributeAccessIssue]


def _varies(values: np.ndarray) -> bool:
    """Whether the numbers differ by more than the rounding of their mean, below which scipy warns."""
    return bool(np.ptp(values) > 1e-12 * np.abs(values).max())


_TASKS = ("text_regression",)
METRICS = (
    Metric("loss", "Loss", greater_is_better=False, range=(0, None), tasks=_TASKS, score=_score),
    Metric("pearson", "Pearson", greater_is_better=True, range=(-1, 1), tasks=_TASKS, score=_score),
    Metric("spearman", "Spearman", greater_is_better=True, range=(-1, 1), tasks=_TASKS, score=_score),
    Metric("combined", "Combined", greater_is_better=True, range=(-1, 1), tasks=_TASKS, score=_score),
)
