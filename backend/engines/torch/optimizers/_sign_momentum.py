"""Lion's update (Chen et al. 2023, algorithm 2) as a torch optimizer."""

from typing import Any

import torch
from torch.optim import Optimizer

from backend.engines.torch.optimizers.optimizer import Groups


class SignMomentum(Optimizer):
    """w ← w - rate · (sign(β₁·m + (1-β₁)·g) + decay · w);  m ← β₂·m + (1-β₂)·g."""

    def __init__(self, groups: Groups, learning_rate: float, betas: tuple[float, float], weight_decay: float) -> None:
        super().__init__(groups, {"lr": learning_rate, "betas": betas, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """Update every parameter that has a gradient; a closure is never given."""
        for group in self.param_groups:
            rate, (beta1, beta2) = group["lr"], group["betas"]
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                momentum = self._momentum(parameter)
                direction = momentum.lerp(parameter.grad, 1 - beta1).sign_()
                parameter.mul_(1 - rate * group["weight_decay"]).add_(direction, alpha=-rate)
                momentum.lerp_(parameter.grad, 1 - beta2)

    def _momentum(self, parameter: torch.Tensor) -> torch.Tensor:
        state = self.state[parameter]
        if not state:
            state["momentum"] = torch.zeros_like(parameter)
        return state["momentum"]
