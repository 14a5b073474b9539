"""`burnish demo`, `train` and `resume`: start an attempt and follow it until it ends."""

import json
import sys
import threading
from argparse import SUPPRESS, ArgumentParser, Namespace
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from backend.commands import consents, follow, join, machines, new_run, window
from backend.commands.command import (
    Command,
    add_changes,
    add_consents,
    add_conversion,
    add_json,
    requested_group,
    requested_run,
    require_spec,
)
from backend.commands.follow import Follower, GroupFollower, RunOutcome, format_metrics, report_outcome
from backend.commands.runs import group_lines, group_summary
from backend.commands.screen import ProgressScreen
from backend.contract.errors import InputError, RunFailed
from backend.contract.messages import message
from backend.contract.processes import on_interruption
from backend.contract.resources import resource
from backend.contract.run.event_summary import landmarks, last_end
from backend.contract.run.events import EventReader, RunFinished
from backend.contract.run.fixes import RunFix
from backend.contract.run.folder import INTERRUPTED_EXIT_CODE, RunFolder
from backend.contract.run.group import RunGroup
from backend.contract.safe_text import one_line
from backend.engines.hosts import Position

if TYPE_CHECKING:
    from backend.contract.rpc.plan import DeviceList
    from backend.contract.spec import RunSpec
    from backend.training.checkpoints import Checkpoints


def attempt(
    folder: RunFolder,
    spec: "RunSpec",
    *,
    pause: float | None = None,
    queue: bool = False,
    listed: "DeviceList | None" = None,
) -> RunOutcome:
    """Start or queue the run's next attempt with this spec, and follow it until it is over; see `new_run.start`."""
    screen = ProgressScreen()
    reader = EventReader.at_end(folder.events)
    supervisor = new_run.start(folder, spec, pause=pause, queue=queue, listed=listed)
    if not folder.is_queued():
        screen.line(f"{one_line(folder.name)} runs as process {supervisor.pid}; Ctrl-C stops it")
    outcome = Follower(folder, reader, screen).watch()
    supervisor.wait()
    return outcome


def _add_start(parser: ArgumentParser) -> None:
    add_consents(parser)
    add_json(parser)
    parser.add_argument("--report-progress", action="store_true", help=SUPPRESS)  # for the window, which shows it
    parser.add_argument("--pause-after", metavar="FRACTION", type=_fraction, help=SUPPRESS)  # for searches on machines
    parser.add_argument("--detach", action="store_true", help="start the run and return immediately")
    parser.add_argument(
        "--queue",
        action="store_true",
        help="start when the devices that it needs are free, after the runs queued before",
    )


def _fraction(text: str) -> float:
    value = float(text)
    if not 0 < value < 1:
        raise ValueError(text)
    return value


def _interruptible(execute: Callable[[Namespace], int]) -> Callable[[Namespace], int]:
    """The command, which a log-out or a cluster may interrupt while it is still loading libraries: there is nothing to save."""

    def call(arguments: Namespace) -> int:
        if threading.current_thread() is not threading.main_thread():
            return execute(arguments)
        restore = on_interruption(lambda number: sys.exit(INTERRUPTED_EXIT_CODE))
        try:
            return execute(arguments)
        finally:
            restore()

    return call


def _train_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("spec", metavar="SPEC", type=Path, help="the spec file (YAML)")
    parser.add_argument("--run-folder", metavar="DIR", type=Path, help="a new folder for the run")
    parser.add_argument("--on", metavar="MACHINE", help="run it on another machine (see burnish machines)")
    parser.add_argument(
        "--seeds",
        metavar="SEEDS",
        help="train a group of runs, one for each of these seeds (1,2,3), or so many from training.seed on (5)",
    )
    add_conversion(parser)
    add_changes(parser)
    _add_start(parser)


