"""Recognises a loss or gradient that became NaN or infinite, or was from the start."""

from backend.contract.errors import RunFailed
from backend.contract.messages import message
from backend.contract.run.fixes import RunFix
from backend.models.weights import UnsoundTensor, first_unsound
from backend.training.failures.failure import Failure, FailureContext, chain
from backend.training.pending_metrics import NonFiniteLossError

MESSAGE = message("the computation produced a value that is not a number")
LOWERED = 10
"""A rate at which training blows up is seldom just a little too high."""


def recognise(error: BaseException, context: FailureContext) -> Failure | None:
    """The run's own check of every loss; JAX's and numpy's FloatingPointError; torch's anomaly detection."""
    never = next((one for one in chain(error) if isinstance(one, NonFiniteLossError) and one.before_change), None)
    if never is not None:
        return _never_a_number(str(never), context)
    problem = next(filter(None, map(_message, chain(error))), "")
    if not problem:
        return None
    if context.can_resume:
        problem = message("{problem}; checkpoints from before it are kept", problem=problem)
    return Failure(problem, _hint(context), _fix(context))


def _message(error: BaseException) -> str:
    if isinstance(error, RunFailed) and error.code == "nan_loss":
        return str(error)
    detected = isinstance(error, RuntimeError) and "returned nan values" in str(error)
    return MESSAGE if isinstance(error, FloatingPointError) or detected else ""


def _hint(context: FailureContext) -> str:
    has_warmup, has_float32 = context.setting("training.warmup"), context.precision == "float32"
    if has_float32 and has_warmup:
        return message("Lower training.learning_rate or lengthen training.warmup.")
    if has_float32:
        return message("Lower training.learning_rate or add training.warmup.")
    if has_warmup:
        return message(
            "Lower training.learning_rate, lengthen training.warmup, or compute in float32 (hardware.precision)."
        )
    return message("Lower training.learning_rate, add training.warmup, or compute in float32 (hardware.precision).")


def _fix(context: FailureContext) -> RunFix | None:
    """A new run from the start: the current weights are not a good starting point."""
    if _is_half(context):
        return RunFix({"hardware.precision": "float32"})
    rate = context.setting("training.learning_rate")
    return RunFix({"training.learning_rate": float(f"{rate / LOWERED:.3g}")}) if rate else None


def _is_half(context: FailureContext) -> bool:
    return "float16" in (context.precision, context.setting("hardware.precision"))


def _never_a_number(problem: str, context: FailureContext) -> Failure:
    """No weight has changed yet, so neither learning rate nor warm-up is to blame, and resuming would give the same."""
    unsound = _find_unsound(context)
    if unsound is not None:
        return Failure(
            message(
                "{problem}, because the model's weights contain infinite or NaN values: {name} in {name_2}",
                problem=problem,
                name=unsound.name,
                name_2=unsound.file.name,
            ),
            message(
                "Choose another model, or save this one's weights again; {parent} contains infinite or NaN values.",
                parent=unsound.file.parent,
            ),
        )
    problem = message("{problem}, before any weights were updated", problem=problem)
    if _is_half(context):
        return Failure(
            problem, message("Compute in float32 (hardware.precision)."), RunFix({"hardware.precision": "float32"})
        )
    elsewhere = "" if context.precision in ("", "float32") else message(", or compute in float32 (hardware.precision)")
    return Failure(
        problem,
        message(
            "Check the rows for labels, scores or weights that are missing or far too large, and check "
            "model.config{elsewhere}.",
            elsewhere=elsewhere,
        ),
    )


def _find_unsound(context: FailureContext) -> UnsoundTensor | None:
    if context.model is None or context.setting("model.initialise") == "from_config":
        return None
    try:
        return first_unsound(context.model)
    except (OSError, ValueError):
        return None


FAILURE = recognise
