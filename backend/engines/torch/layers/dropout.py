"""Dropout on a CPU from fast random bits: PyTorch's own draws one number after another, a third of a step of BERT's."""

from typing import Any

import numpy as np
import torch
from torch import nn

from backend.engines.torch.random_bits import draw_bits

_STEPS = 1 << 16
"""Each element is decided by 16 bits."""


def dropout(values: torch.Tensor, probability: float) -> torch.Tensor:
    """Zero each element with this probability, to 1/65,536, and scale the others so that the mean stays.

    A step's seed decides which, and a layer that is computed again in the backward pass draws the same.
    """
    dropped = round(probability * _STEPS)
    if dropped >= _STEPS:
        return values * 0
    kept = torch.from_numpy(draw_bits(values.numel()).view(np.int16) >= dropped - _STEPS // 2).view(values.shape)
    return _Dropout.apply(values, kept, _STEPS / (_STEPS - dropped))


class _Dropout(torch.autograd.Function):
    """Keeps one byte of each element for the backward pass, as PyTorch's own does."""

    @staticmethod
    def forward(ctx: Any, values: torch.Tensor, kept: torch.Tensor, scale: float) -> torch.Tensor:
        ctx.save_for_backward(kept)
        ctx.scale = scale
        return values * _factors(kept, scale, values.dtype)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        (kept,) = ctx.saved_tensors
        return gradients[0] * _factors(kept, ctx.scale, gradients[0].dtype), None, None


def _factors(kept: torch.Tensor, scale: float, dtype: torch.dtype) -> torch.Tensor:
    return kept.view(torch.uint8).to(dtype).mul_(scale)  # bytes become numbers six times as fast as booleans do


class FastDropout(nn.Dropout):
    """`nn.Dropout` with the same arguments."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """The same on a CPU from other random numbers."""
        return (
            dropout(input, self.p)
            if self.training and self.p and input.device.type == "cpu"
            else super().forward(input)
        )


def speed_up_dropout(model: nn.Module) -> None:
    """Let every `nn.Dropout` of the model draw fast."""
    for module in model.modules():
        if type(module) is nn.Dropout and not module.inplace:
            module.__class__ = FastDropout


def attend_with_dropout(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    probability: float,
    scaling: float | None,
    *,
    is_causal: bool,
) -> torch.Tensor:
    """Scaled dot-product attention with dropout; for which PyTorch has no fused kernel on a CPU either.

    query (heads, rows, length, head_size), key and value the same or with fewer heads; mask (rows, length or 1, length)
    as PyTorch has it: boolean, or added to the scores. Rows may be padded at their ends: if the query is causal, it sees
    no padding there, with or without a mask.
    """
    groups = len(query) // len(key)
    if groups > 1:
        key, value = (each.repeat_interleave(groups, dim=0) for each in (key, value))
    length = query.shape[2]
    scores = query * (query.shape[-1] ** -0.5 if scaling is None else scaling) @ key.transpose(-1, -2)
    # Not infinity: a row of padding that sees nothing would be NaN, and so would be the gradients of what it sees.
    least = torch.finfo(scores.dtype).min
    if is_causal and (mask is None or mask.shape[1] == 1):
        mask = torch.full((length, length), least).triu_(1)
    elif mask is not None and mask.dtype is torch.bool:
        mask = torch.zeros(mask.shape).masked_fill_(~mask, least)
    if mask is not None:
        scores += mask  # (heads, rows, length, length)
    return dropout(scores.softmax(dim=-1), probability) @ value  # (heads, rows, length, head_size)
