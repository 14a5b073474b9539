"""Owns what language models have in common: their texts, and loss and perplexity as sums over tokens."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from backend.data.rows import Rows
from backend.tasks.task import Predictions

LARGEST_EXPONENT = 700.0
"""A perplexity beyond it would be infinite, which JSON cannot say."""


def texts(rows: Rows, column: str, chunk: range | None = None) -> list[str]:
    """The texts of a column; null is an empty one."""
    chunk = range(len(rows)) if chunk is None else chunk
    found = rows.table[column].slice(chunk.start, len(chunk))
    return pc.fill_null(found.cast(pa.string()), "").to_pylist()


def loss_table(loss: np.ndarray, tokens: np.ndarray) -> dict[str, pa.Array]:
    """The columns `loss`, `tokens`, `perplexity` of summed losses (rows,) over so many tokens; null where there is none."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        mean = np.where(tokens > 0, loss / tokens, np.nan)
        perplexity = np.exp(mean)
    return {
        "loss": pa.array(mean, from_pandas=True),
        "tokens": pa.array(tokens),
        "perplexity": pa.array(perplexity, from_pandas=True),
    }


def language_scores(predictions: Predictions) -> dict[str, float]:
    """Mean loss over all tokens, its exponential, and the share that were the likeliest; empty without tokens."""
    total, count = predictions.total("loss")
    if not count:
        return {}
    correct, _ = predictions.total("accuracy")
    perplexity = float(np.exp(min(total / count, LARGEST_EXPONENT)))
    return {"loss": total / count, "perplexity": perplexity, "accuracy": correct / count}
