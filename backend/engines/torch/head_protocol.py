"""Owns what a head is to the torch engine: a model class, a forward pass, a loss and outputs, all in one place."""

from typing import Any, Protocol

import numpy as np
import torch
from transformers import PreTrainedConfig

from backend.contract.heads import HeadFacts
from backend.engines.engine import Batch


class TorchHead(Protocol):
    """One head of `backend.contract.heads` in PyTorch. Batches come without filler rows."""

    def __init__(self, facts: HeadFacts, label_smoothing: float, device: torch.device) -> None: ...

    @staticmethod
    def model_class(config: PreTrainedConfig) -> Any:
        """What has `from_pretrained` and `from_config` for this head. Raises InputError where there is none."""
        ...

    def answer(self, model: Any, batch: Batch) -> Any:
        """The forward pass; the caller decides about autocast, gradients and dropout (`model.training`)."""
        ...

    def loss(self, answer: Any, batch: Batch) -> torch.Tensor:
        """The summed loss of an answer that was given in training, float32; the caller divides by the step's targets."""
        ...

    def outputs(self, answer: Any, batch: Batch) -> dict[str, np.ndarray]:
        """What `Engine.evaluate` returns of an answer that was not given in training."""
        ...
