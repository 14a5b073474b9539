"""The precision of the computation: autocast and, for float16, loss scaling."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState

from backend.contract.errors import InputError

_MIXED = {"float32": "no", "bfloat16": "bf16", "float16": "fp16"}


class Precision:
    """Computes in one number format while the weights stay float32.

    In float16 an optimizer step whose gradients overflow is skipped and the scale is halved; the step's gradient
    norm is then infinite, which signals it.
    """

    def __init__(self, device: torch.device, name: str) -> None:
        if name == "float16" and device.type == "cpu":
            raise InputError(
                "hardware.precision: a CPU cannot train in float16; use float32 or bfloat16", "hardware.precision"
            )
        # One process may hold several engines one after another (an evaluation after a training, the tests).
        AcceleratorState._reset_state(reset_partial_state=True)
        accelerator = Accelerator(cpu=device.type == "cpu", mixed_precision=_MIXED[name])
        self._autocast: Any = accelerator.autocast if name != "float32" else nullcontext
        self.scaler: torch.amp.GradScaler | None = accelerator.scaler
        if self.scaler is not None:  # it makes its scale for the first loss, and a process may have no rows in a step
            self.scaler.scale(torch.zeros((), device=device))

    def autocast(self) -> AbstractContextManager[Any]:
        """The context of a forward pass."""
        return self._autocast()

    def backward(self, loss: torch.Tensor) -> None:
        """Accumulate the loss's gradients."""
        (self.scaler.scale(loss) if self.scaler else loss).backward()

    def state(self) -> dict[str, float]:
        """The state that a resumed run needs."""
        return self.scaler.state_dict() if self.scaler else {}

    def restore(self, state: dict[str, float]) -> None:
        """Restore the result of `state`."""
        if self.scaler:
            self.scaler.load_state_dict(state)