def _train(arguments: Namespace) -> int:
    require_spec(arguments.spec)
    from backend.preflight import engine_choice, resolve  # load pydantic, pyarrow and the data room

    spec = resolve.read_spec(arguments.spec, [*new_run.requested_changes(arguments), *_requested_seeds(arguments)])
    if spec.training.seeds is not None:
        return _train_group(spec, arguments)
    if arguments.on is not None:
        return _follow_mirror(machines.start_remote_run(spec, arguments), arguments)
    position = engine_choice.position(spec)
    join.require_folder(position, arguments.run_folder)
    _refuse_queue_of_hosts(position, arguments)
    if not position.is_first:
        new_run.agree_to_code(spec, arguments)  # each host has its own consents
        folder = join.join(arguments.run_folder, position)
        return _run(folder, resolve.read_run(folder), arguments)  # the first host's spec, which may be another one
    prepared = new_run.prepare(spec, arguments)
    return _run(new_run.write_run(prepared, arguments.run_folder), prepared.spec, arguments, prepared.listed)


def _resume_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="name or folder of a run, or of a group")
    parser.add_argument(
        "--on", metavar="MACHINE", help="move the run to another machine and continue there; local brings it back"
    )
    parser.add_argument("--engine", metavar="NAME", help="continue with another engine (torch or jax)")
    parser.add_argument(
        "--new-optimizer", action="store_true", help="allow the other engine to start with a new optimizer state"
    )
    parser.set_defaults(run_folder=None, convert_weights=False)
    add_changes(parser)
    _add_start(parser)


def _resume(arguments: Namespace) -> int:
    if arguments.new_optimizer and arguments.engine is None:
        raise InputError(
            message("--new-optimizer: the run's own engine keeps its optimizer; use this option together with --engine")
        )
    if (group := requested_group(arguments.run)) is not None:
        if arguments.on is not None:
            raise InputError("--on: move the runs of a group one by one")
        return _resume_group(group, arguments)
    folder = requested_run(arguments.run)
    from backend.preflight import (
        engine_choice,
    )  # loads pydantic, pyarrow and the data room; a wrong name is said before

    if arguments.on is not None:
        _refuse_finished(folder, last_end(landmarks(folder.events)))
        machines.move_run(folder, arguments)
    if (remote := folder.remote_run()) is not None:
        _refuse_finished(folder, last_end(landmarks(folder.events)))
        machines.resume_remote_run(folder, remote, arguments)
        return _follow_mirror(folder, arguments)
    if folder.job_record() is not None and folder.process_record() is None:
        return _start_submitted(folder, arguments)
    spec = _spec_to_resume(folder, arguments)
    return _run(
        folder if (position := engine_choice.position(spec, folder)).is_first else join.join(folder.path, position),
        spec,
        arguments,
    )


def _spec_to_resume(folder: RunFolder, arguments: Namespace) -> "RunSpec":
    """The run's spec, changed as the arguments say. Raises InputError if it cannot be continued."""
    from backend.preflight import engine_choice, resolve
    from backend.training import spec_change
    from backend.training.checkpoints import Checkpoints

    spec = resolve.read_run(folder, to_write=True)
    checkpoints = Checkpoints(folder)
    refuse_the_same_end(folder, arguments, checkpoints)
    spec_change.compare_started(folder, spec, other_engine=arguments.engine is not None)
    _agree_if_asked(spec, arguments)
    if arguments.engine is None:
        engine_choice.check_engine(spec)
    else:
        spec = new_run.change_engine(folder, spec, checkpoints, arguments.engine, new_optimizer=arguments.new_optimizer)
    _refuse_queue_of_hosts(engine_choice.position(spec, folder), arguments)  # before a change deletes checkpoints
    return new_run.change_settings(folder, spec, arguments.changes) if arguments.changes else spec


def _start_submitted(folder: RunFolder, arguments: Namespace) -> int:
    """Start a run that was submitted as a job: its spec is checked, and its automatic values are chosen, where it runs."""
    from backend.preflight import checks, engine_choice, resolve  # loaded by now

    folder.check(to_write=True)
    spec = resolve.read_spec(folder.spec, new_run.requested_changes(arguments))
    position = engine_choice.position(spec, folder)
    if not position.is_first:
        new_run.agree_to_code(spec, arguments)
        joined = join.join(folder.path, position)
        return _run(joined, resolve.read_run(joined), arguments)
    prepared = new_run.prepare(spec, arguments)
    checks.write_spec(folder, prepared)
    return _run(folder, prepared.spec, arguments, prepared.listed)


