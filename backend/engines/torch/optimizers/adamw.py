"""AdamW, Adam with decoupled weight decay."""

from typing import Any

from backend.contract.spec import Section, TrainingSection
from backend.engines.torch.optimizers.optimizer import Groups, has_fused


class Settings(Section):
    """AdamW has no options besides those of the `training` section."""


class AdamW:
    """AdamW (Loshchilov and Hutter 2019), as torch computes it; fused into one kernel if torch has one."""

    title = "AdamW"
    description = "Adam with decoupled weight decay, the standard choice for transformers."
    Settings = Settings
    elementwise = True

    @staticmethod
    def state_per_weight(options: Any) -> float:
        """Both moments."""
        return 2.0

    @staticmethod
    def make(groups: Groups, training: TrainingSection, options: Any) -> Any:
        """torch's AdamW with the betas and epsilon of the training section."""
        from torch.optim import AdamW  # torch takes seconds to import

        return AdamW(
            groups, lr=training.learning_rate, betas=(training.adam_beta1, training.adam_beta2),
            eps=training.adam_epsilon, weight_decay=training.weight_decay, fused=has_fused(groups),
        )  # fmt: skip


OPTIMIZER = AdamW
