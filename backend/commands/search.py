"""`burnish search`: start a search of settings, continue or extend one, and show what it has found."""

import json
from argparse import SUPPRESS, ArgumentParser, Namespace
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from backend.commands import new_run
from backend.commands.command import Command, add_changes, add_consents, add_conversion, add_json, require_spec
from backend.commands.follow import Follower
from backend.commands.screen import ProgressScreen
from backend.contract.errors import InputError
from backend.contract.output_file import output_errors
from backend.contract.places import runs_folder
from backend.contract.run.events import EventReader
from backend.contract.run.folder import RunFolder, exit_code, find_run
from backend.contract.safe_text import one_line

if TYPE_CHECKING:
    from backend.contract.spec import RunSpec
    from backend.search.plan import Plan


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "spec", metavar="SPEC_OR_FOLDER", help="a spec file with a search section, or a search to show and continue"
    )
    parser.add_argument("--run-folder", metavar="DIR", type=Path, help="a new folder for the search")
    parser.add_argument("--trials", metavar="N", type=int, help="try this many combinations of settings in all")
    parser.add_argument("--on", metavar="MACHINE", help="train the trials on another machine (see burnish machines)")
    parser.add_argument(
        "--report-progress", action="store_true", help=SUPPRESS
    )  # the search itself starts here, at once
    add_conversion(parser)
    add_changes(parser, "search.trials=24")
    add_consents(parser)
    add_json(parser)
    parser.add_argument("--detach", action="store_true", help="start the search and return immediately")
    parser.add_argument("--queue", action="store_true", help="start when the devices that it needs are free")


def _search(arguments: Namespace) -> int:
    found = find_run(arguments.spec, runs_folder())
    if found is None:
        return _start_new(arguments)
    if not found.search.exists():
        raise InputError(
            "{name}: this is a run, not a search; give a spec file with a search section", name=one_line(found.name)
        )
    return _continue(found, arguments)


def _start_new(arguments: Namespace) -> int:
    path = Path(arguments.spec)
    require_spec(path)
    from backend.contract import spec_file
    from backend.contract.spec.search import SEARCH
    from backend.search import plan as plans
    from backend.search import space  # load pydantic, pyarrow and the data room

    changes = new_run.requested_changes(arguments)
    if arguments.trials is not None:
        changes.append(f"search.trials={arguments.trials}")
    if arguments.on is not None:
        changes.append(f"search.machine={json.dumps(arguments.on)}")
    values = spec_file.apply_changes(spec_file.read(path), changes)
    if values.get(SEARCH) is None:
        raise space.refuse_no_search(path.name)
    section = values.pop(SEARCH)
    plan = plans.make_plan(values, section, path.absolute().parent)
    first = plan.first()
    checked = (
        new_run.prepare(first, arguments).spec if plan.section.machine is None else _check_elsewhere(plan, arguments)
    )
    plan = plans.with_absolute_paths(plan, checked)
    folder = new_run.make_folder(arguments.run_folder, first.name)
    with output_errors(folder.path, "--run-folder" if arguments.run_folder else "", folder.path):
        plans.write_search(folder, plan)
    return _run(folder, checked, arguments)


def _check_elsewhere(plan: "Plan", arguments: Namespace) -> "RunSpec":
    """The spec of a first trial that trains on another machine, which checks the rest. Raises InputError."""
    from backend.contract.machines import find_machine
    from backend.remote import upload

    assert plan.section.machine is not None
    find_machine(plan.section.machine)
    for option in ("trust_remote_code", "convert_weights"):
        if getattr(arguments, option):
            raise InputError("--{option}: the trials start on {machine} by themselves, so do this there first: burnish train SPEC --on {machine} --{option}", option=option.replace("_", "-"), machine=plan.section.machine)  # fmt: skip
    if arguments.run_folder is not None:
        new_run.refuse_existing(arguments.run_folder)
    first = plan.first()
    upload.require_files(first)
    return first


def _continue(folder: RunFolder, arguments: Namespace) -> int:
    """Show a search; continue it first if it has not ended, or is to have more trials."""
    from backend.search import plan as plans  # loads pydantic, pyarrow and the data room

    if arguments.changes or arguments.on is not None or arguments.run_folder is not None:
        raise InputError("{name}: a search keeps its settings; only --trials changes how many it tries", name=folder.name)  # fmt: skip
    plan = plans.read_plan(folder)
    if arguments.trials is not None:
        plan = _extend(folder, plan, arguments.trials)
    elif arguments.json or _is_over(folder):
        return _print_report(folder, arguments)
    return _run(folder, plan.first(), arguments)


def _is_over(folder: RunFolder) -> bool:
    from backend.search import report

    return report.state_of(folder)[0] == "finished"


def _extend(folder: RunFolder, plan: "Plan", trials: int) -> "Plan":
    from backend.contract.spec.search import SEARCH, SearchSection
    from backend.contract.spec.section import validate
    from backend.search import plan as plans
    from backend.search import space

    section = validate(SearchSection, {**plan.section.model_dump(mode="json"), "trials": trials}, SEARCH)
    most = space.budget(section, plan.parameters)
    if most <= plan.trials:
        reason = "it has" if trials <= plan.trials else "the space has only"
        raise InputError("--trials {trials}: {reason} {there} trials; give a larger number, or a larger space", trials=trials, reason=reason, there=plan.trials)  # fmt: skip
    with new_run.hold(folder, "more trials"):
        plans.write_section(folder, section)
    return replace(plan, section=section, trials=most)


def _run(folder: RunFolder, spec: "RunSpec", arguments: Namespace) -> int:
    """Start the search, unless it runs, and follow it to its end."""
    from backend.hardware.devices import device_request
    from backend.launchers.launcher import launcher_of
    from backend.search import report  # loaded by now

    screen = ProgressScreen()
    supervisor = None
    reader = EventReader.at_end(folder.events)
    if not folder.is_carried():
        request = device_request(spec) if arguments.queue or folder.queued_since() is not None else None
        supervisor = launcher_of(folder).start(folder, spec.hardware, queue=request)
        if arguments.detach:
            supervisor.returncode = 0  # it outlives this process on purpose
    if arguments.detach:
        print(json.dumps({"search": str(folder.path)}) if arguments.json else folder.path)
        return 0
    screen.line(f"{one_line(folder.name)} is searching; Ctrl-C stops it, and burnish search {one_line(folder.name)} continues it")  # fmt: skip
    outcome = Follower(folder, reader, screen).watch()
    if supervisor is not None:
        supervisor.wait()
    _print_report(folder, arguments)
    state, words = report.state_of(folder)
    if exit_code(state):
        screen.line(f"{one_line(folder.name)} {state}: {words or outcome.message or 'no reason given'}")
    return exit_code(state)


def _print_report(folder: RunFolder, arguments: Namespace) -> int:
    import msgspec

    from backend.helper.queries.predictions import read
    from backend.search import report

    is_over = not folder.is_carried()
    found = report.report(folder, importance=is_over, read=read if is_over else None)
    if arguments.json:
        print(msgspec.json.encode(found).decode())
        return 0
    for line in report.format_report(found).splitlines():
        print(one_line(line))
    print(folder.path, flush=True)  # alone on the last line, for scripts
    return 0


COMMANDS = (Command("search", "search the best settings: trials, compared and confirmed", _arguments, _search),)
