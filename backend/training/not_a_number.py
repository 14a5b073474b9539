"""Owns the end of a run whose loss is not a number: at which step, and whether any weight had been changed by then."""

from backend.contract.errors import RunFailed


class NotANumber(RunFailed):
    """The loss of `step`; the engine may have been further when it was read."""

    def __init__(self, step: int, *, before_change: bool) -> None:
        super().__init__(f"the loss at step {step} is not a number", code="nan_loss")
        self.step = step
        self.before_change = before_change