def _agree_if_asked(spec: "RunSpec", arguments: Namespace) -> None:
    names = [name for name in (spec.model.name_or_path, spec.model.tokenizer) if name]
    consents.agree_if_asked(arguments, *names, revision=spec.model.revision)


def refuse_the_same_end(folder: RunFolder, arguments: Namespace, checkpoints: "Checkpoints") -> None:
    """Raise InputError if resuming could only end the same way again."""
    end = last_end(landmarks(folder.events))
    if end is None or folder.life() == "alive":  # an active run is rejected when it is started
        return
    _refuse_finished(folder, end)
    if arguments.engine is not None or end.can_go_on(has_checkpoint=False):
        return  # nothing depends on the checkpoints, which take long to read
    if not end.can_go_on(has_checkpoint=checkpoints.latest() is not None):
        anew = (end.mend or RunFix()).command(folder.path)
        raise InputError(
            message(
                "{name}: its loss became NaN before its first checkpoint, so resuming it would give the "
                "same result; start a new run: {anew}",
                name=folder.name,
                anew=anew,
            )
        )


def _refuse_finished(folder: RunFolder, end: RunFinished | None) -> None:
    if end is not None and end.state == "finished":
        raise InputError(
            message("{name}: this run has finished, so there is nothing to resume; start a new one", name=folder.name)
        )


def _refuse_queue_of_hosts(position: Position, arguments: Namespace) -> None:
    if arguments.queue and position.count > 1:
        raise InputError(
            message("--queue: a run on several hosts starts on all of them at once; start it without --queue")
        )


def _run(folder: RunFolder, spec: "RunSpec", arguments: Namespace, listed: "DeviceList | None" = None) -> int:
    # A run that was lost while it waited waits again: several of them would otherwise be resumed all at once.
    queue, pause = arguments.queue or folder.queued_since() is not None, arguments.pause_after
    if not arguments.detach:
        return report_outcome(attempt(folder, spec, pause=pause, queue=queue, listed=listed), arguments.json)
    supervisor = new_run.start(folder, spec, pause=pause, queue=queue, listed=listed)
    supervisor.returncode = 0  # it outlives this process on purpose
    _report_started(folder, supervisor.pid, arguments.json)
    return 0


def _follow_mirror(folder: RunFolder, arguments: Namespace) -> int:
    """Follow a run on another machine through its copy here."""
    reader = EventReader.at_end(folder.events)
    from backend.contract.spec import HardwareSection  # loads pydantic

    supervisor = new_run.launch(folder, HardwareSection())
    if arguments.detach:
        supervisor.returncode = 0  # it outlives this process on purpose
        _report_started(folder, supervisor.pid, arguments.json)
        return 0
    outcome = Follower(folder, reader, ProgressScreen()).watch()
    supervisor.wait()
    return report_outcome(outcome, arguments.json)


def _report_started(folder: RunFolder, pid: int, as_json: bool) -> None:
    waits = folder.is_queued()
    if as_json:
        state = "queued" if waits else "starting"
        values = {"run": str(folder.path), "name": folder.name, "state": state, "process": pid}
        print(json.dumps(values, ensure_ascii=False))
        return
    print(f"run          {folder.path}")
    if waits:
        print(f"queued       {follow.waits_for(folder)}")


# Groups: one run for each seed, all in the queue


def _requested_seeds(arguments: Namespace) -> list[str]:
    """`--seeds 1,2,3` as a change of `training.seeds`; a number alone is how many."""
    if arguments.seeds is None:
        return []
    given = arguments.seeds.strip()
    return [f"training.seeds={given}" if given.isdecimal() else f"training.seeds=[{given}]"]


def _train_group(spec: "RunSpec", arguments: Namespace) -> int:
    from backend.hardware.devices import count_hosts
    from backend.training import run_group  # loaded by now

    if arguments.on is not None:
        raise InputError(
            "--on: a group trains on this computer; without training.seeds, start one run there for each seed"
        )
    if count_hosts(spec.hardware) > 1:
        raise InputError("training.seeds: a run on several hosts cannot be one of a group; start one run for each seed")
    if arguments.run_folder is not None:
        run_group.check_free(arguments.run_folder, spec.training.group_seeds)
    prepared = new_run.prepare(spec, arguments)
    group = run_group.make_group(prepared, arguments.run_folder)
    started = GroupFollower(group)
    for run, seed in zip(group.runs(), group.seeds(), strict=True):
        own = run_group.spec_of_seed(prepared.spec, seed)
        started.add(run, partial(new_run.start, run, own, queue=True, listed=prepared.listed))
    return _report_group(started, arguments)


