"""How a host other than the first joins a run: it waits for the first host's attempt, in a folder within the run."""

import socket
import time
from pathlib import Path

from backend.commands.screen import ProgressScreen
from backend.contract import offline
from backend.contract.errors import InputError
from backend.contract.run.folder import RunFolder
from backend.contract.safe_files import MAX_SPEC, read_unlinked, write_whole
from backend.engines.hosts import Position, describe_wait

POLL_SECONDS = 0.5


def require_folder(position: Position, folder: Path | None) -> None:
    """Raises InputError if several hosts could not find each other's run."""
    if position.count > 1 and folder is None:
        raise InputError(
            f"--run-folder: {position.count} hosts train one run; name a folder on a disk that all of them share"
        )


def join(folder: Path, position: Position) -> RunFolder:
    """This host's folder in the run that the first host started at `folder`, once it listens. Raises InputError."""
    run, screen = RunFolder(folder), ProgressScreen()
    screen.line(f"host {position.number} of {position.count} waits for the first one, up to {position.timeout:g} s")
    try:
        return _join_run(run, position)
    finally:
        screen.close()


def _join_run(run: RunFolder, position: Position) -> RunFolder:
    from backend.training import meeting  # loads pydantic, which a run on one host has loaded elsewhere

    until, said = time.monotonic() + position.timeout, 0
    try:
        while not said or not _is_listening(position.coordinator):
            attempt = _running_attempt(run)
            if said and not attempt:
                raise InputError(
                    f"the first host ended before this one took part; resume the run on all hosts with: burnish resume {run.path}"
                )
            if attempt not in (0, said):
                _prepare(run, run.host(position.number))
                meeting.come(run, position.number, attempt)
                said = attempt
            if time.monotonic() >= until:
                raise _nobody_error(run, position, has_begun=said > 0)
            time.sleep(POLL_SECONDS)
    except BaseException:  # Ctrl-C too: the first is not to listen for who has left
        if said:
            meeting.go(run, position.number)
        raise
    return run.host(position.number)


def _running_attempt(run: RunFolder) -> int:
    """The number of the attempt running on the first host; 0 if there is none."""
    if run.exists():
        run.check()
    record = run.process_record()
    return record.attempt if run.exists() and record is not None and run.exit_record() is None else 0


def _prepare(run: RunFolder, own: RunFolder) -> None:
    own.path.mkdir(exist_ok=True)
    write_whole(own.spec, read_unlinked(run.spec, MAX_SPEC))


def _is_listening(coordinator: str) -> bool:
    host, _, port = coordinator.rpartition(":")
    try:
        with offline.allow_network():  # it is named in the spec
            socket.create_connection((host.strip("[]"), int(port)), timeout=POLL_SECONDS).close()
    except OSError:
        return False
    return True


def _nobody_error(run: RunFolder, position: Position, *, has_begun: bool) -> InputError:
    waited = describe_wait(position.timeout)
    if not has_begun:
        return InputError(
            f"{run.path}: no run was started there within {waited}; start the first host with the same folder, "
            "on a disk that all hosts share"
        )
    return InputError(
        f"hardware.coordinator: there is no answer at {position.coordinator} within {waited}; start the first host, "
        "and let this one reach that port",
        "hardware.coordinator",
    )
