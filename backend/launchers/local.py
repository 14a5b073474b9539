"""Starts a run on this computer: its supervisor, in a new session that outlives the process that started it."""

import os
import subprocess

from backend.contract.errors import InputError, RunFailed
from backend.contract.processes import python_command
from backend.contract.run.folder import DeviceRequest, RunFolder
from backend.contract.spec import HardwareSection

REFUSED = 2
"""The supervisor's exit code where the run cannot be started, for example because it is running."""


class Local:
    """Starts runs here."""

    title = "This computer"
    description = "One process on this computer, which keeps running when the window is closed."

    def start(
        self, folder: RunFolder, hardware: HardwareSection, *, queue: DeviceRequest | None = None
    ) -> "subprocess.Popen[bytes]":
        """See `Launcher.start`."""
        options = ["--restarts", str(hardware.max_restarts)]
        options += ["--queue", str(queue.count), *queue.devices] if queue is not None else []
        supervisor = subprocess.Popen(
            python_command("backend.supervisor", str(folder.path), *options),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
            env={**os.environ, **hardware.environment},
        )
        assert supervisor.stderr
        with supervisor.stderr as words:
            # The supervisor closes this pipe when the attempt is recorded, when it is queued, or when it exits.
            output = words.read().decode(errors="replace").strip()
        if output and not _has_started(folder, supervisor.pid):
            _raise(output, supervisor.wait())
        return supervisor


def _has_started(folder: RunFolder, supervisor: int) -> bool:
    # The interpreter or the loader may have words of their own (an unknown PYTHONWARNINGS, an LD_PRELOAD gone).
    record = folder.process_record()
    if record is None or record.supervisor_pid != supervisor:
        return False
    return record.engine_pid != 0 or folder.is_queued()


def _raise(said: str, returncode: int) -> None:
    if returncode == REFUSED:
        raise InputError(said.splitlines()[-1])
    raise RunFailed("the run could not be started: {reason}", "start", reason=said.splitlines()[-1])


LAUNCHER = Local
