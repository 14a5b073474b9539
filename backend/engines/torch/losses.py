"""Owns each head's loss, as a sum over targets, and what `evaluate` returns of the model's logits."""

import numpy as np
import torch
from torch.nn.functional import cross_entropy
from torch.utils.checkpoint import checkpoint

from backend.contract.heads import IGNORE, Head, HeadFacts
from backend.engines.engine import Batch
from backend.engines.torch.inputs import tensor

_CHUNK_ELEMENTS = 1 << 25
"""Logits (positions × vocabulary) whose float32 copy is held at once: 128 MiB."""


class HeadLoss:
    """The loss of one head. The caller divides its sum by the targets of the whole step."""

    def __init__(self, facts: HeadFacts, label_smoothing: float, device: torch.device) -> None:
        self._head, self._smoothing, self._device = facts.head, label_smoothing, device
        weights = facts.class_weights
        self._weights = None if weights is None else torch.tensor(weights, dtype=torch.float32, device=device)

    def total(self, logits: torch.Tensor, batch: Batch) -> torch.Tensor:
        """The summed loss of a batch without filler rows, float32, differentiable."""
        if self._head is Head.CAUSAL_LM:
            return self._next_token_loss(logits, tensor(next_labels(batch["labels"]), self._device))
        return cross_entropy(
            logits.float(),
            tensor(batch["labels"], self._device),
            weight=self._weights,
            reduction="sum",
            label_smoothing=self._smoothing,
        )

    def _next_token_loss(self, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        flat, targets = logits.flatten(0, 1), labels.flatten()
        rows = max(1, _CHUNK_ELEMENTS // flat.shape[1])
        if len(flat) <= rows:
            return self._token_sum(flat, targets)
        # Recomputing a chunk's softmax in the backward pass keeps one float32 chunk instead of all of them.
        parts = [
            checkpoint(self._token_sum, part, wanted, use_reentrant=False)
            for part, wanted in zip(flat.split(rows), targets.split(rows), strict=True)
        ]
        return torch.stack(parts).sum()

    def _token_sum(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return cross_entropy(
            logits.float(), targets, ignore_index=IGNORE, reduction="sum", label_smoothing=self._smoothing
        )


def next_labels(labels: np.ndarray) -> np.ndarray:
    """The label that each position predicts: the next one, and none at the end. (batch, length)"""
    # Labels are shifted rather than logits, whose slice would be a copy.
    return np.concatenate([labels[:, 1:], np.full_like(labels[:, :1], IGNORE)], axis=1)


def outputs(head: Head, logits: torch.Tensor, batch: Batch) -> dict[str, np.ndarray]:
    """What `evaluate` returns for a batch without filler rows, as `backend.contract.heads` fixes it."""
    if head is Head.CAUSAL_LM:
        return _token_outputs(logits, batch)
    return {"logits": logits.float().cpu().numpy()}


def _token_outputs(logits: torch.Tensor, batch: Batch) -> dict[str, np.ndarray]:
    rows, length, vocabulary = logits.shape
    targets = tensor(next_labels(batch.get("labels", batch["input_ids"])), logits.device).flatten()
    loss = torch.empty(rows * length, dtype=torch.float32, device=logits.device)
    prediction = torch.empty(rows * length, dtype=torch.int32, device=logits.device)
    size = max(1, _CHUNK_ELEMENTS // vocabulary)
    for start in range(0, rows * length, size):
        part = logits.flatten(0, 1)[start : start + size].float()
        here = slice(start, start + len(part))
        loss[here] = cross_entropy(part, targets[here], ignore_index=IGNORE, reduction="none")
        prediction[here] = part.argmax(dim=1)
    return {
        "token_loss": _moved_to_target(loss.view(rows, length)),
        "token_prediction": _moved_to_target(prediction.view(rows, length)),
    }


def _moved_to_target(values: torch.Tensor) -> np.ndarray:
    # What position i says of its successor belongs to position i + 1; position 0 is nobody's successor.
    moved = torch.zeros_like(values)
    moved[:, 1:] = values[:, :-1]
    return moved.cpu().numpy()
