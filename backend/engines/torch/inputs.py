"""Owns the way from a numpy batch to a model's arguments: filler rows out, masks only where something is masked."""

import numpy as np
import torch

from backend.engines.engine import Batch


def valid_rows(batch: Batch) -> Batch:
    """The batch without its filler rows, which take part in nothing."""
    valid = batch["row_valid"]
    if valid.all():
        return batch
    return {name: array[valid] for name, array in batch.items()}


def arguments(batch: Batch, device: torch.device, causal: bool = False) -> dict[str, torch.Tensor]:
    """What the model's forward takes of a batch without filler rows."""
    given = {"input_ids": tensor(batch["input_ids"], device)}
    if "token_type_ids" in batch:
        given["token_type_ids"] = tensor(batch["token_type_ids"], device)
    if "segment" in batch:
        given["attention_mask"] = tensor(_segment_mask(batch["segment"], batch["attention_mask"], causal), device)
        given["position_ids"] = tensor(batch["position"], device)
    elif not batch["attention_mask"].all():  # a mask that masks nothing costs the fast attention path
        given["attention_mask"] = tensor(batch["attention_mask"], device)
    return given


def tensor(array: np.ndarray, device: torch.device) -> torch.Tensor:
    """The array on the device; on a processor without a copy."""
    made = torch.from_numpy(np.ascontiguousarray(array))
    return made if device.type == "cpu" else made.to(device, non_blocking=True)


def _segment_mask(segment: np.ndarray, attention_mask: np.ndarray, causal: bool) -> np.ndarray:
    # (batch, 1, length, length): a token sees its own segment, and itself always, so that no row is masked wholly.
    length = segment.shape[1]
    seen = (segment[:, :, None] == segment[:, None, :]) & (attention_mask[:, None, :] != 0)
    if causal:
        seen &= np.tril(np.ones((length, length), dtype=bool))
    return (seen | np.eye(length, dtype=bool))[:, None]
