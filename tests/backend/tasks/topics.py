"""Short texts with any number of topics, written for the tests: each topic shows by its words."""

import random
from typing import Any

import numpy as np
import pyarrow as pa

from backend.data.rows import Rows

TOPICS = ("culture", "money", "sport")
_WORDS = {
    "culture": ["the theatre", "a new novel", "the film festival", "her paintings", "the orchestra"],
    "money": ["the tax office", "rising prices", "a bank loan", "the sale of shares", "higher wages"],
    "sport": ["the final match", "their striker", "the marathon", "a penalty kick", "the swimming team"],
}
_OTHER = ["the weather", "a long walk", "the old bridge", "two letters"]


def topic_rows(count: int, seed: int = 0) -> list[dict[str, Any]]:
    """Rows of `text` and `labels`, a list of none to three topics."""
    rng = random.Random(seed)
    rows = []
    for _ in range(count):
        labels = [topic for topic in TOPICS if rng.random() < 0.4]
        about = [rng.choice(_WORDS[topic]) for topic in labels] or [rng.choice(_OTHER)]
        rng.shuffle(about)
        rows.append({"text": f"People talked about {' and '.join(about)}.", "labels": labels})
    return rows


def rows_of(name: str = "topics.csv", **columns: Any) -> Rows:
    """A table as if it had been read from a file."""
    count = len(next(iter(columns.values())))
    return Rows(pa.table(columns), (name,), np.zeros(count, np.int32), np.arange(count) + 2, "fingerprint")
