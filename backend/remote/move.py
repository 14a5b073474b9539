"""Moves a run that is not running to another machine, or back, so that it is whole on one side and alive on one at most.

What is on the move waits there in a folder of its own, where no command finds it. `remote.json` here decides which side has the run:
it is written once everything is there, and removed once everything is here. Whoever is killed before or after can try again.
"""

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from backend.contract import spec_file
from backend.contract.errors import InputError
from backend.contract.machines import find_machine
from backend.contract.run import events
from backend.contract.run.event_summary import landmarks
from backend.contract.run.folder import HERE, RemoteRun, RunFolder, host_id, write_json
from backend.contract.run.lock import RunLocked, take_lock
from backend.contract.safe_files import open_inside, write_whole
from backend.contract.spec import RunSpec
from backend.data.removal import remove
from backend.preflight.resolve import read_run, resolve
from backend.remote import protocol, schedulers, upload
from backend.remote.connection import connect_by_name, discarding
from backend.remote.mirror import MirrorState, fetch, forget_state, write_state
from backend.remote.protocol import ConnectionLost, Report
from backend.training.checkpoints import Checkpoints
from backend.training.resume import best_so_far
from backend.training.spec_change import keep_started


@dataclass(frozen=True)
class Reports:
    """Called with how far the parts of a move are."""

    read: Report
    send: Report
    fetch: Report


def move(folder: RunFolder, place: str, reports: Reports) -> None:
    """Move a run to the machine of that name, or HERE. Raises InputError if it is running, or cannot be moved."""
    remote = folder.remote_run()
    if (remote.machine if remote else HERE) == place:
        return
    if place != HERE:
        find_machine(place)  # before it leaves the place where it is
    if remote is not None:
        with _hold(folder):
            _bring_back(folder, remote, reports.fetch)
    if place != HERE:
        with _hold(folder):
            _send(folder, place, reports)


def name_own_files(folder: RunFolder, remote: RemoteRun, place: str, changes: list[str]) -> list[str]:
    """Let the spec of an adopted run name files of this computer, as these changes say; returns the other changes.

    Whoever wrote the spec could otherwise name any file of this computer, which would be sent with the next move. Raises InputError.
    """
    spec = read_run(folder)
    keys = upload.path_keys(spec)
    own = [change for change in changes if change.partition("=")[0].strip() in keys]
    if missing := [key for key in keys if key not in {change.partition("=")[0].strip() for change in own}]:
        raise InputError(
            "{name}: its spec comes from {machine} and names files as they are called there; name yours: burnish resume {name} --on {place} {options}",
            missing[0],
            name=folder.name,
            machine=remote.machine,
            place=place,
            options=" ".join(f"--set {key}=FILE" for key in missing),
        )
    values = spec_file.apply_changes(spec.model_dump(mode="json"), own)
    here = resolve(values, Path.cwd())
    write_whole(folder.spec, spec_file.dump(here.model_dump(mode="json")).encode())
    write_json(folder.remote, asdict(replace(remote, is_adopted=False)))
    return [change for change in changes if change not in own]


@contextmanager
def _hold(folder: RunFolder) -> Iterator[None]:
    """Keep the run from being resumed here meanwhile. Raises InputError if it is running."""
    folder.check(to_write=True)
    try:
        lock = take_lock(folder.lock)
    except RunLocked:
        raise InputError("{name}: this run is in progress; pause it before you move it", name=folder.name) from None
    try:
        yield
    finally:
        os.close(lock)


def _send(folder: RunFolder, place: str, reports: Reports) -> None:
    spec = read_run(folder)
    if folder.host(1).path.is_dir():
        raise InputError("{name}: a run on several hosts cannot be moved", name=folder.name)
    _cut_torn_line(folder)
    needed = upload.prepare_upload(spec, reports.read)
    own = _files_of(folder, spec)
    digests = upload.hash_files(set(own.values()), reports.read)
    with (
        tempfile.TemporaryDirectory() as scratch,
        discarding(place, {*needed.files, *digests.values()}),
        connect_by_name(place) as (machine, greeting),
    ):
        specs = _write_specs(folder, needed.values_there(f"{greeting.folder}/data"), Path(scratch))
        digests |= upload.hash_files(set(specs.values()), reports.read)
        files = {name: digests[path] for name, path in {**own, **specs}.items()}
        sent = {**needed.files, **{digest: path for path, digest in digests.items()}}
        machine.put_files(sent, greeting.free_bytes, reports.send)
        attempt, ends_well = _read_attempt(folder)
        question = protocol.Receive(
            name=folder.name, origin=_origin(folder), files=files, trees=needed.trees, attempt=attempt, ends_well=ends_well
        )  # fmt: skip
        received = machine.ask(question, protocol.Started)
        size = folder.events.stat().st_size if folder.events.exists() else 0
        write_state(folder, MirrorState(events=size, events_here=size, step=max(folder.checkpoint_steps(), default=0)))
        write_json(folder.remote, asdict(RemoteRun(place, received.run)))  # from here on it is there


