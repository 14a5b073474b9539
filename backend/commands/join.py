"""How a host other than the first joins a run: it waits for the first host's attempt, in a folder within the run."""

import time
from pathlib import Path

from backend.commands.screen import ProgressScreen
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
    """This host's folder in the run that the first host started at `folder`, once that runs. Raises InputError."""
    run, screen = RunFolder(folder), ProgressScreen()
    screen.line(f"host {position.number} of {position.count} waits for the first one, up to {position.timeout:g} s")
    try:
        return _join_run(run, position)
    finally:
        screen.close()


def _join_run(run: RunFolder, position: Position) -> RunFolder:
    until = time.monotonic() + position.timeout
    while not _is_running(run):
        if time.monotonic() >= until:
            raise InputError(
                f"{run.path}: no run was started there within {describe_wait(position.timeout)}; start the first host "
                "with the same folder, on a disk that all hosts share"
            )
        time.sleep(POLL_SECONDS)
    own = run.host(position.number)
    own.path.mkdir(exist_ok=True)
    write_whole(own.spec, read_unlinked(run.spec, MAX_SPEC))
    return own


def _is_running(run: RunFolder) -> bool:
    """Whether there is an attempt of the first host."""
    if not run.exists():
        return False
    run.check()
    return run.process_record() is not None and run.exit_record() is None
