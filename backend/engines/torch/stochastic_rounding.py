"""Updates weights that are held in bfloat16: in float32, one tensor after another, and rounded stochastically.

Most updates are smaller than half of the distance between two numbers of bfloat16, so that rounding to the nearest one
would lose them. Here a weight becomes one of its two neighbors in bfloat16, the nearer one more often, so that its
expectation is the exact value (Zamirai et al. 2020, Revisiting BFloat16 Training).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from backend.engines.torch.optimizers.optimizer import Groups
from backend.engines.torch.random_bits import derive_seed, draw_bits

_LOW = 1 << 16
"""A float32 has so many values between two neighboring numbers of bfloat16, which are its upper 16 bits."""
_AT_ONCE = 1 << 20
"""Values for which random numbers are there at a time."""


def round_stochastically(values: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Replace contiguous float32 values by numbers of bfloat16, up or down at random; returns the same tensor."""
    for part in values.view(-1).split(_AT_ONCE):
        is_nan = part.isnan()
        # A carry goes into the upper bits; infinity has none below them. CUDA's NaN has all, and would become -0.
        part.view(torch.int32).add_(_draw(len(part), generator)).bitwise_and_(-_LOW)
        part.masked_fill_(is_nan, torch.nan)
    return values


def _draw(count: int, generator: torch.Generator) -> torch.Tensor:
    """Whole numbers from 0 to 65,535; int32. (count,)"""
    if generator.device.type != "cpu":
        return torch.randint(_LOW, (count,), dtype=torch.int32, device=generator.device, generator=generator)
    return torch.from_numpy(draw_bits(count, generator).astype(np.int32))


class RoundedWeights:
    """The trained weights in bfloat16, and the float32 parameters that an optimizer knows in their place.

    Each of these has memory only while its weight is updated.
    """

    def __init__(self, parameters: Sequence[nn.Parameter], seed: int) -> None:
        self._seed = seed
        self._master_parameters = {each: _make_master(each) for each in parameters if each.dtype is torch.bfloat16}

    def master_of(self, parameter: nn.Parameter) -> nn.Parameter:
        """What the optimizer knows in place of a parameter, which may be itself."""
        return self._master_parameters.get(parameter, parameter)

    def replace_in(self, groups: Groups) -> Groups:
        """The groups with master parameters."""
        return [{**group, "params": [self.master_of(each) for each in group["params"]]} for group in groups]

    @torch.no_grad()
    def step(self, optimizer: Any, number: int) -> None:
        """Update every weight; the optimizer's `step` is called for the float32 ones together, then for each other one.

        Random numbers depend on the run's seed and the step's `number` alone, so that a resumed run draws the same.
        """
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        generator: torch.Generator | None = None
        for parameter, master in self._master_parameters.items():
            if parameter.grad is None:
                continue
            if generator is None:
                generator = torch.Generator(parameter.device).manual_seed(
                    derive_seed(self._seed, number, "rounding") >> 1
                )
            empty, master.data = master.data, _as_float32(parameter)
            master.grad, parameter.grad = _as_float32(parameter.grad), None
            optimizer.step()
            parameter.copy_(round_stochastically(master.data, generator))  # exact
            master.data, master.grad = empty, None


def total_norm(gradients: Sequence[torch.Tensor]) -> torch.Tensor:
    """The norm of all gradients in float32; torch would round that of each one in bfloat16."""
    if all(each.dtype is torch.float32 for each in gradients):
        return torch.nn.utils.get_total_norm(gradients)
    norms = [torch.linalg.vector_norm(each, dtype=torch.float32) for each in gradients]
    return torch.linalg.vector_norm(torch.stack(norms))


def _make_master(parameter: nn.Parameter) -> nn.Parameter:
    one = torch.zeros((), device=parameter.device)
    return nn.Parameter(one.expand(parameter.shape))  # of the same shape, in the memory of one number


def _as_float32(values: torch.Tensor) -> torch.Tensor:
    return values.detach().to(torch.float32, memory_format=torch.contiguous_format)
