"""Owns `burnish plan`: what a run would cost, before anything is written."""

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from backend.commands.command import Command, add_changes, add_json
from backend.commands.screen import Screen

if TYPE_CHECKING:
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
        f"tokens     {plan.tokens_per_epoch:,} an epoch",
        f"model      {plan.parameters:,} parameters, {plan.trainable:,} trained",
        f"device     {plan.device}, {plan.precision} ({plan.precision_reason})",
        f"memory     about {plan.memory_mb / 1000:.2f} GB of {plan.available_mb / 1000:.2f} GB",
        *(f"  {part.name:<18} {part.megabytes:>9.0f} MB" for part in plan.memory),
        *map(_placed, plan.placement),
        f"time       {_duration(plan.seconds)}",
        *plan.notes,
        *plan.problems,
    ]
    return "\n".join(lines)


def _placed(one: "Placement") -> str:
    return (
        f"  {f'on {one.device}':<18} {one.weights_mb:>9.0f} MB of weights, {one.optimizer_mb:.0f} MB of optimizer state, "
        f"rows a pass: {one.rows}"
    )


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "unknown until something comparable has run here"
    minutes, rest = divmod(round(seconds), 60)
    return f"about {minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"about {minutes} min {rest} s"


COMMANDS = (Command("plan", "what a run would cost", _arguments, _plan),)
