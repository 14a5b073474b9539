"""bitsandbytes' AdamW with its state by weight: float32 for embeddings, and restored in place."""

from collections.abc import Callable
from typing import Any

import torch
from bitsandbytes.optim.optimizer import Optimizer2State

from backend.contract.spec import TrainingSection
from backend.engines.torch.optimizers.optimizer import Groups


class QuantizedAdamW(Optimizer2State):
    """AdamW whose moments have 8 or 32 bits; those that are `paged` are moved to the computer's memory when needed.

    `keeps_float32` tells by a weight's name and shape whether its moments have 32 bits in any case.
    """

    unsaved = frozenset({"qmap1", "qmap2"})
    """What all weights' states share: the 256 numbers that 8 bits stand for."""

    def __init__(
        self, groups: Groups, training: TrainingSection, *, bits: int, paged: bool,
        keeps_float32: Callable[[str, tuple[int, ...]], bool],
    ) -> None:  # fmt: skip
        super().__init__(
            "adam", groups, training.learning_rate, (training.adam_beta1, training.adam_beta2), training.adam_epsilon,
            training.weight_decay, bits, is_paged=paged,
        )  # fmt: skip
        self._keeps_float32 = keeps_float32
        self._place = {
            parameter: (number, index)
            for number, group in enumerate(self.param_groups)
            for index, parameter in enumerate(group["params"])
        }

    def get_config(self, gindex: int, pindex: int, group: dict[str, Any]) -> dict[str, Any]:
        """bitsandbytes' own settings of a weight; it would look embeddings up by the addresses of Python objects."""
        found = super().get_config(gindex, pindex, group)
        if self._keeps_float32(group["names"][pindex], tuple(group["params"][pindex].shape)):
            found["optim_bits"] = 32
        return found

    def take_state(self, parameter: torch.Tensor, values: dict[str, Any]) -> None:
        """Restore a weight's state where a new one would be, so that a paged state stays paged."""
        number, index = self._place[parameter]
        self.init_state(self.param_groups[number], parameter, number, index)
        state = self.state[parameter]
        for key, value in values.items():
            if isinstance(value, torch.Tensor):
                state[key].copy_(value)
            else:
                state[key] = value
