"""Recognises a loss or a gradient that is no number any more."""

from backend.contract.errors import RunFailed
from backend.contract.mending import Mend
from backend.run.failures.failure import Failure, chain
from backend.run.situation import Situation

MESSAGE = "the computation gave a value that is not a number"
HINT = "Lower training.learning_rate, add training.warmup, or compute in float32 (hardware.precision)."
LOWERED = 10
"""A rate at which training blows up is seldom just a little too high."""


def recognise(error: BaseException, situation: Situation) -> Failure | None:
    """The run's own check of every loss; JAX's and numpy's FloatingPointError; torch's anomaly detection."""
    message = next(filter(None, map(_message, chain(error))), "")
    return Failure(message, HINT, _mend(situation)) if message else None


def _message(error: BaseException) -> str:
    if isinstance(error, RunFailed) and error.code == "nan_loss":
        return str(error)
    detected = isinstance(error, RuntimeError) and "returned nan values" in str(error)
    return MESSAGE if isinstance(error, FloatingPointError) or detected else ""


def _mend(situation: Situation) -> Mend | None:
    """A new run from the beginning: weights that led to this are no good start."""
    if "float16" in (situation.precision, situation.setting("hardware.precision")):
        return Mend({"hardware.precision": "float32"})
    rate = situation.setting("training.learning_rate")
    return Mend({"training.learning_rate": float(f"{rate / LOWERED:.3g}")}) if rate else None


FAILURE = recognise
