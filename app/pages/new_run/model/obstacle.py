"""Finds why the chosen model cannot be used, as one sentence with the buttons that help."""

from collections.abc import Callable
from dataclasses import dataclass

from app.core import formatting
from app.core.draft.draft import Draft
from app.core.draft.model_consent import OLD_WEIGHTS, own_code
from app.core.i18n import tr
from backend.contract.rpc.models import ModelDescription

ANOTHER_TOKENIZER = tr("choose another tokenizer under Settings, or another model.")


@dataclass(frozen=True)
class ModelObstacle:
    """`kind` as of a banner; `fix` is `convert`, `trust`, `download`, `shorten`, `another` or nothing."""

    kind: str
    sentence: str
    fix: str = ""
    limit: int = 0
    """With `shorten`: the longest input that the model takes."""


def obstacle(model: ModelDescription, trusted: bool, draft: Draft | None) -> ModelObstacle | None:
    """The most serious obstacle; None if there is none."""
    return next((found for check in _CHECKS if (found := check(model, trusted, draft))), None)


Check = Callable[[ModelDescription, bool, Draft | None], ModelObstacle | None]


def _problem(model: ModelDescription, trusted: bool, draft: Draft | None) -> ModelObstacle | None:
    return ModelObstacle("error", f"{formatting.sentence(model.problem)}.", "another") if model.problem else None


def _old_weights(model: ModelDescription, trusted: bool, draft: Draft | None) -> ModelObstacle | None:
    if not model.needs_conversion:
        return None
    return ModelObstacle("warning", OLD_WEIGHTS.get(model.weights_format, OLD_WEIGHTS["bin"]), "convert")


def _own_code(model: ModelDescription, trusted: bool, draft: Draft | None) -> ModelObstacle | None:
    return ModelObstacle("warning", own_code(model), "trust") if model.needs_remote_code and not trusted else None


def _too_long(model: ModelDescription, trusted: bool, draft: Draft | None) -> ModelObstacle | None:
    wanted = draft.get("task.max_length") if draft is not None else None
    if not isinstance(wanted, int) or not model.max_length or wanted <= model.max_length:
        return None
    sentence = tr(
        "The max length of {wanted} tokens exceeds this model's limit of {max_length}.",
        wanted=formatting.group_digits(wanted),
        max_length=formatting.group_digits(model.max_length),
    )
    return ModelObstacle("error", sentence, "shorten", model.max_length)


def _tokenizer(model: ModelDescription, trusted: bool, draft: Draft | None) -> ModelObstacle | None:
    if model.tokenizer_fits or (draft is not None and draft.get("model.tokenizer")):
        return None
    return ModelObstacle(
        "warning",
        tr("The tokenizer doesn't match this model: {ANOTHER_TOKENIZER}", ANOTHER_TOKENIZER=ANOTHER_TOKENIZER),
    )


def _not_downloaded(model: ModelDescription, trusted: bool, draft: Draft | None) -> ModelObstacle | None:
    if model.found != "hub":
        return None
    size = formatting.megabytes(model.size_mb) if model.size_mb else tr("unknown size")
    if draft is not None and (draft.get("adapter") or draft.get("model.frozen")):
        sentence = tr(
            "The weights ({size}) are not on this computer yet. The run will download them, or you "
            "can do it now. Download them to see the cost of training only part of the model.",
            size=size,
        )
    else:
        sentence = tr(
            "The weights ({size}) are not on this computer yet. The run will download them, or you can do it now.",
            size=size,
        )
    return ModelObstacle("info", sentence, "download")


_CHECKS: tuple[Check, ...] = (_problem, _old_weights, _own_code, _too_long, _tokenizer, _not_downloaded)
