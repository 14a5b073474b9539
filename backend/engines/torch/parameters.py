"""Owns what of a torch module trains, at which rate, and what of it decays."""

from collections.abc import Iterator

from torch import nn

from backend.engines.layer_depth import Standing


def standing(model: nn.Module) -> Standing:
    """Where the model's parameters stand."""
    inside = {id(each) for each in getattr(model, "base_model", model).parameters()}
    named = dict(model.named_parameters())
    return Standing(
        names=tuple(named),
        body=frozenset(name for name, each in named.items() if id(each) in inside),
        tables=frozenset(prefix for prefix, module in model.named_modules() if isinstance(module, nn.Embedding)),
    )


def freeze(model: nn.Module, wishes: list[str | int]) -> None:
    """Take parameters out of training. Raises InputError as `Standing.frozen` does."""
    parameters = dict(model.named_parameters())
    for name in standing(model).frozen(wishes):
        parameters[name].requires_grad_(False)


def undecayed_parameters(model: nn.Module) -> Iterator[str]:
    """Biases and the parameters of normalisation layers, found by the layer's type: names differ too much."""
    for prefix, module in model.named_modules():
        is_norm = "Norm" in type(module).__name__
        for name, _ in module.named_parameters(recurse=False):
            if is_norm or name.endswith("bias"):
                yield f"{prefix}.{name}" if prefix else name
