"""Stochastic gradient descent, plain or with momentum."""

from typing import Annotated, Any

from pydantic import Field, ValidationInfo, field_validator

from backend.contract.messages import message
from backend.contract.spec import Section, TrainingSection
from backend.engines.torch.optimizers.optimizer import Groups, has_fused


class Settings(Section):
    """SGD's own options."""

    momentum: Annotated[float, Field(title="Momentum", ge=0, lt=1)] = 0.0
    """Momentum: the fraction of the previous update that carries over to the next one."""
    nesterov: Annotated[bool, Field(title="Nesterov")] = False
    """Use Nesterov momentum (Sutskever et al. 2013)."""

    @field_validator("nesterov")
    @classmethod
    def _has_momentum(cls, nesterov: bool, info: ValidationInfo) -> bool:
        if nesterov and not info.data.get("momentum"):
            raise ValueError(message("nesterov requires a momentum above 0, for example momentum: 0.9"))
        return nesterov


class SGD:
    """Stochastic gradient descent, as torch computes it; fused into one kernel if torch has one."""

    title = "SGD"
    description = (
        "Stochastic gradient descent, plain or with (Nesterov) momentum. Weight decay is added to the gradient."
    )
    Settings = Settings
    elementwise = True

    @staticmethod
    def state_per_weight(options: Any) -> float:
        """The momentum, if there is one."""
        return 1.0 if options.momentum else 0.0

    @staticmethod
    def make(groups: Groups, training: TrainingSection, options: Any) -> Any:
        """torch's SGD."""
        import torch  # takes seconds

        optimizer = torch.optim.SGD(
            groups, lr=training.learning_rate, momentum=options.momentum, nesterov=options.nesterov,
            weight_decay=training.weight_decay, fused=has_fused(groups),
        )  # fmt: skip
        if options.momentum and has_fused(groups):
            # The kernel starts the momentum of all weights in one step, and a weight may get its first gradient later.
            for weight in (each for group in groups for each in group["params"]):
                optimizer.state[weight]["momentum_buffer"] = torch.zeros_like(weight)
        return optimizer


OPTIMIZER = SGD
