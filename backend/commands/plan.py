"""`burnish plan`: what a run would cost, before anything is written."""

import json
import shlex
import sys
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from backend.commands import new_run
from backend.commands.command import Command, add_changes, add_consents, add_json, require_spec
from backend.commands.screen import ProgressScreen
from backend.contract import time_span
from backend.contract.errors import InputError
from backend.contract.places import runs_folder
from backend.contract.run.cost import format_size

if TYPE_CHECKING:
    from collections.abc import Callable

    from backend.contract.catalog import Device
    from backend.contract.rpc.plan import DiskPlan, Placement, RunPlan
    from backend.contract.rpc.protocol import Progress
    from backend.contract.rpc.search import SearchPlan
    from backend.contract.run.cost import DiskFix, Measurement, MemoryFix
    from backend.contract.spec import RunSpec
    from backend.search.plan import Plan


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("spec", metavar="SPEC", type=Path, help="the spec file (YAML)")
    parser.add_argument(
        "--on", metavar="MACHINE", help="the time on another machine, from its runs that are known here"
    )
    parser.add_argument("--measure", action="store_true", help="train for a few seconds first to measure the time")
    add_consents(parser)
    add_changes(parser)
    add_json(parser)


def _plan(arguments: Namespace) -> int:
    require_spec(arguments.spec)
    import msgspec

    from backend.hardware import devices
    from backend.preflight import cost, resolve
    from backend.preflight.pandas_left_out import leave_pandas_out  # these load the data room
    from backend.search import plan as plans

    search = _read_search(arguments)
    spec = search.middle() if search else resolve.read_spec(arguments.spec, new_run.requested_changes(arguments))
    spec = new_run.agree_to_code(spec, arguments)
    leave_pandas_out(spec.data.source)
    screen = ProgressScreen()
    screen.line("reading model and data")
    available = devices.list_devices(spec.hardware.engine, environment=spec.hardware.environment)
    try:
        shortage = _measure(spec, available, screen) if arguments.measure else None
        report, speed = screen.report("reading data"), _speed_of(arguments.on, spec) if arguments.on else None
        plan = cost.plan(spec, available, report, is_too_much=shortage is not None, measure_elsewhere=speed)
        if search is not None:
            others = [cost.plan(one, available, report, measure_elsewhere=speed) for one in search.others()]
            plan = msgspec.structs.replace(plan, search=plans.estimate(search, [plan, *others]))
    finally:
        screen.close()
    print(msgspec.json.encode(plan).decode() if arguments.json else _format_plan(plan))
    if not plan.fits:
        sys.stderr.write("it does not fit\n")
    if shortage is not None:
        sys.stderr.write(f"{shortage}, though it should have been enough; choose one of the settings that need less\n")
    return 0 if shortage is None else 1


def _read_search(arguments: Namespace) -> "Plan | None":
    """The search that the spec describes, if it does. Raises InputError."""
    from backend.contract import spec_file
    from backend.contract.spec.search import SEARCH
    from backend.search import plan as plans

    values = spec_file.apply_changes(spec_file.read(arguments.spec), new_run.requested_changes(arguments))
    if (section := values.pop(SEARCH, None)) is None:
        return None
    return plans.make_plan(values, section, arguments.spec.absolute().parent)


def _speed_of(machine: str, spec: "RunSpec") -> "Callable[[float, float], Measurement]":
    """How the machine's history measures such a run. Raises InputError if it tells nothing of it."""
    from backend.contract.machines import find_machine
    from backend.remote import history

    find_machine(machine)
    speed = history.find_speed(machine, runs_folder(), spec)
    if speed is None:
        raise InputError(
            "--on {machine}: no run with this model, task and engine is known to have trained there; start one with: "
            "burnish train SPEC --on {machine}",
            machine=machine,
        )
    return lambda tokens_per_step, tokens_per_row: speed.measure(tokens_per_step, tokens_per_row, machine)


def _measure(spec: "RunSpec", available: "list[Device]", screen: ProgressScreen) -> str | None:
    """Run the measurement; returns a sentence if memory was not enough."""
    from backend.contract.run.events import STAGE_WORDS
    from backend.training import timing_trial

    stage: str | None = None

    def report(progress: "Progress") -> None:
        nonlocal stage
        if progress.part != stage:
            stage = progress.part
            screen.start_stage(
                f"measuring: {STAGE_WORDS.get(stage, stage) or 'starting'}", round(progress.part_total), "s"
            )
        screen.advance(round(progress.part_done), round(progress.part_total))

    return timing_trial.measure(spec, available, report).shortage or None


