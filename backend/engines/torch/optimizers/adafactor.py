"""Adafactor, which stores second moments as rows and columns."""

from typing import Annotated, Any

from pydantic import Field, ValidationInfo, field_validator

from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.contract.spec import Section, TrainingSection
from backend.engines.torch.optimizers.optimizer import Groups


class Settings(Section):
    """Adafactor's own options; the names are those of transformers."""

    scale_parameter: Annotated[bool, Field(title="Scale by parameter")] = False
    """Multiply the learning rate by the root mean square of each parameter."""
    relative_step: Annotated[bool, Field(title="Relative step")] = False
    """Use a learning rate derived from the step instead of the schedule, which is still shown."""
    warmup_init: Annotated[bool, Field(title="Warmup init")] = False
    """With `relative_step`, start with a small learning rate that rises by 1e-6 per step."""
    clip_threshold: Annotated[float, Field(title="Clip threshold", gt=0)] = 1.0
    """Updates with a larger root mean square are scaled down to it."""
    decay_rate: Annotated[float, Field(title="Decay rate", lt=0, ge=-1)] = -0.8
    """Exponent of the second-moment decay, which approaches 1: 1 - step ** decay_rate."""
    beta1: Annotated[float | None, Field(title="Beta 1", ge=0, lt=1)] = None
    """Decay rate of the first moment. Empty turns it off, which saves memory."""
    epsilon1: Annotated[float, Field(title="Epsilon 1", gt=0)] = 1e-30
    """Added to the squared gradient."""
    epsilon2: Annotated[float, Field(title="Epsilon 2", gt=0)] = 1e-3
    """The minimum by which `scale_parameter` multiplies."""

    @field_validator("warmup_init")
    @classmethod
    def _is_relative(cls, warmup_init: bool, info: ValidationInfo) -> bool:
        if warmup_init and not info.data.get("relative_step"):
            raise ValueError(message("warmup_init requires relative_step: true"))
        return warmup_init


class Adafactor:
    """Adafactor (Shazeer and Stern 2018), as transformers computes it."""

    title = "Adafactor"
    description = "Adafactor, as used to train T5. Needs far less memory than Adam."
    Settings = Settings

    @staticmethod
    def state_per_weight(options: Any) -> float:
        """The first moment, if kept; rows and columns are negligible."""
        return 1.0 if options.beta1 is not None else 0.0

    @staticmethod
    def make(groups: Groups, training: TrainingSection, options: Any) -> Any:
        """transformers' class. Raises InputError if `layer_decay` would be ignored."""
        from transformers.optimization import Adafactor  # imports torch

        if options.relative_step and training.layer_decay is not None:
            raise InputError(
                "training.layer_decay: Adafactor with relative_step sets its own learning rate; remove one of the two",
                "training.layer_decay",
            )
        return Adafactor(
            groups, lr=None if options.relative_step else training.learning_rate,  # type: ignore[arg-type]
            eps=(options.epsilon1, options.epsilon2), clip_threshold=options.clip_threshold,
            decay_rate=options.decay_rate, beta1=options.beta1, weight_decay=training.weight_decay,
            scale_parameter=options.scale_parameter, relative_step=options.relative_step,
            warmup_init=options.warmup_init,
        )  # fmt: skip


OPTIMIZER = Adafactor
