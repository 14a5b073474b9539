"""Choice scores: how often the right choice was the most likely one."""

from functools import partial
from typing import Any

from backend.contract.metrics import Metric
from backend.metrics.metric import Predictions
from backend.statistics.resampling import WeightedScores, ratios


def _score(predictions: Predictions, facts: Any, settings: Any) -> dict[str, float]:
    total, count = predictions.total("loss")
    if not count:
        return {}
    right, _ = predictions.total("accuracy")
    return {"loss": total / count, "accuracy": right / count}


def _weighted_scores(predictions: Predictions, facts: Any, settings: Any) -> WeightedScores | None:
    if not predictions.total("accuracy")[1]:
        return None
    right, known = predictions.sums["accuracy"]
    sums = {name: predictions.sums[name] for name in ("loss", "accuracy") if name in predictions.sums}
    return WeightedScores(ratios(sums), {"accuracy": right[known > 0] > 0})


_metric = partial(
    Metric,
    greater_is_better=True,
    range=(0, 1),
    tasks=("multiple_choice",),
    score=_score,
    weighted_scores=_weighted_scores,
)
METRICS = (
    _metric("loss", "Loss", greater_is_better=False, range=(0, None)),
    _metric("accuracy", "Accuracy"),
)