def _write_specs(folder: RunFolder, values: Mapping[str, object], scratch: Path) -> dict[str, Path]:
    """The run's specs as the other computer reads them."""
    found = {}
    for path in (folder.spec, folder.started_spec, *folder.path.glob("spec.*.yaml")):
        if path.exists() and path.name not in found:
            found[path.name] = scratch / path.name
            changed = spec_file.set_values(spec_file.read_run(path), values)
            found[path.name].write_text(spec_file.dump(changed), encoding="utf-8")
    return found


def _files_of(folder: RunFolder, spec: RunSpec) -> dict[str, Path]:
    """Relative name → file of what an attempt there needs: the events, the records, the newest and the best checkpoint."""
    checkpoints = Checkpoints(folder)
    latest = checkpoints.latest()
    steps = set[int]()
    if latest is not None:
        best = best_so_far(spec, landmarks(folder.events), latest)
        steps = {latest, *([best.step] if best.keeps_checkpoint and best.step in checkpoints.steps() else [])}
    inside = [path for step in sorted(steps) for path in sorted(folder.checkpoint(step).rglob("*")) if path.is_file()]
    own = [path for path in (folder.events, folder.plan, folder.facts) if path.exists()]
    return {path.relative_to(folder.path).as_posix(): path for path in (*own, *inside)}


def _cut_torn_line(folder: RunFolder) -> None:
    """Remove half a last line, as the next attempt would: what is sent is what both sides count from."""
    if not folder.events.exists():
        return
    with os.fdopen(open_inside(folder.path, folder.events.name, os.O_RDWR), "r+b") as file:
        size = file.seek(0, os.SEEK_END)
        start = file.seek(max(0, size - events.LONGEST_LINE_BYTES))
        file.truncate(start + file.read().rfind(b"\n") + 1)


def _origin(folder: RunFolder) -> str:
    """What tells this run from others that bear its name."""
    return f"{host_id()}:{folder.path}"


def _bring_back(folder: RunFolder, remote: RemoteRun, report: Report) -> None:
    upload.require_files(read_run(folder))
    with connect_by_name(remote.machine) as (machine, _):
        there = fetch(folder, remote, machine, report)
        script = schedulers.script_of(find_machine(remote.machine), {})
        question = protocol.Release(run=remote.run, origin=_origin(folder), script=script)
        taken = machine.ask(question, protocol.Started)
        _check_whole(folder, remote, there)
        write_whole(folder.spec, upload.restore_local(taken.spec, spec_file.read_run(folder.spec)).encode())
        keep_started(folder, read_run(folder))
        attempt, ends_well = _read_attempt(folder)
        folder.record_attempt_elsewhere(attempt, ends_well=ends_well)
        folder.job.unlink(missing_ok=True)
        folder.remote.unlink()  # from here on it is here
        forget_state(folder)
        with suppress(ConnectionLost, InputError):  # the next connection tries again
            machine.ask(protocol.Forget(run=remote.run), protocol.Done)


def _check_whole(folder: RunFolder, remote: RemoteRun, there: list[str]) -> None:
    """Remove checkpoints that the run no longer has. Raises InputError if its newest one did not arrive whole."""
    steps = {name.split("/")[1] for name in there if name.startswith("checkpoints/")}
    for step in folder.checkpoint_steps():
        if folder.checkpoint(step).name not in steps:
            remove(folder.checkpoint(step))
    newest = max(steps, default="")
    latest = Checkpoints(folder).latest()
    if newest and (latest is None or folder.checkpoint(latest).name != newest):
        raise InputError("{machine}: its newest checkpoint is damaged; the run stays there", machine=remote.machine)


def _read_attempt(folder: RunFolder) -> tuple[int, bool]:
    """The number of the last attempt, and whether the events say how it ended."""
    found = landmarks(folder.events) if folder.events.exists() else []
    attempts = [event.attempt for event in found if isinstance(event, events.RunStarted | events.RunResumed)]
    record = folder.process_record()
    number = max([*attempts, record.attempt if record else 0])
    return number, bool(found) and isinstance(found[-1], events.RunFinished)
