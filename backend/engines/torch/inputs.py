"""Owns the way from a numpy batch to a model's arguments: filler rows out, masks only where something is masked."""

import inspect
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import nn

from backend.engines.engine import Batch

_BY_TOKEN = ("input_ids", "attention_mask", "token_type_ids")


def valid_rows(batch: Batch) -> Batch:
    """The batch without its filler rows, which take part in nothing."""
    valid = batch["row_valid"]
    if valid.all():
        return batch
    return {name: array[valid] for name, array in batch.items()}


def arguments(model: Any, batch: Batch, device: torch.device, causal: bool = False) -> dict[str, torch.Tensor]:
    """What the model's forward takes of a batch without filler rows."""
    given = {"input_ids": tensor(batch["input_ids"], device)}
    if "token_type_ids" in batch and "token_type_ids" in accepted(model):  # a tokenizer may make what T5 has no use for
        given["token_type_ids"] = tensor(batch["token_type_ids"], device)
    if "segment" in batch:
        seen = tensor(_segment_mask(batch["segment"], batch["attention_mask"], causal), device)
        given["attention_mask"] = seen if model.config._attn_implementation == "sdpa" else _to_add(seen)
        given["position_ids"] = tensor(batch["position"], device)
    elif not batch["attention_mask"].all():  # a mask that masks nothing costs the fast attention path
        given["attention_mask"] = tensor(batch["attention_mask"], device)
    return given


def accepted(model: Any) -> frozenset[str]:
    """The names of the arguments that the model's forward pass knows."""
    inner = model.get_base_model() if hasattr(model, "get_base_model") else model  # an adapter's wrapper takes anything
    return _parameters(type(inner))


@cache
def _parameters(kind: type[nn.Module]) -> frozenset[str]:
    return frozenset(inspect.signature(kind.forward).parameters)


def ends_aligned(model: Any, batch: Batch) -> Batch:
    """The batch padded on the left where the model sums a row up by its last place, as XLNet does."""
    config = model.config
    if config.model_type != "xlnet" or getattr(config, "summary_type", "") != "last" or batch["attention_mask"].all():
        return batch
    mask = batch["attention_mask"]  # (…, length)
    length = mask.shape[-1]
    padded_right = mask[..., -1:] == 0
    places = (np.arange(length) + mask.sum(axis=-1, keepdims=True) * padded_right) % length
    moved = {name: np.take_along_axis(batch[name], places, axis=-1) for name in _BY_TOKEN if name in batch}
    return {**batch, **moved}


def tensor(array: np.ndarray, device: torch.device) -> torch.Tensor:
    """The array on the device; on a processor without a copy."""
    made = torch.from_numpy(np.ascontiguousarray(array))
    return made if device.type == "cpu" else made.to(device, non_blocking=True)


def _to_add(seen: torch.Tensor) -> torch.Tensor:
    # Attention without torch's fused kernels adds its mask to the scores.
    return torch.zeros(seen.shape, device=seen.device).masked_fill(~seen, torch.finfo(torch.float32).min)


def _segment_mask(segment: np.ndarray, attention_mask: np.ndarray, causal: bool) -> np.ndarray:
    # (batch, 1, length, length): a token sees its own segment, and itself always, so that no row is masked wholly.
    length = segment.shape[1]
    seen = (segment[:, :, None] == segment[:, None, :]) & (attention_mask[:, None, :] != 0)
    if causal:
        seen &= np.tril(np.ones((length, length), dtype=bool))
    return (seen | np.eye(length, dtype=bool))[:, None]
