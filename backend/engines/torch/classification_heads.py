"""Owns the heads that give a row, a token or a choice its logits: classes, a number, tags, choices."""

from typing import Any

import numpy as np
import torch
from torch.nn.functional import cross_entropy
from transformers import (
    AutoModelForMultipleChoice,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    PreTrainedConfig,
)

from backend.contract.heads import IGNORE, HeadFacts
from backend.engines.engine import Batch
from backend.engines.torch.inputs import arguments, ends_aligned, tensor


class _Logits:
    """A head whose model answers with the logits of each row, token or choice."""

    def __init__(self, facts: HeadFacts, label_smoothing: float, device: torch.device) -> None:
        self._smoothing, self._device = label_smoothing, device

    def answer(self, model: Any, batch: Batch) -> torch.Tensor:
        """Logits (batch, labels or choices)."""
        return model(**arguments(model, ends_aligned(model, batch), self._device)).logits

    def outputs(self, answer: torch.Tensor, batch: Batch) -> dict[str, np.ndarray]:
        """`logits`: (batch, labels) of rows, (batch,) of numbers, (batch, length, labels) of tokens, (batch, choices)."""
        return {"logits": answer.float().cpu().numpy()}


class SequenceClassification(_Logits):
    """One of several classes for each row."""

    def __init__(self, facts: HeadFacts, label_smoothing: float, device: torch.device) -> None:
        super().__init__(facts, label_smoothing, device)
        weights = facts.class_weights
        self._weights = None if weights is None else torch.tensor(weights, dtype=torch.float32, device=device)

    @staticmethod
    def model_class(config: PreTrainedConfig) -> Any:
        """Any architecture with such a head."""
        return AutoModelForSequenceClassification

    def loss(self, answer: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Cross-entropy, weighted by class."""
        labels = tensor(batch["labels"], self._device)
        return cross_entropy(
            answer.float(),
            labels,
            weight=self._weights,
            ignore_index=IGNORE,
            reduction="sum",
            label_smoothing=self._smoothing,
        )


class SequenceRegression(_Logits):
    """One number for each row."""

    @staticmethod
    def model_class(config: PreTrainedConfig) -> Any:
        """Any architecture that can classify rows: the number is its single output."""
        return AutoModelForSequenceClassification

    def answer(self, model: Any, batch: Batch) -> torch.Tensor:
        """Numbers (batch,), also of a single row: against labels (batch,) a column would broadcast to a square."""
        return super().answer(model, batch).squeeze(-1)

    def loss(self, answer: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Squared error; a label that is NaN is unknown."""
        known = ~np.isnan(batch["labels"])
        wanted = tensor(np.where(known, batch["labels"], 0).astype(np.float32), self._device)
        return ((answer.float() - wanted).square() * tensor(known, self._device)).sum()


class TokenClassification(_Logits):
    """One of several classes for each token."""

    @staticmethod
    def model_class(config: PreTrainedConfig) -> Any:
        """Any architecture with such a head."""
        return AutoModelForTokenClassification

    def answer(self, model: Any, batch: Batch) -> torch.Tensor:
        """Logits (batch, length, labels)."""
        return model(**arguments(model, batch, self._device)).logits

    def loss(self, answer: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Cross-entropy at every target."""
        labels = tensor(batch["labels"], self._device)
        return cross_entropy(
            answer.flatten(0, 1).float(),
            labels.flatten(),
            ignore_index=IGNORE,
            reduction="sum",
            label_smoothing=self._smoothing,
        )


class MultipleChoice(_Logits):
    """One of a row's choices; input arrays are (batch, choices, length)."""

    @staticmethod
    def model_class(config: PreTrainedConfig) -> Any:
        """Any architecture with such a head."""
        return AutoModelForMultipleChoice

    def loss(self, answer: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Cross-entropy over the choices."""
        labels = tensor(batch["labels"], self._device)
        return cross_entropy(
            answer.float(), labels, ignore_index=IGNORE, reduction="sum", label_smoothing=self._smoothing
        )
