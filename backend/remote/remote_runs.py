"""Starts and continues runs on another machine: sends what a spec needs, and asks the agent there to train."""

import secrets
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from backend.contract import spec_file
from backend.contract.errors import InputError
from backend.contract.machines import find_machine
from backend.contract.messages import message
from backend.contract.run.folder import RemoteRun, RunFolder, slug, write_json
from backend.contract.safe_files import write_whole
from backend.contract.spec import RunSpec
from backend.preflight.resolve import read_run
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


def start(
    spec: RunSpec,
    name: str,
    options: Sequence[str],
    make_copy: Callable[[str, RemoteRun], RunFolder],
    reports: StartReports = SILENT,
    *,
    run: str = "",
) -> RunFolder:
    """Send what the resolved spec needs to a machine, and start the run there with these options of `burnish train`.

    `make_copy` makes its folder here, with a spec, before the machine is asked: whatever happens meanwhile, the run is known here. `run` is
    its name there, if that was asked before without an answer. Raises InputError; if that is NoConnection, the run may have started.
    """
    script = schedulers.script_of(find_machine(name), spec.model_dump())
    needed = upload.prepare_upload(spec, reports.read)
    own, copy = spec.model_dump(mode="json"), None
    place = (
        run or f"{datetime.now():%Y-%m-%d-%H%M}-{slug(spec.name)}-{secrets.token_hex(4)}"
    )  # no other run has that name
    try:
        with connection.discarding(name, needed.files) as sent, connection.connect_by_name(name) as (machine, greeting):
            machine.put_files(needed.files, greeting.free_bytes, reports.send)
            values = spec_file.set_values(own, needed.values_there(f"{greeting.folder}/data"))
            reports.start()
            remote = RemoteRun(name, f"{greeting.folder}/runs/{place}", is_started=False)
            copy = make_copy(spec_file.dump(own), remote)
            sent.run, sent.script = place, script
            question = protocol.Start(
                spec=spec_file.dump(values), trees=needed.trees, run=place, options=_fitting(options, script), script=script
            )  # fmt: skip
            started = connection.start(name, machine, question)
    except connection.StartUnknown as error:
        assert copy is not None
        sentence = message(
            "{machine}: there is no connection any more ({error}), so it is not known whether the run has started there; burnish resume {run} asks "
            "again, and starts no second one",
            machine=name,
            error=str(error),
            run=copy.name,
        )
        raise connection.NoConnection(sentence) from None
    except BaseException:  # it was refused, or the user has changed their mind
        if copy is not None and not run:
            shutil.rmtree(copy.path)
        raise
    write_copy(copy, upload.restore_local(started.spec, own), RemoteRun(name, started.run))
    return copy


def resume(folder: RunFolder, remote: RemoteRun, options: Sequence[str]) -> str:
    """Continue a run where it was started, with these options of `burnish resume`, unless it still runs there or has finished.

    Returns its spec, with the files of this computer. Raises InputError.
    """
    if folder.is_carried():  # else a run that has just ended there would continue with nobody to follow it
        raise InputError("{name}: this run is already running", name=folder.name)
    if not remote.is_started:
        start(read_run(folder), remote.machine, options, lambda *_: folder, run=Path(remote.run).name)
        return folder.spec.read_text(encoding="utf-8")
    values = spec_file.read_run(folder.spec)
    script = schedulers.script_of(find_machine(remote.machine), values)
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
