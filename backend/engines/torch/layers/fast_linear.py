"""Computes linear layers in float32 on a CPU by oneDNN if no gradients are needed, with GELU in the same pass.

PyTorch uses MKL, whose products took a tenth longer on an AMD processor with AVX-512. GELU is a pass over a model's widest
tensors, and its tanh form takes as long as the product before it. Results are the same up to float32's rounding. Training
gained nothing: a step's batch is small, and its products wait for the weights.
"""

import platform
from functools import cache
from typing import Any

import torch
from torch import nn
from torch.nn.functional import gelu, linear
from transformers.activations import GELUActivation, GELUTanh, NewGELUActivation

_LEAST = 1 << 24
"""Multiplications below which MKL is as fast: oneDNN reorders the weights for each product."""
_GELU: dict[type[nn.Module], str] = {GELUActivation: "none", GELUTanh: "tanh", NewGELUActivation: "tanh"}
"""transformers' activations → the name of oneDNN's algorithm."""
_WAYS = [("none", [], ""), ("gelu", [], "none"), ("gelu", [], "tanh")]
"""The operator's last arguments: alone, and with GELU in both forms."""


class FastLinear(nn.Linear):
    """`nn.Linear` with the same arguments."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """The same."""
        return _multiply(input, self) if _is_fast(input, self) else linear(input, self.weight, self.bias)


def speed_up_linear(model: Any, device: torch.device) -> None:
    """Let a model's linear layers use oneDNN, except its output layer, whose class other code checks.

    Nothing changes where this release of PyTorch has another operator, or none.
    """
    if device.type != "cpu" or platform.machine() not in ("x86_64", "AMD64") or _find_operator() is None:
        return
    output = model.get_output_embeddings()
    for module in model.modules():
        if type(module) is nn.Linear and module is not output:
            module.__class__ = FastLinear
        elif _is_linear_and_gelu(module):
            module.__class__ = _with_gelu(type(module))


def _is_linear_and_gelu(module: nn.Module) -> bool:
    """Whether it is the first half of a feed-forward part, and computes nothing else: some have a norm in front."""
    parts = dict(module.named_children())
    is_known = type(module).__module__.startswith("transformers.models.")  # a model's own code may do anything
    return (
        is_known
        and parts.keys() == {"dense", "intermediate_act_fn"}
        and type(parts["dense"]) is nn.Linear
        and type(parts["intermediate_act_fn"]) in _GELU
    )


@cache
def _with_gelu(kind: type[Any]) -> type[Any]:
    """A subclass of this class that computes `dense` and `intermediate_act_fn` at once."""

    def forward(self: Any, hidden_states: torch.Tensor) -> torch.Tensor:
        if not _is_fast(hidden_states, self.dense):
            return kind.forward(self, hidden_states)
        return _multiply(hidden_states, self.dense, "gelu", _GELU[type(self.intermediate_act_fn)])

    return type(kind.__name__, (kind,), {"forward": forward, "__module__": kind.__module__})


def _is_fast(states: torch.Tensor, layer: nn.Module) -> bool:
    if torch.is_grad_enabled() or type(layer) is not FastLinear or "forward" in vars(layer):
        return False
    is_float32 = states.dtype is layer.weight.dtype is torch.float32 and not torch.is_autocast_enabled("cpu")
    return is_float32 and states.numel() * layer.out_features >= _LEAST


def _multiply(states: torch.Tensor, layer: nn.Linear, then: str = "none", algorithm: str = "") -> torch.Tensor:
    return _find_operator()(states, layer.weight, layer.bias, then, [], algorithm)


@cache
def _find_operator() -> Any:
    """What torch's compiler makes of a linear layer on a CPU; None unless it is there and computes what is expected.

    It isn't public, so another release may have another one.
    """
    states, weight, bias = (torch.linspace(-2, 2, count) for count in (12, 20, 5))
    states, weight = states.view(3, 4), weight.view(5, 4)
    with torch.inference_mode():
        plain = linear(states, weight, bias)  # (3, 5)
        wanted = torch.stack([plain, gelu(plain), gelu(plain, approximate="tanh")])
        try:
            operator = torch.ops.mkldnn._linear_pointwise
            found = [operator(states, weight, bias, *how) for how in _WAYS]
            return operator if torch.allclose(torch.stack(found), wanted, atol=1e-5) else None
        except (AttributeError, RuntimeError, TypeError):
            return None
