"""Computes logits over a vocabulary at target positions only, a part of them at a time."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.checkpoint import checkpoint

from backend.contract.heads import IGNORE
from backend.engines.allocator import return_large_blocks
from backend.engines.torch import TorchEntry
from backend.engines.torch.chunked_loss import linear_cross_entropy, sum_with_gradients
from backend.engines.torch.inputs import tensor
from backend.engines.torch.model_tail import ModelTail

_CHUNK_ELEMENTS = TorchEntry.logits_at_once
"""Logits (targets × vocabulary) that are held at once: 128 MiB in float32."""


class TargetLogits:
    """Logits (targets, vocabulary) of the positions in a (batch, length) grid that have a label, and the labels."""

    def __init__(self, labels: np.ndarray, device: torch.device) -> None:
        self.shape = labels.shape
        places = np.flatnonzero(labels != IGNORE)
        # Without any target one place is computed and ignored: an empty loss would have no gradient to give.
        self._places = tensor(places if len(places) else np.zeros(1, dtype=np.int64), device)
        self.labels = tensor(labels.ravel(), device)[self._places]  # (targets,)
        self._states = torch.empty(0)  # logits (targets, vocabulary), or hidden states (targets, hidden_size)
        self._tail: ModelTail | None = None  # turns hidden states into logits
        self._layer: nn.Linear | None = None  # set if the logits are what this layer returns, unchanged
        self._chunk = len(self.labels)  # targets whose logits are held at once

    def exceed_chunk(self, model: Any) -> bool:
        """Whether the logits of all targets are too many to be held at once."""
        vocabulary = getattr(model.config.get_text_config(decoder=True), "vocab_size", 0)
        return len(self.labels) * vocabulary > _CHUNK_ELEMENTS

    def compute(self, model: Any, forward: Callable[[], Any]) -> "TargetLogits":
        """Run the forward pass with only the targets in the last layer: a vocabulary is wide and targets may be few."""
        with self._select_targets(model.get_output_embeddings()) as seen:
            logits = forward().logits  # (1, targets, vocabulary), or (batch, length, vocabulary)
        flat = logits.flatten(0, -2)
        self._states = flat if seen else flat[self._places]  # (targets, vocabulary)
        self._chunk = max(1, _CHUNK_ELEMENTS // flat.shape[-1])
        return self

    def postpone(self, model: Any, forward: Callable[[], Any], *, ends_linear: bool) -> "TargetLogits":
        """Run the forward pass up to the last layer, of a model that `can_repeat`; logits are computed when used."""
        self._tail = ModelTail(model, model.get_output_embeddings(), forward)
        hidden = self._tail.hidden(self.shape, self._places)
        if hidden is None:  # the last layer saw another shape than when it was tried
            self._tail = None
            return self.compute(model, forward)
        self._layer = model.get_output_embeddings() if ends_linear else None
        self._states = hidden  # (targets, hidden_size)
        self._chunk = max(1, _CHUNK_ELEMENTS // model.config.get_text_config(decoder=True).vocab_size)
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

        def total(states: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
            return cross_entropy(
                self._logits(states), labels, ignore_index=IGNORE, reduction="sum", label_smoothing=label_smoothing
            )

        with self._surroundings():
            if len(self.labels) <= self._chunk:
                return total(self._states, self.labels)
            if self._tail is not None and not self._tail.float16:  # whose gradients need the backward pass's scale
                if self._layer is not None:
                    return linear_cross_entropy(self._layer, self._states, self.labels, self._chunk, label_smoothing)
                return sum_with_gradients(total, self._parts(), self._states)
            # Recomputing a chunk in the backward pass keeps one chunk instead of all of them.
            parts = [checkpoint(total, *part, use_reentrant=False) for part in self._parts()]
            return torch.stack(parts).sum()

    def chunks(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Float32 logits and labels, in parts."""
        with self._surroundings():
            for states, labels in self._parts():
                yield self._logits(states), labels

    def scatter(self, parts: list[torch.Tensor]) -> np.ndarray:
        """Values (targets, …) at their positions in the grid, zeros elsewhere. (batch, length, …)"""
        values = torch.cat(parts)  # (targets, …)
        places, known = self._places, self.labels != IGNORE
        grid = torch.zeros((self.shape[0] * self.shape[1], *values.shape[1:]), dtype=values.dtype, device=values.device)
        grid[places[known]] = values[known]
        return grid.view(*self.shape, *values.shape[1:]).cpu().numpy()  # (batch, length, …)

    def _logits(self, states: torch.Tensor) -> torch.Tensor:
        if self._layer is not None:  # what the model would do in front of it again, some models do in full
            return self._layer(states).float()  # (targets, vocabulary)
        return (states if self._tail is None else self._tail.logits(states)).float()  # (targets, vocabulary)

    def _parts(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        return zip(self._states.split(self._chunk), self.labels.split(self._chunk), strict=True)

    @contextmanager
    def _surroundings(self) -> Iterator[None]:
        """What logits that were postponed are computed in: the forward pass's autocast, and an allocator for parts."""
        if self._tail is None:
            yield
            return
        with self._tail.autocast(), return_large_blocks() if self._states.device.type == "cpu" else nullcontext():
            yield
