"""Starts and continues runs on another machine: sends what a spec needs, and asks the agent there to train."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from backend.contract import spec_file
from backend.contract.errors import InputError
from backend.contract.machines import find_machine
from backend.contract.run.folder import RemoteRun, RunFolder, write_json
from backend.contract.safe_files import write_whole
from backend.contract.spec import RunSpec
from backend.remote import connection, protocol, schedulers, upload
from backend.remote.protocol import Report

QUEUE = "--queue"


@dataclass(frozen=True)
class StartReports:
    """Called with how far the parts of a start are."""

    read: Report = lambda done, total, unit: None
    send: Report = lambda done, total, unit: None
    start: Callable[[], None] = lambda: None


SILENT = StartReports()


def start(spec: RunSpec, name: str, options: Sequence[str], reports: StartReports = SILENT) -> tuple[str, RemoteRun]:
    """Send what the resolved spec needs to a machine, and start the run there with these options of `burnish train`.

    Returns the spec that the run has there, with the files of this computer, and where it is. Raises InputError.
    """
    script = schedulers.script_of(find_machine(name), spec.model_dump())
    needed = upload.prepare_upload(spec, reports.read)
    with connection.discarding(name, needed.files), connection.connect_by_name(name) as (machine, greeting):
        machine.put_files(needed.files, greeting.free_bytes, reports.send)
        values = spec_file.set_values(spec.model_dump(mode="json"), needed.values_there(f"{greeting.folder}/data"))
        reports.start()
        question = protocol.Start(
            spec=spec_file.dump(values), trees=needed.trees, options=_fitting(options, script), name=spec.name, script=script
        )  # fmt: skip
        started = machine.ask(question, protocol.Started)
    return upload.restore_local(started.spec, spec.model_dump(mode="json")), RemoteRun(name, started.run)


def resume(folder: RunFolder, remote: RemoteRun, options: Sequence[str]) -> str:
    """Continue a run where it was started, with these options of `burnish resume`, unless it still runs there or has finished.

    Returns its spec, with the files of this computer. Raises InputError.
    """
    values = spec_file.read_run(folder.spec)
    script = schedulers.script_of(find_machine(remote.machine), values)
    if folder.is_carried():  # else a run that has just ended there would continue with nobody to follow it
        raise InputError("{name}: this run is already running", name=folder.name)
    question = protocol.Resume(run=remote.run, options=_fitting(options, script), script=script)
    with connection.connect_by_name(remote.machine) as (machine, _):
        started = machine.ask(question, protocol.Started)
    return upload.restore_local(started.spec, values)


def write_copy(folder: RunFolder, spec: str, remote: RemoteRun) -> None:
    """Make this folder the copy of a run on another machine. Raises OSError."""
    write_json(folder.remote, asdict(remote))
    write_whole(folder.spec, spec.encode())


def _fitting(options: Sequence[str], script: str) -> list[str]:
    """A scheduler has its own queue."""
    return [option for option in options if not (option == QUEUE and script)]
