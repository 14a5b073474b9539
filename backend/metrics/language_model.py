"""Scores of predicted tokens: mean loss, perplexity and accuracy."""

from functools import partial
from typing import Any

import numpy as np

from backend.contract.metrics import Metric
from backend.metrics.metric import Predictions
from backend.statistics.resampling import WeightedScores, ratios

_LARGEST_EXPONENT = 700.0
"""A perplexity beyond it would be infinite, which JSON cannot say."""


def _score(predictions: Predictions, facts: Any, settings: Any) -> dict[str, float]:
    """Mean loss over all tokens, its exponential, and the share predicted correctly; empty without tokens."""
    total, count = predictions.total("loss")
    if not count:
        return {}
    correct, _ = predictions.total("accuracy")
    perplexity = float(np.exp(min(total / count, _LARGEST_EXPONENT)))
    return {"loss": total / count, "perplexity": perplexity, "accuracy": correct / count}


def _weighted_scores(predictions: Predictions, facts: Any, settings: Any) -> WeightedScores | None:
    if not predictions.total("loss")[1]:
        return None
    means = ratios({name: predictions.sums[name] for name in ("loss", "accuracy") if name in predictions.sums})

    def scores(counts: np.ndarray) -> dict[str, np.ndarray]:
        found = means(counts)
        return found | {"perplexity": np.exp(np.minimum(found["loss"], _LARGEST_EXPONENT))}

    return WeightedScores(scores)


_metric = partial(
    Metric,
    greater_is_better=False,
    range=(0, None),
    tasks=("causal_lm", "masked_lm", "seq2seq_lm"),
    score=_score,
    weighted_scores=_weighted_scores,
)
METRICS = (
    _metric("loss", "Loss"),
    _metric("perplexity", "Perplexity", range=(1, None)),
    _metric("accuracy", "Accuracy", greater_is_better=True, range=(0, 1)),
)