def _resume_group(group: RunGroup, arguments: Namespace) -> int:
    """Make the runs that are missing, and continue all that are neither over nor in progress."""
    from backend.training import run_group  # loads pydantic, pyarrow and the data room

    started, refusals = GroupFollower(group), []
    for run in run_group.make_runs(group):
        end = last_end(landmarks(run.events))
        if run.life() == "alive" or (end is not None and end.state == "finished"):
            started.add(run)
            continue
        try:
            started.add(run, partial(new_run.start, run, _spec_to_resume(run, arguments), queue=True))
        except (InputError, RunFailed) as refusal:
            refusals.append(refusal)
    if not started.runs_in_progress():
        if refusals:
            raise refusals[0]
        raise InputError(
            "{name}: all runs of this group have finished; train new seeds as a new group", name=group.name
        )
    for refusal in refusals:
        print(f"note: {refusal}", file=sys.stderr)
    return _report_group(started, arguments)


def _report_group(started: GroupFollower, arguments: Namespace) -> int:
    """Follow the runs unless they shall run alone, and print what became of the group; its folder comes last."""
    code = 0
    if arguments.detach:
        started.leave()
    else:
        code = started.watch()
        _write_predictions(started.group)
    found = group_summary(started.group)
    if arguments.json:
        print(msgspec.json.encode({**msgspec.to_builtins(found), "group": found.run}).decode())
        return code
    for line in group_lines(found):
        print(line)
    print(f"group        {started.group.path}", flush=True)
    return code


def _write_predictions(group: RunGroup) -> None:
    """Write what the runs that have finished predict together, if their answers have a vote or mean."""
    from backend.inference import ensemble

    try:
        ensemble.write_predictions(group)
    except InputError as refusal:
        print(f"note: {one_line(str(refusal))}", file=sys.stderr)


# The demo


def _demo_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--headless", action="store_true", help="stay in the terminal even if there is a display")
    parser.add_argument("--run-folder", metavar="DIR", type=Path, help="a new folder for the run")
    add_json(parser)
    parser.set_defaults(changes=[], trust_remote_code=False, convert_weights=False)


def _demo(arguments: Namespace) -> int:
    """Train the embedded model on its data, in the window or in the terminal."""
    from backend.preflight import resolve  # loads pydantic, pyarrow and the data room

    prepared = new_run.prepare(resolve.read_spec(resource("demo", "sentiment.yaml")), arguments)
    folder = new_run.write_run(prepared, arguments.run_folder)
    if not arguments.headless and not arguments.json and window.can_show():
        return _show_in_window(folder, prepared.spec)
    return _report_demo(attempt(folder, prepared.spec), arguments.json)


def _show_in_window(folder: RunFolder, spec: "RunSpec") -> int:
    supervisor = new_run.start(folder, spec)
    try:
        return window.show("--run", str(folder.path))
    except RunFailed as error:
        # The run continues without the window, so the terminal takes over.
        screen = ProgressScreen()
        screen.line(str(error))
        return _report_demo(Follower(folder, EventReader(folder.events), screen).watch(), False)
    finally:
        supervisor.returncode = supervisor.poll() or 0  # an active run outlives this process on purpose


def _report_demo(outcome: RunOutcome, as_json: bool) -> int:
    if as_json or outcome.exit_code or outcome.predictions is None:
        return report_outcome(outcome, as_json)
    print(f"{outcome.state}: {format_metrics(outcome.metrics, outcome.intervals)}")
    print(f"run {outcome.folder.path}")
    print(outcome.predictions, flush=True)  # alone on the last line, for scripts
    return 0


COMMANDS = (
    Command("demo", "run the built-in demo, end to end", _demo_arguments, _demo),
    Command("train", "train a model from a spec file", _train_arguments, _interruptible(_train)),
    Command("resume", "continue a run from its last checkpoint", _resume_arguments, _interruptible(_resume)),
)
