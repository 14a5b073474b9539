"""Runs a model's forward pass again from its output layer on, for other hidden states.

What a model does behind its output layer (a scale, a soft cap, a bias, a cut vocabulary) stands in its own forward
pass. So this pass runs again, with every module in front of the output layer returning what it returned before.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

_ROUNDING = 0.02
"""What a position's logits may differ by when computed alone: two steps of bfloat16, as a part of the largest."""


class ModelTail:
    """The part of one forward pass from the output layer on."""

    def __init__(self, model: nn.Module, layer: nn.Module, forward: Callable[[], Any]) -> None:
        self._layer, self._forward = layer, forward
        self._before = _siblings(model, layer)
        self._returned: dict[nn.Module, list[Any]] = {}
        kind = device_of(model).type
        dtype, enabled = torch.get_autocast_dtype(kind), torch.is_autocast_enabled(kind)
        self._autocast = lambda: torch.autocast(kind, dtype=dtype, enabled=enabled)
        self.float16 = enabled and dtype is torch.float16

    def hidden(self, shape: tuple[int, ...], places: torch.Tensor) -> torch.Tensor | None:
        """Run the whole pass. (places, hidden_size), or None if no states of this (batch, length) reach the layer.

        The output layer itself gets only one of them, so that no wide logits exist.
        """
        found: list[torch.Tensor] = []

        def select(module: nn.Module, given: tuple[Any, ...]) -> tuple[Any, ...] | None:
            if found or not given or given[0].shape[:2] != shape:
                return None
            found.append(given[0].flatten(0, 1)[places])  # (places, hidden_size)
            return (found[0][:1].detach()[None], *given[1:])  # (1, 1, hidden_size)

        def keep(module: nn.Module, given: Any, returned: Any) -> None:
            if not found:
                self._returned.setdefault(module, []).append(returned)

        handles = [module.register_forward_hook(keep) for module in self._before]
        handles.append(self._layer.register_forward_pre_hook(select))
        training = self._layer.training
        self._layer.train(False)  # an adapter's dropout here must not draw for a result that nobody needs
        try:
            self._forward()
        finally:
            self._layer.train(training)
            for handle in handles:
                handle.remove()
        return found[0] if found else None

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Logits (places, vocabulary) of hidden states (places, hidden_size)."""
        tracked, replaced = torch.is_grad_enabled(), []

        def replace(module: nn.Module, given: tuple[Any, ...]) -> tuple[Any, ...] | None:
            if replaced:
                return None
            replaced.append(True)
            torch.set_grad_enabled(tracked)
            return (hidden[None], *given[1:])  # (1, places, hidden_size)

        handle = self._layer.register_forward_pre_hook(replace)
        try:
            # Nothing is tracked until the output layer: what comes before is repeated only for its shapes.
            with self._repeat_returned(), torch.no_grad():
                return self._forward().logits.flatten(0, -2)
        finally:
            handle.remove()

    @contextmanager
    def autocast(self) -> Iterator[None]:
        """The autocast in which this tail was made."""
        with self._autocast():
            yield

    @contextmanager
    def _repeat_returned(self) -> Iterator[None]:
        own = {module: module.__dict__.get("forward") for module in self._returned}
        for module, returned in self._returned.items():
            calls = iter(returned)
            module.forward = lambda *_, calls=calls, **__: next(calls)  # type: ignore[method-assign]
        try:
            yield
        finally:
            for module, forward in own.items():
                del module.forward
                if forward is not None:
                    module.forward = forward  # type: ignore[method-assign]


def device_of(model: nn.Module) -> torch.device:
    """Where the model computes: those of a sharded model may wait elsewhere."""
    return getattr(model, "computes_on", None) or next(model.parameters()).device


def _siblings(model: nn.Module, layer: nn.Module) -> list[nn.Module]:
    """The modules that the layer's parents call besides it; empty if the layer is not in the model."""
    names = [name for name, module in model.named_modules() if module is layer]
    if not names:
        return []
    parts = names[0].split(".")
    parents = [model.get_submodule(".".join(parts[:depth])) for depth in range(len(parts))]
    inside = {*parents, layer}
    return [child for parent in parents for child in parent.children() if child not in inside]


@torch.no_grad()
def can_repeat(model: nn.Module, forward: Callable[[], Any], shape: tuple[int, int]) -> bool:
    """Whether a tail yields the logits of the model's own forward pass over a batch of this (batch, length).

    The model must be in evaluation mode.
    """
    layer = model.get_output_embeddings()  # type: ignore[operator]
    if layer is None:
        return False
    places = torch.arange(shape[0] * shape[1], device=device_of(model))
    try:
        whole = forward().logits.flatten(0, -2)  # (places, vocabulary)
        tail = ModelTail(model, layer, forward)
        hidden = tail.hidden(shape, places)
        if hidden is None:
            return False
        parts = torch.cat([tail.logits(part) for part in hidden.tensor_split(2) if len(part)])
    except (TypeError, ValueError, RuntimeError, IndexError, AttributeError):
        return False  # it does more with its logits than to transform each position's
    return parts.shape == whole.shape and bool((parts - whole).abs().max() <= _ROUNDING * whole.abs().max())


@torch.no_grad()
def ends_linear(model: nn.Module, forward: Callable[[], Any]) -> bool:
    """Whether the model's logits are exactly what its output layer returns, and this is a linear layer and no more."""
    layer = model.get_output_embeddings()  # type: ignore[operator]
    if type(layer) is not nn.Linear or ("forward" in vars(layer) and layer.weight.requires_grad):
        return False
    returned: list[torch.Tensor] = []

    def replace(module: nn.Module, given: tuple[torch.Tensor, ...], logits: torch.Tensor) -> torch.Tensor:
        spread = torch.linspace(-1000, 1000, logits.numel(), device=logits.device)  # no cap leaves such values
        returned.append(spread.to(logits.dtype).view_as(logits))
        return returned[-1]

    handle = layer.register_forward_hook(replace)
    try:
        logits = forward().logits
    finally:
        handle.remove()
    return len(returned) == 1 and logits.shape == returned[0].shape and torch.equal(logits.float(), returned[0].float())


def trains_before(model: nn.Module, layer: nn.Module) -> bool:
    """Whether any weight trains besides those of this layer."""
    own = {id(each) for each in layer.parameters()}
    return any(each.requires_grad and id(each) not in own for each in model.parameters())
