"""Lion, which updates every weight by the sign of its momentum."""

from typing import Annotated, Any

from pydantic import Field

from backend.contract.spec import Section, TrainingSection
from backend.engines.torch.optimizers.optimizer import Groups


class Settings(Section):
    """Lion's own options."""

    beta1: Annotated[float, Field(title="Beta 1", ge=0, lt=1)] = 0.9
    """Weight of the momentum in each update."""
    beta2: Annotated[float, Field(title="Beta 2", ge=0, lt=1)] = 0.99
    """Decay rate of the momentum."""


class Lion:
    """Lion (Chen et al. 2023, algorithm 2)."""

    title = "Lion"
    description = "Lion, which uses the sign of the momentum. Needs a learning rate 3 to 10 times smaller than AdamW."
    Settings = Settings
    elementwise = True

    @staticmethod
    def state_per_weight(options: Any) -> float:
        """The momentum."""
        return 1.0

    @staticmethod
    def make(groups: Groups, training: TrainingSection, options: Any) -> Any:
        """Burnish's own implementation: torch has none."""
        from backend.engines.torch.optimizers._sign_momentum import SignMomentum  # imports torch

        return SignMomentum(groups, training.learning_rate, (options.beta1, options.beta2), training.weight_decay)


OPTIMIZER = Lion
