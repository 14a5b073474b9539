"""Scores of numbers: mean squared error, Pearson's and Spearman's correlation and their mean, as for STS-B of GLUE."""

from functools import partial
from typing import Any

import numpy as np

from backend.contract.metrics import Metric
from backend.metrics.metric import Predictions
from backend.statistics.resampling import WeightedScores, divide, ratios


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


def _weighted_scores(predictions: Predictions, facts: Any, settings: Any) -> WeightedScores:
    actual, predicted = (predictions.table[name].to_numpy().astype(np.float64) for name in ("actual", "prediction"))
    actual, predicted = (values if _varies(values) else np.zeros(len(values)) for values in (actual, predicted))
    places = [np.unique(values, return_inverse=True)[1] for values in (actual, predicted)]
    loss = ratios({"loss": predictions.sums["loss"]}) if "loss" in predictions.sums else None

    def scores(counts: np.ndarray) -> dict[str, np.ndarray]:
        pearson = _counted_pearson(counts, actual, predicted)
        spearman = _counted_pearson(counts, *(_counted_ranks(counts, place) for place in places))
        found = {"pearson": pearson, "spearman": spearman, "combined": (pearson + spearman) / 2}
        return found if loss is None else found | loss(counts)

    return WeightedScores(scores, is_sum=False)


def _counted_pearson(counts: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Pearson's correlation if rows occur so often; 0 for a constant. (draws, rows), and values of either shape → (draws,)"""
    total = counts.sum(axis=1, keepdims=True)
    left, right = (values - (counts * values).sum(axis=1, keepdims=True) / total for values in (left, right))
    product = (counts * left * right).sum(axis=1)
    squares = (counts * left**2).sum(axis=1) * (counts * right**2).sum(axis=1)
    return divide(product, np.sqrt(squares))


def _counted_ranks(counts: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Every row's rank if rows occur so often, equal values sharing the middle one. (draws, rows)

    `place` (rows,) is the place of each row's value among all different values.
    """
    from scipy import sparse

    rows = len(place)
    each = counts @ sparse.csr_array((np.ones(rows), (np.arange(rows), place)))
    return (np.cumsum(each, axis=1) - each / 2)[:, place]


_metric = partial(
    Metric,
    greater_is_better=True,
    range=(-1, 1),
    tasks=("text_regression",),
    score=_score,
    weighted_scores=_weighted_scores,
)
METRICS = (
    _metric("loss", "Loss", greater_is_better=False, range=(0, None)),
    _metric("pearson", "Pearson"),
    _metric("spearman", "Spearman"),
    _metric("combined", "Combined"),
)
