"""Owns a task, a tokenizer and a model in place, and what can be done with them: features, batches, predictions."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from backend.contract.places import cache_folder
from backend.contract.spec import RunSpec
from backend.data import batches
from backend.data.features import Features, features
from backend.data.rows import Rows
from backend.data.sources.source import Report
from backend.engines.engine import Batch, Engine
from backend.run.preparation import quiet
from backend.tasks.task import Columns, Facts, Outputs, Predictions, Task
from backend.tokenizers.loading import fingerprint


@dataclass(frozen=True)
class Scored:
    """One evaluation: predictions for every row, metrics where labels are known, and how long it took."""

    predictions: Predictions
    metrics: dict[str, float]
    seconds: float


@dataclass(frozen=True)
class Session:
    """Everything that turns rows into numbers."""

    spec: RunSpec
    task: Task
    facts: Facts
    columns: Columns
    tokenizer: Any
    pad_token_id: int
    engine: Engine

    def features(self, rows: Rows, report: Report = quiet) -> Features:
        """The rows' features, from the cache where they were made before."""
        key = {
            "rows": rows.fingerprint,
            "task": self.spec.task,
            "facts": self.facts,
            "columns": dict(self.columns),
            "tokenizer": fingerprint(self.tokenizer),
        }
        return features(
            lambda: self.task.encode(rows, self.columns, self.tokenizer, self.facts),
            key,
            cache_folder() / "features",
            report,
            len(rows),
        )

    def micro_batches(self, source: Features, indices: np.ndarray, size: int) -> list[Batch]:
        """The batches of one optimizer step, each of at most `size` rows."""
        return batches.micro_batches(source, indices, size, **self._padding)

    @cached_property
    def _padding(self) -> batches.Padding:
        # Accelerators like lengths in eights (and compile per length); a processor would only compute the padding.
        in_eights = self.engine.constant_rows or self.engine.device_memory_mb() is not None
        return {
            "pad_token_id": self.pad_token_id,
            "head": self.task.head,
            "length_multiple": 8 if in_eights else 1,
            "length_limit": self.facts["max_length"],
        }

    def score(
        self, rows: Rows, source: Features, batch_size: int, tick: Callable[[int, int], None] = lambda done, total: None
    ) -> Scored:
        """Predict every row and measure the labelled ones; `tick(done, total)` counts features."""
        started = time.perf_counter()
        answers = self._answers(source, batch_size, tick)
        outputs = batches.in_order(answers, source.lengths, self.task.head)
        predictions = self._decode(outputs, source, rows)
        return Scored(predictions, self.task.score(predictions, self.facts), time.perf_counter() - started)

    def _answers(
        self, source: Features, batch_size: int, tick: Callable[[int, int], None]
    ) -> Iterator[tuple[np.ndarray, dict[str, np.ndarray]]]:
        done = 0
        for indices, batch in batches.evaluation_batches(source, batch_size, **self._padding):
            yield indices, self.engine.evaluate(batch)
            done += len(indices)
            tick(done, len(source))

    def _decode(self, outputs: Outputs, source: Features, rows: Rows) -> Predictions:
        return self.task.decode(outputs, source.table, rows, self.columns, self.facts, self.tokenizer)
