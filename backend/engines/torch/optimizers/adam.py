"""Adam, with weight decay added to the gradient."""

from typing import Any

from backend.contract.spec import Section, TrainingSection
from backend.engines.torch.optimizers.optimizer import Groups, has_fused


class Settings(Section):
    """Adam has no options besides those of the `training` section."""


class Adam:
    """Adam (Kingma and Ba 2015), as torch computes it; fused into one kernel if torch has one."""

    title = "Adam"
    description = "Adam as originally published: weight decay is added to the gradient (L2)."
    Settings = Settings
    elementwise = True

    @staticmethod
    def state_per_weight(options: Any) -> float:
        """Both moments."""
        return 2.0

    @staticmethod
    def make(groups: Groups, training: TrainingSection, options: Any) -> Any:
        """torch's Adam with the betas and epsilon of the training section."""
        from torch.optim import Adam  # torch takes seconds to import

        return Adam(
            groups, lr=training.learning_rate, betas=(training.adam_beta1, training.adam_beta2),
            eps=training.adam_epsilon, weight_decay=training.weight_decay, fused=has_fused(groups),
        )  # fmt: skip


OPTIMIZER = Adam
