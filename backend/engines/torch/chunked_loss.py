"""Sums a cross-entropy over a wide vocabulary part by part, together with its gradients.

Were the gradients left to the backward pass, it would compute the logits of every part again: a third more work.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

from backend.contract.heads import IGNORE


@torch.no_grad()
def linear_cross_entropy(
    layer: nn.Linear, hidden: torch.Tensor, labels: torch.Tensor, rows: int, label_smoothing: float
) -> torch.Tensor:
    """The summed loss of hidden states (targets, hidden_size), whose logits are what `layer` returns; float32.

    The logits of `rows` targets become their gradient in the same memory, as softmax minus the wanted distribution.
    """
    kind = hidden.device.type
    dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else hidden.dtype
    weight = layer.weight.to(dtype)  # (vocabulary, hidden_size)
    trained = {name: each for name, each in layer.named_parameters() if each.requires_grad}
    found = {name: torch.zeros_like(each) for name, each in trained.items()}
    by_hidden = torch.empty_like(hidden, dtype=dtype) if hidden.requires_grad else None
    logits = hidden.new_empty((min(rows, len(labels)), len(weight)), dtype=torch.float32)
    narrow = logits if dtype is torch.float32 else torch.empty_like(logits, dtype=dtype)
    total = torch.zeros((), device=hidden.device)
    with torch.autocast(kind, enabled=False):
        for start in range(0, len(labels), rows):
            part = slice(start, start + rows)
            states, wanted = hidden[part].to(dtype), labels[part]  # (rows, hidden_size), (rows,)
            wide, given = logits[: len(wanted)], narrow[: len(wanted)]  # both (rows, vocabulary)
            torch.mm(states, weight.T, out=given)
            if layer.bias is not None:
                given += layer.bias.to(dtype)
            wide = given if wide.dtype is given.dtype else wide.copy_(given)
            total += _turn_into_gradient(wide, wanted, label_smoothing)
            given = wide if wide.dtype is given.dtype else given.copy_(wide)
            if by_hidden is not None:
                torch.mm(given, weight, out=by_hidden[part])
            if "weight" in found:
                _add_product(found["weight"], given.T, states)
            if "bias" in found:
                found["bias"] += wide.sum(0)
    gradients, tensors = [*found.values()], [*trained.values()]
    if by_hidden is not None:
        gradients, tensors = [*gradients, by_hidden.to(hidden.dtype)], [*tensors, hidden]
    with torch.enable_grad():
        return _KnownGradients.apply(total, gradients, *tensors)


def _turn_into_gradient(logits: torch.Tensor, labels: torch.Tensor, label_smoothing: float) -> torch.Tensor:
    """Replace logits (rows, vocabulary) by the gradient of their summed cross-entropy, which is returned."""
    known, places = labels != IGNORE, labels.clamp(min=0)[:, None]  # (rows,), (rows, 1)
    most, best = logits.max(dim=1, keepdim=True)  # (rows, 1) each
    wanted = logits.gather(1, places)  # (rows, 1)
    mean = logits.mean(dim=1, keepdim=True) if label_smoothing else 0.0
    torch.softmax(logits, dim=1, out=logits)
    logsumexp = most - logits.gather(1, best).log()  # the likeliest word's share is at least 1 / vocabulary
    loss = logsumexp - (1 - label_smoothing) * wanted - label_smoothing * mean  # (rows, 1)
    if label_smoothing:
        logits -= label_smoothing / logits.shape[1]
    logits.scatter_add_(1, places, torch.full_like(wanted, label_smoothing - 1))
    if logits.device.type != "cpu":
        logits.masked_fill_(~known[:, None], 0)  # to ask whether any is unknown would wait for the device
    elif not known.all():
        logits[~known] = 0
    return (loss.squeeze(1) * known).sum()


def _add_product(total: torch.Tensor, left: torch.Tensor, right: torch.Tensor) -> None:
    """Add a product to a total that may be more exact than the factors."""
    if total.dtype is left.dtype:
        total.addmm_(left, right)
    else:
        total += left @ right


def sum_with_gradients(
    loss_of: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    parts: Iterator[tuple[torch.Tensor, torch.Tensor]],
    hidden: torch.Tensor,
) -> torch.Tensor:
    """The summed loss of all parts of hidden states and labels, for any function of them."""
    total = torch.zeros((), device=hidden.device)
    weights: list[torch.Tensor] = []
    by_hidden: list[torch.Tensor] = []
    by_weight: list[torch.Tensor] = []
    for states, labels in parts:
        states = states.detach().requires_grad_(hidden.requires_grad)
        loss = loss_of(states, labels)
        weights = weights or [leaf for leaf in _leaves(loss) if leaf is not states]
        found = list(torch.autograd.grad(loss, [*weights, states] if hidden.requires_grad else weights))
        if hidden.requires_grad:
            by_hidden.append(found.pop())
        if by_weight:
            for summed in reversed(by_weight):
                summed += found.pop()  # the last reference: one vocabulary-sized gradient less
        else:
            by_weight = [each.contiguous() for each in found]
        total += loss.detach()
    if hidden.requires_grad:
        weights, by_weight = [*weights, hidden], [*by_weight, torch.cat(by_hidden)]
    return _KnownGradients.apply(total, by_weight, *weights)


def _leaves(loss: torch.Tensor) -> list[torch.Tensor]:
    """The tensors that gradients of the loss can be taken of."""
    nodes, seen, found = [loss.grad_fn], set(), []
    while nodes:
        node = nodes.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if (leaf := getattr(node, "variable", None)) is not None:
            found.append(leaf)
        nodes += [following for following, _ in node.next_functions]
    return found


class _KnownGradients(torch.autograd.Function):
    """A number whose gradients by the given tensors are known; the list of them is emptied when they are used."""

    @staticmethod
    def forward(ctx: Any, number: torch.Tensor, gradients: list[torch.Tensor], *tensors: torch.Tensor) -> torch.Tensor:
        ctx.gradients = gradients
        return number.clone()

    @staticmethod
    def backward(ctx: Any, *grad_outputs: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        # A parameter takes over a gradient that nothing else refers to, and copies any other.
        return (None, None, *(ctx.gradients.pop(0).mul_(grad_outputs[0]) for _ in range(len(ctx.gradients))))
