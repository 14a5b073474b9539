"""Linear layers in float32 on a CPU by oneDNN where no gradients are needed, with GELU in the same pass.

PyTorch takes MKL, whose products took a tenth longer on an AMD processor with AVX-512. GELU is a pass over a model's widest
tensors, and its tanh form takes as long as the product before it. Results are the same to float32's rounding. Training
gained nothing: a step's batch is small, and its products wait for the weights.
"""

import platform
from functools import cache
from typing import Any

import torch
from torch import nn
from torch.nn.functional import linear

_LEAST = 1 << 24
"""Multiplications below which MKL is as fast: oneDNN reorders the weights for each product."""
_GELU = {"GELUActivation": "none", "GELUTanh": "tanh", "NewGELUActivation": "tanh"}
"""Classes of transformers' activations → the name of oneDNN's algorithm."""


class FastLinear(nn.Linear):
    """`nn.Linear` with the same arguments."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """The same."""
        return _multiply(input, self) if _is_fast(input, self) else linear(input, self.weight, self.bias)


def speed_up_linear(model: Any, device: torch.device) -> None:
    """Let the linear layers of a model compute so, but for its output layer, whose class others look at."""
    if (
        device.type != "cpu"
        or platform.machine() not in ("x86_64", "AMD64")
        or not torch.backends.mkldnn.is_available()
    ):
        return
    output = model.get_output_embeddings()
    for module in model.modules():
        if type(module) is nn.Linear and module is not output:
            module.__class__ = FastLinear
        elif type(getattr(module, "dense", None)) is nn.Linear and _algorithm(module) is not None:
            module.__class__ = _with_gelu(type(module))


def _algorithm(module: nn.Module) -> str | None:
    return _GELU.get(type(getattr(module, "intermediate_act_fn", None)).__name__)


@cache
def _with_gelu(kind: type[Any]) -> type[Any]:
    """The class of a feed-forward part's first half, which is `dense` and then `intermediate_act_fn`."""

    def forward(self: Any, hidden_states: torch.Tensor) -> torch.Tensor:
        if not _is_fast(hidden_states, self.dense):
            return kind.forward(self, hidden_states)
        return _multiply(hidden_states, self.dense, "gelu", _algorithm(self) or "")

    return type(kind.__name__, (kind,), {"forward": forward, "__module__": kind.__module__})


def _is_fast(states: torch.Tensor, layer: nn.Module) -> bool:
    if torch.is_grad_enabled() or type(layer) is not FastLinear or "forward" in vars(layer):
        return False
    is_float32 = states.dtype is layer.weight.dtype is torch.float32 and not torch.is_autocast_enabled("cpu")
    return is_float32 and states.numel() * layer.out_features >= _LEAST


def _multiply(states: torch.Tensor, layer: nn.Linear, then: str = "none", algorithm: str = "") -> torch.Tensor:
    # What torch's own compiler makes of a linear layer on a CPU.
    return torch.ops.mkldnn._linear_pointwise(states, layer.weight, layer.bias, then, [], algorithm)
