"""`burnish machines`: the other computers on which runs can be started; `train --on`, `resume` and `adopt` for runs there."""

import json
from argparse import ArgumentParser, BooleanOptionalAction, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from backend.commands.command import Command, add_action, add_json
from backend.commands.screen import JsonProgress, ProgressScreen
from backend.contract.errors import InputError
from backend.contract.messages import plural
from backend.contract.places import runs_folder
from backend.contract.run.folder import HERE, RemoteRun, RunFolder
from backend.contract.safe_files import write_whole
from backend.contract.safe_text import one_line

if TYPE_CHECKING:
    from backend.contract.machines import Machine
    from backend.contract.spec import RunSpec


SETTINGS = (
    "ssh_config",
    "scheduler",
    "partition",
    "account",
    "time",
    "gpus",
    "script_lines",
    "dashboard",
    "cpus",
    "open_cluster",
)
"""Settings of a machine whose options have their names."""


def start_remote_run(spec: "RunSpec", arguments: Namespace) -> RunFolder:
    """Send what the resolved spec needs to the machine `--on`, start the run there, and make the folder of its copy here."""
    from backend.commands import new_run
    from backend.contract.machines import find_machine
    from backend.remote import remote_runs

    if arguments.run_folder is not None:
        new_run.refuse_existing(arguments.run_folder)  # before there is a run without a copy
    if arguments.convert_weights and find_machine(arguments.on).scheduler:
        raise InputError("--convert-weights: a job cannot convert a model; convert it before")
    options = [option for option, is_given in (
        ("--trust-remote-code", arguments.trust_remote_code),
        ("--convert-weights", arguments.convert_weights),
        (remote_runs.QUEUE, arguments.queue),
    ) if is_given]  # fmt: skip
    screen, stages = _progress_screen(arguments)
    reports = remote_runs.StartReports(
        screen.report(stages["read"]), screen.report(stages["send"]), lambda: screen.start_stage(stages["start"])
    )

    def make_copy(text: str, remote: RemoteRun) -> RunFolder:
        return new_run.write_copy(text, spec.name, remote, arguments.run_folder)

    try:
        return remote_runs.start(spec, arguments.on, options, make_copy, reports)
    finally:
        screen.close()


def resume_remote_run(folder: RunFolder, remote: RemoteRun, arguments: Namespace) -> None:
    """Continue a run where it was started, unless it still runs there or has finished. Raises InputError."""
    from backend.remote import remote_runs

    options = [part for change in arguments.changes for part in ("--set", change)]
    if arguments.engine:
        options += ["--engine", arguments.engine]
    for option, is_given in (("--new-optimizer", arguments.new_optimizer), ("--trust-remote-code", arguments.trust_remote_code), (remote_runs.QUEUE, arguments.queue)):  # fmt: skip
        options += [option] if is_given else []
    spec = remote_runs.resume(folder, remote, options)
    if arguments.changes or arguments.engine:
        write_whole(folder.spec, spec.encode())


def move_run(folder: RunFolder, arguments: Namespace) -> None:
    """Move a run that is not running to the machine `--on`, or here. Raises InputError."""
    from backend.remote import move

    screen, stages = _progress_screen(arguments)
    reports = move.Reports(*(screen.report(stages[part]) for part in ("read", "send", "fetch")))
    try:
        if (remote := folder.remote_run()) is not None and remote.is_adopted and remote.machine != arguments.on:
            arguments.changes = move.name_own_files(folder, remote, arguments.on, arguments.changes)
        move.move(folder, arguments.on, reports)
        screen.start_stage(stages["start"])
    finally:
        screen.close()


def _progress_screen(arguments: Namespace) -> tuple[ProgressScreen, dict[str, str]]:
    """The screen, and the name of each stage on it: for people, or as `app` knows it."""
    stages = {
        "read": "reading the files",
        "send": f"copying to {arguments.on}",
        "fetch": "copying from there",
        "start": "starting here" if arguments.on == HERE else f"starting on {arguments.on}",
    }
    if arguments.report_progress:
        return JsonProgress(), {part: part for part in stages}
    return ProgressScreen(), stages


