"""Fixes for a failed run, as data: the settings that fix it, how to continue, and both in words."""

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from backend.contract.messages import message

CHANGED_AT_RESUME = (
    "hardware.micro_batch_size",
    "hardware.memory_limit",
    "training.gradient_checkpointing",
    "training.keep_checkpoints",
    "training.checkpoint_every",
    "evaluation.batch_size",
)
"""Settings that change nothing of what is learnt but dropout's draws, so that a run may go on with other ones."""
LEAST_LENGTH = 32
"""No maximum length below this is proposed: it would cut nearly every text."""


class RunFix(msgspec.Struct, frozen=True, omit_defaults=True):
    """The way out of a failure that can be taken by a click.

    With `resume` the same run goes on from its last checkpoint, else a new one begins from its spec. Without `changes`
    the same is tried again, for the cause lies outside. `convert_weights` is a consent, which a click on it gives.
    """

    changes: dict[str, Any] = {}
    """Dotted spec keys and their values."""
    resume: bool = False
    convert_weights: bool = False

    def describe(self) -> str:
        """What a button says: `Restart with micro_batch_size 4`."""
        if self.convert_weights:
            return message("Convert the weights and restart")
        if not self.changes:
            return "Retry"
        settings = " and ".join(
            message("{key} {value}", key=key.rpartition(".")[2], value=_format_value(value))
            for key, value in self.changes.items()
        )
        return (
            message("Resume with {settings}", settings=settings)
            if self.resume
            else message("Restart with {settings}", settings=settings)
        )

    def arguments(self, run: Path) -> list[str]:
        """What follows `burnish` on a command line that does the same for the run in that folder."""
        begin = ["resume", str(run)] if self.resume else ["train", str(run / "spec.yaml")]
        changes = [f"--set={key}={_format_setting(value)}" for key, value in self.changes.items()]
        return [*begin, *changes, *(["--convert-weights"] if self.convert_weights else [])]

    def command(self, run: Path) -> str:
        """The whole command, ready for a shell."""
        return shlex.join(["burnish", *self.arguments(run)])


def find_memory_fix(
    settings: Mapping[str, Any], micro_batch_size: int | None, longest: int | None, *, can_resume: bool
) -> RunFix | None:
    """What needs less memory and costs least: fewer rows at once, then activations computed twice, then shorter texts.

    `settings` are dotted keys; `micro_batch_size` and `longest` (tokens) are those that the run had. None where nothing
    of this is left.
    """
    if micro_batch_size is not None and (mend := halve_batch(micro_batch_size, can_resume=can_resume)):
        return mend
    if not settings.get("training.gradient_checkpointing"):
        return RunFix({"training.gradient_checkpointing": True}, resume=can_resume)
    if longest is not None and longest // 2 >= LEAST_LENGTH:
        return RunFix({"task.max_length": longest // 2})
    return None


def halve_batch(micro_batch_size: int, *, can_resume: bool) -> RunFix | None:
    """Half as many rows at once; None where there is only one."""
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
