"""Owns the question whether a model keeps packed texts apart; it is tried, for no table says it."""

from typing import Any

import torch

from backend.contract.errors import InputError
from backend.engines.engine import Batch
from backend.engines.torch.inputs import accepted, arguments

_TOKENS = 6
_ROUNDING = 1e-3
"""What one text alone and the same text behind another may differ by, as a part of the largest logit."""


def check_window(model: Any, batch: Batch) -> None:
    """Raises InputError where packing would let a token see farther back than its architecture lets it."""
    window = getattr(model.config, "sliding_window", None)
    if window and getattr(model.config, "use_sliding_window", True) and batch["input_ids"].shape[1] > window:
        raise _refusal(model, f"sees only {window} tokens back and packing would undo that")


def check_packing(model: Any, batch: Batch, device: torch.device) -> None:
    """Raises InputError where a text would see the one before it, or where its positions would not begin anew."""
    if not _keeps_apart(model, batch, device):
        raise _refusal(model, "cannot keep texts of one row apart")


@torch.inference_mode()
def _keeps_apart(model: Any, batch: Batch, device: torch.device) -> bool:
    if "position_ids" not in accepted(model):
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
            model(**arguments(model, part, device, causal=True), use_cache=False).logits for part in (packed, alone)
        )
    except (TypeError, ValueError, RuntimeError, IndexError):
        return False  # it knows no mask of this shape
    finally:
        model.train(trained)
    difference = (together[:, half:] - apart).abs().max()
    return bool(difference <= _ROUNDING * apart.abs().max())


def _refusal(model: Any, why: str) -> InputError:
    return InputError(
        f"task.packing: a {model.config.model_type} model {why}; set task.packing to false", "task.packing"
    )
