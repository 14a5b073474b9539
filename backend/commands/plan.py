"""Owns `burnish plan`: what a run would cost, before anything is written."""

import json
import shlex
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from backend.commands.command import Command, add_changes, add_json
from backend.commands.screen import Screen

if TYPE_CHECKING:
    from backend.contract.cost import Remedy
    from backend.contract.queries import Placement, RunPlan


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("spec", metavar="SPEC", type=Path, help="the spec file (YAML)")
    add_changes(parser)
    add_json(parser)


def _plan(arguments: Namespace) -> int:
    import msgspec

    from backend.hardware import devices  # these load the data room
    from backend.run import cost, resolving

    spec = resolving.read_spec(arguments.spec, arguments.changes)
    screen = Screen()
    screen.line("reading model and data")
    try:
        plan = cost.plan(
            spec,
            devices.list_devices(spec.hardware.engine, environment=spec.hardware.environment),
            screen.report("reading data"),
        )
    finally:
        screen.close()
    print(msgspec.json.encode(plan).decode() if arguments.json else _in_words(plan))
    if not plan.fits:
        sys.stderr.write("it does not fit\n")
    return 0


def _in_words(plan: "RunPlan") -> str:
    lines = [
        f"rows       {plan.rows:,} ({plan.features:,} features)",
        f"steps      {plan.total_steps:,} of {plan.batch_size} rows ({plan.steps_per_epoch:,} an epoch)",
        f"batch      {plan.micro_batch_size} rows per pass{' and device' if plan.placement else ''}, {plan.accumulation} {'pass' if plan.accumulation == 1 else 'passes'} a step",
        f"tokens     {plan.tokens_per_epoch:,} an epoch, the longest row {plan.longest:,}{_padded(plan.padding)}",
        f"model      {plan.parameters:,} parameters, {plan.trainable:,} trained",
        f"device     {plan.device}, {plan.precision} ({plan.precision_reason})",
        f"memory     about {plan.memory_mb / 1000:.2f} GB of {plan.available_mb / 1000:.2f} GB",
        *(f"  {part.name:<18} {part.megabytes:>9.0f} MB" for part in plan.memory),
        *map(_placed, plan.placement),
        f"time       {_duration(plan.seconds)}",
        *(f"  {part.name:<18} {_seconds(part.seconds):>12}  {part.words}" for part in plan.time),
        *plan.notes,
        *plan.problems,
        *map(_remedied, plan.remedies),
    ]
    return "\n".join(lines)


def _placed(one: "Placement") -> str:
    return (
        f"  {f'on {one.device}':<18} {one.weights_mb:>9.0f} MB of weights, {one.optimizer_mb:.0f} MB of optimizer state, "
        f"rows a pass: {one.rows}"
    )


def _padded(padding: float | None) -> str:
    return "" if padding is None else f"; about {padding:.0%} more are padding"


def _seconds(seconds: float | None) -> str:
    return "not known" if seconds is None else f"{seconds:.1f} s" if seconds < 60 else f"{seconds / 60:.0f} min"


def _remedied(remedy: "Remedy") -> str:
    """What would help, with the memory that it leaves, and how to say it on the command line."""
    changes = " ".join(f"--set {shlex.quote(f'{key}={json.dumps(value)}')}" for key, value in remedy.changes.items())
    verdict = "fits" if remedy.fits else "still too much"
    return f"  {remedy.title}: about {remedy.memory_mb / 1000:.2f} GB, {verdict} ({changes})"


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "unknown until something comparable has run here"
    if seconds < 1:
        return "less than a second"
    minutes, rest = divmod(round(seconds), 60)
    return f"about {minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"about {minutes} min {rest} s"


COMMANDS = (Command("plan", "what a run would cost", _arguments, _plan),)
