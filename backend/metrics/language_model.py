"""Scores of predicted tokens: mean loss, perplexity and accuracy."""

from typing import Any

import numpy as np

from backend.contract.metrics import Metric
from backend.metrics.metric import Predictions

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


_TASKS = ("causal_lm", "masked_lm", "seq2seq_lm")
METRICS = (
    Metric("loss", "Loss", greater_is_better=False, range=(0, None), tasks=_TASKS, score=_score),
    Metric("perplexity", "Perplexity", greater_is_better=False, range=(1, None), tasks=_TASKS, score=_score),
    Metric("accuracy", "Accuracy", greater_is_better=True, range=(0, 1), tasks=_TASKS, score=_score),
)
