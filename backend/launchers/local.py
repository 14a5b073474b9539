"""Starts a run on this computer: its supervisor, in a new session that outlives the process that started it."""

import os
import signal
import subprocess
import sys
import time
import traceback
from contextlib import suppress

from backend import process_tree
from backend.contract.errors import InputError, RunFailed
from backend.contract.messages import message
from backend.contract.processes import python_command
from backend.contract.redaction import redact
from backend.contract.run.folder import DeviceRequest, RunFolder, boot_id, host_id
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

    def run(self, folder: RunFolder) -> int:
        """See `Launcher.run`: train."""
        try:
            from backend.training import processes  # loads the data room and the framework
        except ImportError:
            explain_failed_start(folder)
            return 1
        return end_process(processes.run(folder))

    def end_now(self, folder: RunFolder) -> None:
        """See `Launcher.end_now`."""
        record = folder.process_record()
        if record is None or (record.host, record.boot) != (host_id(), boot_id()):
            raise InputError(
                "{name}: this run is in progress on another computer; stop it there, or without --now",
                name=folder.name,
            )
        if os.name == "nt":
            process_tree.kill(record.engine_pid)
            return
        # Told once, the supervisor interrupts the run; told again, it ends the engine and what that started.
        with suppress(ProcessLookupError):  # the run has ended meanwhile
            os.kill(record.supervisor_pid, signal.SIGTERM)
            deadline = time.monotonic() + 2
            while folder.open_request() != "interrupt" and time.monotonic() < deadline:
                time.sleep(0.01)
            if folder.life() == "alive":
                os.kill(record.supervisor_pid, signal.SIGTERM)


def end_process(code: int) -> int:
    """The exit code, or the end of this process if it gave up on something that still runs, such as compiling."""
    from backend.training import background, loop  # loaded by now

    if background.has_abandoned_work():
        loop.end_at_once(code)
    return code


def explain_failed_start(folder: RunFolder) -> None:
    """Explain an incomplete installation, which ends an attempt before its first event."""
    from backend.contract.run.events import RunFinished
    from backend.training.event_log import EventLog  # needs none of those libraries

    error = sys.exc_info()[1]
    sys.stderr.write(traceback.format_exc())
    sentence = message("a library required for training cannot be loaded: {error}", error=redact(str(error)))
    event = RunFinished(
        time=time.time(),
        state="failed",
        step=0,
        message=sentence,
        code="import",
        hint=message("run burnish doctor to see what to install."),
    )
    log = EventLog(folder.events)
    log.write(event)
    log.close()


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