def _format_plan(plan: "RunPlan") -> str:
    lines = [
        *_format_search(plan.search),
        f"rows       {plan.rows:,} ({plan.features:,} features)",
        f"steps      {plan.total_steps:,} of {plan.batch_size} rows ({plan.steps_per_epoch:,} an epoch)",
        f"batch      {plan.micro_batch_size} rows per pass{' and device' if plan.placement else ''}, {plan.accumulation} {'pass' if plan.accumulation == 1 else 'passes'} a step",
        *(f"auto       {one.reason}" for one in plan.auto if one.reason),
        f"tokens     {plan.tokens_per_epoch:,} per epoch, the longest row {plan.longest:,}{_format_padding(plan.padding)}",
        f"model      {plan.parameters:,} parameters, {plan.trainable:,} trained",
        f"device     {plan.device}, {plan.precision} ({plan.precision_reason})",
        f"memory     about {plan.memory_mb / 1000:.2f} GB of {plan.available_mb / 1000:.2f} GB",
        *(f"  {part.name:<18} {part.megabytes:>9.0f} MB" for part in plan.memory),
        *map(_format_placement, plan.placement),
        *_format_disk(plan.disk),
        f"time       {_duration(plan)}",
        *(f"  {part.name:<18} {_seconds(part.seconds):>12}  {part.words}" for part in plan.time),
        *([_origin(plan.measured, time.time())] if plan.measured else []),
        *plan.notes,
        *plan.problems,
        *map(_format_fix, plan.remedies),
        *_format_disk_problem(plan.disk),
    ]
    return "\n".join(lines)


def _format_search(search: "SearchPlan | None") -> list[str]:
    if search is None:
        return []
    again = f" and {search.confirmations} runs with new seeds" if search.confirmations else ""
    grid = f"a grid of {search.combinations:,} trials"
    if search.samples:
        grid += f" ({search.samples} values of each continuous range)"
    return [
        f"search     {search.trials:,} trials{again}: about {search.steps:,} steps, {_seconds(search.seconds)}",
        f"  {'instead of':<18} {grid}: {search.grid_steps:,} steps, {_seconds(search.grid_seconds)}",
        *([f"  {'disk':<18} about {format_size(search.disk_mb)} for all runs"] if search.disk_mb else []),
        *(
            [f"  {'estimated':<18} from {search.planned_trials} trials that cost more and less"]
            if search.planned_trials > 1
            else []
        ),
        "one trial with values from the middle of the space:",
    ]


def _format_placement(one: "Placement") -> str:
    device = one.device if one.processes == 1 else f"{one.device}, {one.processes} processes"
    return (
        f"  {f'on {device}':<18} {one.weights_mb:>9.0f} MB of weights, {one.optimizer_mb:.0f} MB of optimizer state, "
        f"rows a pass: {one.rows}"
    )


def _format_disk(disk: "DiskPlan | None") -> list[str]:
    """What a run writes by its parts, and the room on each disk that it writes to."""
    if disk is None:
        return []
    room = (
        f"{format_size(volume.free_mb)} of {format_size(volume.total_mb)} free at {volume.folder}"
        + (f", of which it needs {format_size(volume.needed_mb)}" if len(disk.volumes) > 1 else "")
        for volume in disk.volumes
    )
    return [
        f"disk       about {format_size(disk.needed_mb)}; {'; '.join(room)}",
        *(f"  {part.name:<18} {format_size(part.megabytes):>12}  {part.words}".rstrip() for part in disk.parts),
    ]


def _format_disk_problem(disk: "DiskPlan | None") -> list[str]:
    if disk is None or not disk.problem:
        return []
    return [disk.problem, *(_format_changes(fix, f"about {format_size(fix.disk_mb)}") for fix in disk.fixes)]


def _format_padding(padding: float | None) -> str:
    return "" if padding is None else f"; about {padding:.0%} more are padding"


def _seconds(seconds: float | None) -> str:
    return "not known" if seconds is None else f"{seconds:.1f} s" if seconds < 60 else f"{seconds / 60:.0f} min"


def _format_fix(remedy: "MemoryFix") -> str:
    return _format_changes(remedy, f"about {remedy.memory_mb / 1000:.2f} GB")


def _format_changes(remedy: "MemoryFix | DiskFix", needs: str) -> str:
    """A fix, what it would use, and the command-line options for it."""
    changes = " ".join(f"--set {shlex.quote(f'{key}={json.dumps(value)}')}" for key, value in remedy.changes.items())
    verdict = "fits" if remedy.fits else "still too much"
    return f"  {remedy.title}: {needs}, {verdict} ({changes})"


def _duration(plan: "RunPlan") -> str:
    if plan.least_seconds is None or plan.most_seconds is None:
        return "unknown until it is measured (--measure) or a comparable run has trained here"
    return f"about {time_span.format_span(plan.least_seconds, plan.most_seconds)}"


def _origin(measured: "Measurement", now: float) -> str:
    """Where the time estimate comes from, and the measured memory."""
    place = (
        f"on {measured.machine}, while memory and disk are those of this machine"
        if measured.machine
        else "on this machine"
    )
    how = f"measured {place}" if measured.source == "measurement" else f"from a run {place}"
    words = [
        f"  {time_span.ago(now - measured.time)} {how}"
        if measured.machine
        else f"  {how} {time_span.ago(now - measured.time)}"
    ]
    if measured.memory_mb is not None:
        words.append(f"{measured.memory_mb / 1000:.2f} GB of memory at most")
    if measured.device_memory_mb is not None:
        words.append(f"{measured.device_memory_mb / 1000:.2f} GB on the device")
    if measured.others >= time_span.BUSY:
        words.append(f"other programs used {measured.others:.0%} of the CPU, so it may be faster")
    if not measured.weights:
        words.append("with random weights, because the model's are not downloaded yet")
    return ", ".join(words)


COMMANDS = (Command("plan", "estimate what a run would cost", _arguments, _plan),)
