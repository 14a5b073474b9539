"""Fixes for a failed run, as data: the settings that fix it, how to continue, and a description."""

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from backend.contract.messages import message

CHANGED_AT_RESUME = (
    "hardware.device",
    "hardware.devices",
    "hardware.micro_batch_size",
    "hardware.memory_limit",
    "hardware.processes",
    "hardware.strategy",
    "hardware.cpu_offload",
    "hardware.collective_timeout",
    "hardware.compile",
    "hardware.environment",
    "training.gradient_checkpointing",
    "training.keep_checkpoints",
    "training.checkpoint_every",
    "evaluation.batch_size",
)
"""Settings that affect nothing but rounding and the random numbers of dropout, so a run may be resumed with others."""
LEAST_LENGTH = 32
"""No maximum length below this is proposed: it would cut nearly every text."""


class RunFix(msgspec.Struct, frozen=True, omit_defaults=True):
    """A one-click fix for a failed run.

    With `resume` the run continues from its last checkpoint, else a new run starts from its spec. Without `changes`
    it is tried again as it is, because the cause is external. `convert_weights` is a consent, given by clicking.
    """

    changes: dict[str, Any] = {}
    """Dotted spec keys and their values."""
    resume: bool = False
    convert_weights: bool = False
    is_retry: bool = False
    """The run finished but has learned nothing."""

    def describe(self) -> str:
        """The button's text: `Restart with micro_batch_size 4`."""
        if self.convert_weights:
            return message("Convert the weights and restart")
        if not self.changes:
            return "Retry"
        settings = " and ".join(
            message("no {key}", key=key.rpartition(".")[2])
            if value is None
            else message("{key} {value}", key=key.rpartition(".")[2], value=_format_value(value))
            for key, value in self.changes.items()
            if value is not None or self.is_retry
        )
        if self.is_retry:
            return message("Try again with {settings}", settings=settings)
        return (
            message("Resume with {settings}", settings=settings)
            if self.resume
            else message("Restart with {settings}", settings=settings)
        )

    def arguments(self, run: Path) -> list[str]:
        """The arguments after `burnish` that do the same for the run in that folder."""
        begin = ["resume", str(run)] if self.resume else ["train", str(run / "spec.yaml")]
        changes = [f"--set={key}={_format_setting(value)}" for key, value in self.changes.items()]
        return [*begin, *changes, *(["--convert-weights"] if self.convert_weights else [])]

    def command(self, run: Path) -> str:
        """The whole command, ready to paste into a shell."""
        return shlex.join(["burnish", *self.arguments(run)])


def find_memory_fix(
    settings: Mapping[str, Any], micro_batch_size: int | None, longest: int | None, *, can_resume: bool
) -> RunFix | None:
    """The cheapest way to use less memory: smaller micro-batches, then gradient checkpointing, then shorter inputs.

    `settings` are dotted keys; `micro_batch_size` and `longest` (tokens) are the run's values. None if nothing
    is left to try.
    """
    if micro_batch_size is not None and (mend := halve_batch(micro_batch_size, can_resume=can_resume)):
        return mend
    if settings.get("training.gradient_checkpointing") is not True:
        return RunFix({"training.gradient_checkpointing": True}, resume=can_resume)
    if longest is not None and longest // 2 >= LEAST_LENGTH:
        return RunFix({"task.max_length": longest // 2})
    return None


def halve_batch(micro_batch_size: int, *, can_resume: bool) -> RunFix | None:
    """Halve the micro-batch size; None if it is already 1."""
    return (
        RunFix({"hardware.micro_batch_size": micro_batch_size // 2}, resume=can_resume)
        if micro_batch_size > 1
        else None
    )


def _format_value(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _format_setting(value: Any) -> str:
    return value if isinstance(value, str) and value.isidentifier() else json.dumps(value, ensure_ascii=False)
