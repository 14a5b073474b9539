"""Fits lengths that nobody has set to a model: the window and the backend by one rule, with the same sentences."""

from collections.abc import Mapping
from typing import Any

from backend.contract.messages import message
from backend.contract.rpc.plan import AutoSetting

LENGTHS = ("max_length", "max_target_length")
STRIDE = "doc_stride"
FITTED = frozenset({*LENGTHS, STRIDE})
"""Settings of `task`, where a task has them. While nobody has set one, a spec does not say it: the model decides."""


def fit_lengths(
    task: Mapping[str, Any], defaults: Mapping[str, Any], limit: int | None, model: str
) -> list[AutoSetting]:
    """What to set in `task` so that no default is above the model's `limit` (tokens), with the reasons.

    A length that someone has set is theirs to change. Windows that share the default stride must be longer than that.
    """
    found: list[AutoSetting] = []
    lengths = {**{name: defaults.get(name) for name in LENGTHS}, **task}
    for name in LENGTHS:
        default = defaults.get(name)
        if name not in task and limit and isinstance(default, int) and default > limit:
            lengths[name] = limit
            found.append(AutoSetting(f"task.{name}", limit, _describe(name, limit, default, model)))
    length, stride = lengths[LENGTHS[0]] or limit, defaults.get(STRIDE)
    if STRIDE not in task and isinstance(length, int) and isinstance(stride, int) and stride >= length:
        reason = message(
            "document stride {value}: windows of {length} tokens cannot share the default of {default}",
            value=fitting_stride(stride, length),
            length=length,
            default=stride,
        )
        found.append(AutoSetting(f"task.{STRIDE}", fitting_stride(stride, length), reason))
    return found


def _describe(name: str, limit: int, default: int, model: str) -> str:
    values = {"value": limit, "model": model, "default": default}
    if name == "max_length":
        return message(
            "max length {value}: {model} takes at most {value} tokens, and the default is {default}", **values
        )
    return message(
        "max target length {value}: {model} takes at most {value} tokens, and the default is {default}", **values
    )


def fitting_stride(stride: int, length: int) -> int:
    """The tokens that windows of this length share: the stride, or a third of them if it is as long as they are."""
    return stride if stride < length else length // 3
