"""Owns how the torch engine puts a model in place: on its device, with what trains."""

from pathlib import Path

import torch
from transformers import PreTrainedModel

from backend.engines.engine import Loaded, Loading
from backend.engines.torch.heads import HEADS
from backend.engines.torch_layers import freeze
from backend.engines.transformers_model import Kind, open_model


def load_model(loading: Loading) -> tuple[PreTrainedModel, Loaded]:
    """The model on its device with float32 weights. Raises InputError where spec and model do not go together."""
    kind = Kind(HEADS[loading.head.head].model_class, "sdpa", _take_stored)
    model, account = open_model(loading, kind)
    model.to(torch.device(loading.devices[0]))  # type: ignore[arg-type]
    _make_trainable(model, loading)
    return model, account.stated(model)


def _take_stored(model: PreTrainedModel, folder: Path) -> set[str]:
    from backend.engines.torch.adapters import take_stored  # PEFT takes a second to import

    return take_stored(model, folder)


def _make_trainable(model: PreTrainedModel, loading: Loading) -> None:
    training = loading.training
    if training is None:
        model.requires_grad_(False)
        return
    freeze(model, loading.model.frozen)
    if training.gradient_checkpointing:
        # Newer releases of transformers give the same switch another name.
        newer = getattr(model, "activation_checkpointing_enable", None)
        (newer or model.gradient_checkpointing_enable)({"use_reentrant": False})
