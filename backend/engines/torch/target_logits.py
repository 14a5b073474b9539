"""Computes logits over a vocabulary at target positions only, and converts them to float32 in parts."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.checkpoint import checkpoint

from backend.contract.heads import IGNORE
from backend.engines.torch.inputs import tensor

_CHUNK_ELEMENTS = 1 << 25
"""Logits (targets × vocabulary) whose float32 copy is held at once: 128 MiB."""


class TargetLogits:
    """Logits (targets, vocabulary) of the positions in a (batch, length) grid that have a label, and the labels."""

    def __init__(self, labels: np.ndarray, device: torch.device) -> None:
        self.shape = labels.shape
        places = np.flatnonzero(labels != IGNORE)
        # Without any target one place is computed and ignored: an empty loss would have no gradient to give.
        self._places = tensor(places if len(places) else np.zeros(1, dtype=np.int64), device)
        self.labels = tensor(labels.ravel(), device)[self._places]  # (targets,)
        self.logits = torch.empty(0)

    def compute(self, model: Any, forward: Callable[[], Any]) -> "TargetLogits":
        """Run the forward pass with only the targets in the last layer: a vocabulary is wide and targets may be few."""
        with self._select_targets(model.get_output_embeddings()) as seen:
            logits = forward().logits  # (1, targets, vocabulary), or (batch, length, vocabulary)
        flat = logits.flatten(0, -2)
        self.logits = flat if seen else flat[self._places]  # (targets, vocabulary)
        return self

    @contextmanager
    def _select_targets(self, last_layer: nn.Module | None) -> Iterator[list[bool]]:
        """Pass only the targets' hidden states to the last layer; the returned list is filled once that happened."""
        seen: list[bool] = []

        def select(module: nn.Module, given: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...] | None:
            if seen or not given or given[0].shape[:2] != self.shape:
                return None
            seen.append(True)
            hidden = given[0].flatten(0, 1)[self._places][None]  # (1, targets, hidden_size)
            return (hidden, *given[1:])

        handle = last_layer.register_forward_pre_hook(select) if last_layer is not None else None
        try:
            yield seen
        finally:
            if handle is not None:
                handle.remove()

    def loss(self, label_smoothing: float) -> torch.Tensor:
        """Summed cross-entropy, float32."""

        def total(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
            return cross_entropy(
                logits.float(), labels, ignore_index=IGNORE, reduction="sum", label_smoothing=label_smoothing
            )

        if len(self.labels) <= self._chunk:
            return total(self.logits, self.labels)
        # Recomputing a chunk's softmax in the backward pass keeps one float32 chunk instead of all of them.
        parts = [
            checkpoint(total, logits, labels, use_reentrant=False)
            for logits, labels in zip(self.logits.split(self._chunk), self.labels.split(self._chunk), strict=True)
        ]
        return torch.stack(parts).sum()

    def chunks(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Float32 logits and labels, in parts."""
        for logits, labels in zip(self.logits.split(self._chunk), self.labels.split(self._chunk), strict=True):
            yield logits.float(), labels

    def scatter(self, parts: list[torch.Tensor]) -> np.ndarray:
        """Values (targets, …) at their positions in the grid, zeros elsewhere. (batch, length, …)"""
        values = torch.cat(parts)  # (targets, …)
        places, known = self._places, self.labels != IGNORE
        grid = torch.zeros((self.shape[0] * self.shape[1], *values.shape[1:]), dtype=values.dtype, device=values.device)
        grid[places[known]] = values[known]
        return grid.view(*self.shape, *values.shape[1:]).cpu().numpy()  # (batch, length, …)

    @property
    def _chunk(self) -> int:
        return max(1, _CHUNK_ELEMENTS // self.logits.shape[-1])
