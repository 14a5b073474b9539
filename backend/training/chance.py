"""What to try when a finished run is no better than a rule without a model: the settings that `auto` would have chosen."""

from typing import Any

from backend.contract.metrics import is_at_chance
from backend.contract.run.fixes import RunFix
from backend.contract.spec import RunSpec, TrainingSection
from backend.contract.spec.auto import AUTO
from backend.hardware import run_sizes
from backend.preflight import auto_settings
from backend.training.setup import RunSetup

MORE_EPOCHS = 3.0
"""As many times the epochs, if the learning rate was already the usual one."""
MOST_EPOCHS = 10_000.0


def find_retry(opened: RunSetup, metrics: dict[str, float]) -> RunFix | None:
    """A new run with other settings, if this one has learned nothing; None if it has, or if nobody knows."""
    if not is_at_chance(metrics, opened.plan.trivial):
        return None
    session = opened.session
    folder = opened.model_folder
    model = auto_settings.ModelSize(run_sizes.count_parameters(session.spec, folder), folder)
    size = auto_settings.training_size(
        session.spec, opened.rows["train"], session.columns, session.facts["max_length"], model
    )
    return RunFix(other_settings(session.spec, size), is_retry=True)


def other_settings(spec: RunSpec, size: auto_settings.TrainingSize) -> dict[str, Any]:
    """The usual learning rate and epochs where this run had others, no limit that ended it sooner, else more epochs."""
    wanted = {"epochs": AUTO, "learning_rate": AUTO}
    usual = auto_settings.choose(spec.model_copy(update={"training": spec.training.model_copy(update=wanted)}), size)
    training, other = spec.training, usual.spec.training
    changes: dict[str, Any] = {}
    if training.learning_rate != other.learning_rate:
        changes["training.learning_rate"] = other.learning_rate
    if training.epochs < other.epochs:
        changes["training.epochs"] = other.epochs
    limits = {f"training.{name}": None for name in ("max_steps", "max_records") if getattr(training, name) is not None}
    was_cut = bool(limits) and _count_records(training) < training.epochs * size.examples
    if not changes and not was_cut:
        changes["training.epochs"] = min(MORE_EPOCHS * training.epochs, MOST_EPOCHS)
    return changes | limits


def _count_records(training: TrainingSection) -> float:
    """The records after which a limit ends the run."""
    return training.max_steps * training.batch_size if training.max_steps is not None else training.max_records or 0