def _machines_arguments(parser: ArgumentParser) -> None:
    add_json(parser)
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    adding = add_action(actions, "add", "describe a machine, or change its description")
    _add_name(adding)
    adding.add_argument("--address", metavar="USER@HOST", help="what you would type after ssh")
    adding.add_argument("--folder", metavar="DIR", help="where runs and data are kept there (default: burnish)")
    adding.add_argument("--setup", metavar="COMMANDS", help="shell commands that make burnish available there")
    adding.add_argument("--command", dest="program", metavar="PROGRAM", help="the program burnish there")
    adding.add_argument("--checkpoints", action=BooleanOptionalAction, help="also copy checkpoints back")
    adding.add_argument("--ssh-config", metavar="FILE", help="a configuration file for ssh other than your own")
    adding.add_argument(
        "--scheduler", metavar="NAME", help="submit runs as jobs: slurm, ray, or the launcher of an installed package"
    )
    adding.add_argument("--partition", help="the partition for jobs")
    adding.add_argument("--account", help="the account that jobs are charged to")
    adding.add_argument("--time", help="the time limit of a job, such as 4:00:00; a longer run is queued again")
    adding.add_argument("--gpus", help="how many GPUs of a node a job gets, such as 2 or a100:2")
    adding.add_argument(
        "--script-lines", metavar="LINES", help="more lines of the batch script, such as #SBATCH --mem=32G"
    )
    adding.add_argument("--dashboard", metavar="URL", help="the dashboard of a Ray cluster, such as http://head:8265")
    adding.add_argument("--cpus", metavar="N", help="CPUs of each worker of a Ray cluster (default: 1)")
    adding.add_argument(
        "--open-cluster",
        action=BooleanOptionalAction,
        help="agree to a Ray cluster at a public address without a token or without https",
    )
    _add_name(add_action(actions, "check", "try every step of a run on a machine"))
    trusting = add_action(actions, "trust", "accept the host key of a machine that ssh does not know yet")
    _add_name(trusting)
    trusting.add_argument(
        "--fingerprint", metavar="SHA256:…", required=True, help="the key's, as whoever runs the machine names it"
    )
    installing = add_action(actions, "install", "install or update Burnish on a machine, as it is here")
    _add_name(installing)
    installing.add_argument(
        "--wheels", metavar="DIR", type=Path, help="a folder of wheels to send, if the machine cannot download packages"
    )
    listing = add_action(actions, "history", "list what a machine has run, how fast, and what failed")
    _add_name(listing)
    add_json(listing)
    printing = add_action(actions, "script", "print the batch script of a run on a machine")
    _add_name(printing)
    printing.add_argument("spec", metavar="SPEC", nargs="?", type=Path, help="the spec file, which names the job")
    _add_name(add_action(actions, "remove", "forget a machine; its files stay"))


