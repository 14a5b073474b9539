"""Turns a numpy batch into a model's arguments, and checks beforehand that a model keeps packed texts apart."""

import inspect
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import nn

from backend.contract.errors import InputError
from backend.contract.heads import IGNORE
from backend.contract.messages import message
from backend.engines.engine import Batch

_BY_TOKEN = ("input_ids", "attention_mask", "token_type_ids")

PART_TOKENS = 64
"""What a pass costs beside its tokens, in tokens: more parts than pay for that are not made."""
_TOKENS = 6
_ROUNDING = 1e-3
"""What one text alone and the same text behind another may differ by, as a part of the largest logit."""


def valid_rows(batch: Batch) -> Batch:
    """The batch without its filler rows."""
    valid = batch["row_valid"]
    if valid.all():
        return batch
    return {name: array[valid] for name, array in batch.items()}


def split_by_length(batch: Batch) -> list[Batch]:
    """The rows of an encoder-decoder's batch in a few parts of like length, each without the padding that longer rows need.

    Its layers compute all padding of a batch. Which rows are in which part follows from the batch alone.
    """
    present, targets = batch["attention_mask"] > 0, batch["labels"] != IGNORE
    sources, answers = present.sum(axis=1), targets.sum(axis=1)  # (rows,)
    order = np.argsort(sources + answers, kind="stable")
    sources, answers = sources[order], answers[order]
    best, starts = np.zeros(len(order) + 1), np.zeros(len(order) + 1, dtype=int)
    for end in range(1, len(order) + 1):  # the cheapest parts of the `end` shortest rows
        longest = [np.maximum.accumulate(each[:end][::-1])[::-1] for each in (sources, answers)]
        costs = best[:end] + np.arange(end, 0, -1) * (longest[0] + longest[1]) + PART_TOKENS
        starts[end] = costs.argmin()
        best[end] = costs[starts[end]]
    parts, end = list[Batch](), len(order)
    while end:
        parts.append(_trim(batch, order[starts[end] : end], present, targets))
        end = starts[end]
    return parts


def _trim(batch: Batch, rows: np.ndarray, present: np.ndarray, targets: np.ndarray) -> Batch:
    """These rows, without columns at the end that are padding in all of them."""
    own = {name: array[rows] for name, array in batch.items()}
    length, answer_length = (np.flatnonzero(each[rows].any(axis=0)).max(initial=0) + 1 for each in (present, targets))
    shorter = {name: own[name][:, :length] for name in _BY_TOKEN if name in own}
    return {**own, **shorter, "labels": own["labels"][:, :answer_length]}


def model_inputs(model: Any, batch: Batch, device: torch.device, causal: bool = False) -> dict[str, torch.Tensor]:
    """The arguments of the model's forward pass for a batch without filler rows."""
    given = {"input_ids": tensor(batch["input_ids"], device)}
    if "token_type_ids" in batch and "token_type_ids" in forward_arguments(
        model
    ):  # a tokenizer may make what T5 has no use for
        given["token_type_ids"] = tensor(batch["token_type_ids"], device)
    if "segment" in batch:
        segment, mask = tensor(batch["segment"], device), tensor(batch["attention_mask"], device)
        seen = _segment_mask(segment, mask, causal)
        given["attention_mask"] = seen if model.config._attn_implementation == "sdpa" else _to_add(seen)
        given["position_ids"] = tensor(batch["position"], device)
    elif not batch["attention_mask"].all():  # a mask that masks nothing costs the fast attention path
        given["attention_mask"] = tensor(batch["attention_mask"], device)
    return given


def forward_arguments(model: Any) -> frozenset[str]:
    """The argument names that the model's forward pass accepts."""
    inner = model.get_base_model() if hasattr(model, "get_base_model") else model  # an adapter's wrapper takes anything
    return _parameters(type(inner))


@cache
def _parameters(kind: type[nn.Module]) -> frozenset[str]:
    return frozenset(inspect.signature(kind.forward).parameters)


def align_ends(model: Any, batch: Batch) -> Batch:
    """The batch padded on the left if the model summarises a row by its last position, as XLNet does."""
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
    """The array on the device; on a CPU without a copy.

    CUDA would wait for what it computes before it copies from memory that the system may move elsewhere. Other
    devices' copies are waited for: the array may be gone before (on MPS, https://github.com/pytorch/pytorch/issues/189690).
    """
    made = torch.from_numpy(np.ascontiguousarray(array))
    if device.type == "cuda":
        return made.pin_memory().to(device, non_blocking=True)  # whose memory is kept, and used again after the copy
    return made.to(device)


def _to_add(seen: torch.Tensor) -> torch.Tensor:
    # Attention without torch's fused kernels adds its mask to the scores.
    return torch.zeros(seen.shape, device=seen.device).masked_fill(~seen, torch.finfo(torch.float32).min)


def _segment_mask(segment: torch.Tensor, attention_mask: torch.Tensor, causal: bool) -> torch.Tensor:
    # (batch, 1, length, length): a token sees its own segment, and itself always, so that no row is masked wholly.
    length, device = segment.shape[1], segment.device
    seen = (segment[:, :, None] == segment[:, None, :]) & (attention_mask[:, None, :] != 0)  # (batch, length, length)
    if causal:
        seen &= torch.ones(length, length, dtype=torch.bool, device=device).tril()
    return (seen | torch.eye(length, dtype=torch.bool, device=device))[:, None]  # (batch, 1, length, length)


def check_window(model: Any, batch: Batch) -> None:
    """Raises InputError if packing would let a token see farther back than its architecture allows."""
    window = getattr(model.config, "sliding_window", None)
    if window and getattr(model.config, "use_sliding_window", True) and batch["input_ids"].shape[1] > window:
        raise _packing_error(
            model, message("sees only {window} tokens back, and packing would break this limit", window=window)
        )


def check_packing(model: Any, batch: Batch, device: torch.device) -> None:
    """Raises InputError if a text would see the one before it, or if its positions would not restart."""
    if not _keeps_apart(model, batch, device):
        raise _packing_error(model, message("cannot keep the texts in one packed row separate"))


@torch.no_grad()
def _keeps_apart(model: Any, batch: Batch, device: torch.device) -> bool:
    if "position_ids" not in forward_arguments(model):
        return False
    # Tokens of the batch itself: no others need be in place where the word embedding is trained by rows.
    few = {name: batch[name][:1, :_TOKENS] for name in ("input_ids", "attention_mask")}
    few["attention_mask"] = few["attention_mask"] * 0 + 1
    half = few["input_ids"].shape[1] // 2
    place = few["attention_mask"].cumsum(axis=1) - 1
    second = place >= half
    packed = few | {"segment": second.astype(int), "position": place - half * second}
    alone = {name: array[:, half:] for name, array in packed.items()}
    trained = model.training
    model.eval()
    try:
        together, apart = (
            model(**model_inputs(model, part, device, causal=True), use_cache=False).logits for part in (packed, alone)
        )
    except (TypeError, ValueError, RuntimeError, IndexError):
        return False  # it knows no mask of this shape
    finally:
        model.train(trained)
    difference = (together[:, half:] - apart).abs().max()
    return bool(difference <= _ROUNDING * apart.abs().max())


def _packing_error(model: Any, why: str) -> InputError:
    return InputError(
        "task.packing: a {model_type} model {why}; set task.packing to false",
        "task.packing",
        model_type=model.config.model_type,
        why=why,
    )