def _add_name(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the machine's name")


def _machines(arguments: Namespace) -> int:
    from backend.contract import machines  # loads pydantic

    found = machines.read_machines()
    if arguments.action is None:
        return _list(found, arguments.json)
    machines.check_name(arguments.name)
    if arguments.action == "add":
        return _add(found, arguments)
    if arguments.action == "remove":
        machines.find_machine(arguments.name)
        machines.write_machines({name: one for name, one in found.items() if name != arguments.name})
        print(f"{arguments.name} is removed; its files and runs stay there")
        return 0
    if arguments.action == "history":
        return _print_history(arguments.name, arguments.json)
    if arguments.action == "script":
        return _print_script(arguments)
    if arguments.action == "install":
        _install(arguments.name, arguments.wheels)
    if arguments.action == "trust":
        from backend.remote import host_key

        host_key.trust(arguments.name, arguments.fingerprint)
    return _check(arguments.name)


def _print_history(name: str, as_json: bool) -> int:
    """The runs there whose copies are here, newest first; of a machine that was removed as well."""
    from backend.commands.runs import summary
    from backend.remote import history

    found = [(summary(folder), history.read_speed(folder)) for folder in history.runs_on(name, runs_folder())]
    if as_json:
        lines = [
            {
                "name": run.name, "state": run.state, "model": run.model, "task": run.task, "step": run.step, "started": run.started,
                "seconds": run.seconds, "rows_per_second": speed.rows_per_second if speed else None, "message": run.message,
            } for run, speed in found
        ]  # fmt: skip
        print(json.dumps({"machine": name, "runs": lines}, ensure_ascii=False))
        return 0
    if not found:
        print(f"no run on {name} is known here")
        return 0
    width = max(len(one_line(run.name)) for run, _ in found)
    for run, speed in found:
        fast = f"{speed.rows_per_second:,.1f} rows/s" if speed else ""
        print(f"{one_line(run.name):<{width}}  {run.state:<11}  step {run.step:>6,}  {fast:>16}  {one_line(run.message)}".rstrip())  # fmt: skip
    failed = sum(run.state in ("failed", "lost") for run, _ in found)
    print(
        plural(
            "{count} run, {failed} failed or lost", "{count} runs, {failed} failed or lost", len(found), failed=failed
        )
    )
    return 0


def _install(name: str, wheels: Path | None) -> None:
    from backend.remote import installation

    screen, current = ProgressScreen(), ""
    titles = {
        "send": f"copying to {name}",
        "environment": f"making an environment on {name}",
        "packages": f"downloading packages on {name}",
        "install": f"installing packages on {name}",
    }

    def report(part: str, done: int, total: int, unit: str) -> None:
        nonlocal current
        if part != current:
            screen.start_stage(titles.get(part, part), total, unit)
            current = part
        screen.advance(done, total)

    try:
        program = installation.install(name, report, wheels)
    finally:
        screen.close()
    print(f"Burnish is installed on {name}: {one_line(program)}")


def _print_script(arguments: Namespace) -> int:
    from backend.contract import machines, spec_file
    from backend.remote import schedulers

    machine = machines.find_machine(arguments.name)
    if not machine.scheduler:
        raise InputError(
            "{name} starts runs without a scheduler; for a Slurm cluster, run: burnish machines add {name} --scheduler slurm",
            name=arguments.name,
        )
    spec = {} if arguments.spec is None else {"name": arguments.spec.stem, **spec_file.read(arguments.spec)}
    print(schedulers.script_of(machine, spec).rstrip("\n"))
    return 0


def _list(found: "dict[str, Machine]", as_json: bool) -> int:
    if as_json:
        print(json.dumps({"machines": {name: machine.model_dump() for name, machine in found.items()}}))
    elif not found:
        print("there are no machines yet; add one with: burnish machines add NAME --address USER@HOST")
    else:
        width = max(map(len, found))
        for name, machine in found.items():
            place = " ".join(map(one_line, filter(None, (machine.dashboard, machine.address)))) or "this computer"
            scheduler = f"  {machine.scheduler}" if machine.scheduler else ""
            print(f"{name:<{width}}  {place}  {one_line(machine.folder)}{scheduler}")
    return 0


def _add(found: "dict[str, Machine]", arguments: Namespace) -> int:
    from backend.contract import machines
    from backend.contract.spec.section import validate
    from backend.remote import schedulers

    given = {
        "address": arguments.address,
        "folder": arguments.folder,
        "setup": arguments.setup,
        "command": arguments.program,
        "checkpoints": arguments.checkpoints,
        **{name: getattr(arguments, name) for name in SETTINGS},
    }
    before = found[arguments.name].model_dump() if arguments.name in found else {}
    values = {**before, **{name: value for name, value in given.items() if value is not None}}
    if not values.get("address") and not values.get("scheduler"):
        raise InputError("{name}: give its address, for example --address user@host", name=arguments.name)
    machine = validate(machines.Machine, values, arguments.name)
    schedulers.check_known(machine.scheduler)
    machines.write_machines({**found, arguments.name: machine})
    print(
        f"{arguments.name} is saved in {machines.machines_file()}; try it with: burnish machines check {arguments.name}"
    )
    return 0


def _check(name: str) -> int:
    from backend.remote import host_key

    found = host_key.check(name)
    print(f"{name} answers")
    lines = [*found.versions.items(), ("folder", f"{found.folder}, {found.free_bytes / 1e9:,.0f} GB free")]
    lines += [("device", device) for device in found.devices]
    lines += [("partition", partition) for partition in found.partitions]
    lines += [("note", found.note)] if found.note else []
    for title, words in lines:
        print(f"  {one_line(title):<9} {one_line(words)}")
    return 0


def _adopt_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("place", metavar="NAME:FOLDER", help="a machine, and the run's name or folder there")
    parser.add_argument("--run-folder", metavar="DIR", type=Path, help="a new folder for its copy here")
    add_json(parser)


def _adopt(arguments: Namespace) -> int:
    from backend.commands import new_run
    from backend.contract import spec_file
    from backend.contract.spec import HardwareSection
    from backend.remote import connection, protocol

    name, colon, place = arguments.place.partition(":")
    if not colon or not place:
        raise InputError(
            "{place}: write it as NAME:FOLDER, for example lab:2026-11-27-1530-reviews", place=arguments.place
        )
    with connection.connect_by_name(name) as (machine, _):
        found = machine.ask(protocol.Describe(run=place), protocol.Started)
    values = spec_file.parse(found.spec)
    title = values.get("name") if isinstance(values, dict) else None
    folder = new_run.write_copy(
        found.spec, str(title or Path(place).name), RemoteRun(name, found.run, is_adopted=True), arguments.run_folder
    )
    new_run.launch(folder, HardwareSection()).returncode = 0  # it outlives this process on purpose
    if arguments.json:
        print(json.dumps({"run": str(folder.path), "name": folder.name, "machine": name, "run_there": found.run}))
    else:
        print(f"run          {folder.path}")
    return 0


COMMANDS = (
    Command("machines", "list, describe and check other computers for runs", _machines_arguments, _machines),
    Command("adopt", "bring a run that was started on another machine", _adopt_arguments, _adopt),
)
