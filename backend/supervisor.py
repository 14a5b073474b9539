"""Runs one attempt: waits its turn, starts the engine, forwards stop requests, ends its processes, records the outcome.

`python -m backend.supervisor RUN [--restarts MOST] [--queue [COUNT DEVICE …]]`, in its own session. It imports only the standard library and
light modules of ours, so it needs a few megabytes and outlives whatever the engine does to the machine's memory.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from backend import process_tree, restart
from backend.contract.errors import NO_ROOM, InputError
from backend.contract.messages import message
from backend.contract.processes import INTERRUPTIONS, on_interruption, python_command
from backend.contract.run import queue as run_queue
from backend.contract.run.folder import (
    ENDS,
    INTERRUPTED_EXIT_CODE,
    WHOLE_COMPUTER,
    DeviceRequest,
    ExitRecord,
    ProcessRecord,
    RunFolder,
    boot_id,
    host_id,
)
from backend.contract.run.lock import RunLocked, take_lock
from backend.contract.safe_files import open_inside

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
RESTARTS, QUEUE = "--restarts", "--queue"
POLL_SECONDS = 0.5
"""Interval at which a waiting run checks the runs that block it and its own requests."""
RESTART_SECONDS, LONGEST_PAUSE = 2.0, 60.0
"""Pause before the first restart in a row; each one after it waits twice as long."""


@dataclass(frozen=True)
class GracePeriods:
    """Seconds that the engine has to obey a request to end before its process tree is killed."""

    polite: float = 60.0


def main() -> int:
    """Supervise the run named on the command line."""
    run, options, most = sys.argv[1:2], sys.argv[2:], "0"
    if options[:1] == [RESTARTS]:
        most, options = "".join(options[1:2]), options[2:]
    option, request = options[:1], options[1:]
    counts = [most, *request[:1]]
    if not run or option not in ([], [QUEUE]) or not all(count.isdecimal() for count in counts):
        return _refuse(f"usage: python -m backend.supervisor RUN [{RESTARTS} MOST] [{QUEUE} [COUNT DEVICE …]]")
    folder = RunFolder(run[0])
    queue = (DeviceRequest(int(request[0]), tuple(request[1:])) if request else WHOLE_COMPUTER) if option else None
    return supervise(folder, python_command("backend", "_run", str(folder.path)), queue=queue, max_restarts=int(most))


def supervise(
    folder: RunFolder,
    command: Sequence[str],
    patience: GracePeriods = GracePeriods(),
    *,
    queue: DeviceRequest | None = None,
    max_restarts: int = 0,
) -> int:
    """Run `command` as the run's next attempt, and as the ones after it if its process is killed; returns the exit code.

    0 on success, 1 on failure, 2 if the run cannot be started, INTERRUPTED_EXIT_CODE if it was interrupted from outside.

    With `queue` it starts when earlier runs of the same folder leave it these devices.
    """
    if not folder.exists():
        return _refuse(
            folder.fault()
            or message(
                "{path} is not a run folder: it does not contain {name}", path=folder.path, name=folder.spec.name
            )
        )
    try:
        folder.check(to_write=True)
        lock = take_lock(folder.lock)
    except InputError as error:
        return _refuse(str(error))
    except RunLocked:
        values = {"name": folder.name, "folder": _describe_holder(folder)}
        return _refuse(
            message("{name}: this run is already waiting in the queue{folder}", **values)
            if folder.is_queued()
            else message("{name}: this run is already running{folder}", **values)
        )
    except OSError as error:
        return _refuse(
            message(
                "{name}: its lock cannot be opened ({strerror}); if this is another user's run, start "
                "your own from {spec}",
                name=folder.name,
                strerror=error.strerror,
                spec=folder.spec,
            )
        )
    try:
        return _run(folder, command, patience, queue, max_restarts)
    except OSError as error:  # a record of the run could not be written
        if error.errno not in NO_ROOM:
            raise
        return _refuse(
            message(
                "{path}: the disk is full; free up some space, or use a run folder on another disk", path=folder.path
            )
        )
    finally:
        os.close(lock)


def _run(
    folder: RunFolder,
    command: Sequence[str],
    patience: GracePeriods,
    queue: DeviceRequest | None,
    max_restarts: int,
) -> int:
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    _sweep_leftovers(folder)
    try:
        folder.clear_requests()
    except OSError as error:  # the attempt would obey requests meant for an earlier one
        return _refuse(
            message(
                "{filename} cannot be deleted ({strerror}); delete it, then start the run again",
                filename=error.filename,
                strerror=error.strerror,
            )
        )
    stopping = _Shutdown(folder, patience)
    if queue is not None:
        run_queue.join(folder, queue)
    else:
        folder.leave_queue()
    # The attempt is on record before the engine lives, so the engine can read its number.
    record = ProcessRecord(
        folder.next_attempt(),
        host_id(),
        boot_id(),
        os.getpid(),
        0,
        time.time(),
        restart.newest_progress(folder),
        max_restarts,
    )
    folder.write_process_record(record)
    request = _wait_its_turn(folder, stopping)
    if request or not folder.exists():
        return _leave_queue(folder, record, request)
    while True:
        ended = _attempt(folder, command, record, stopping)
        following = restart.restart_after(folder, record, ended.returncode, ended.killed_by)
        if following is None or stopping.request:
            return _record_exit(folder, replace(ended, message=restart.describe_end(folder, record, ended)))
        _print_error(ended.message)
        if not _pause(folder, stopping, following.restarts):
            return _record_exit(folder, replace(ended, state=stopping.state(ended.returncode)))
        record = replace(following, started=time.time())
        folder.write_process_record(record)


def _attempt(folder: RunFolder, command: Sequence[str], record: ProcessRecord, stopping: "_Shutdown") -> ExitRecord:
    """Start the engine and wait until it and all that it started are gone."""
    began, memory_kills = time.time(), restart.count_memory_kills()
    try:
        engine = _start(folder, command)
    except OSError as error:  # Python itself may be gone by now, if a program was updated while the run waited
        _print_error(str(error))
        why = message("the run could not be started: {error}", error=error)
        return ExitRecord(record.attempt, 1, time.time(), why)
    stopping.engine = engine
    folder.write_process_record(replace(record, engine_pid=engine.pid, started=began))
    _speak_to_log(folder)
    returncode = _wait(engine)
    stopping.disarm()
    left = process_tree.end_all(lambda: _tree(folder, engine.pid))
    if left:
        _print_error(message("the engine left {left} processes behind, and they were killed", left=left))
    if (ended_by := restart.killed_elsewhere(folder, began)) is None:
        ended_by = restart.killed_by(returncode, memory_kills)
    why = stopping.message(returncode, ended_by)
    return ExitRecord(record.attempt, returncode, time.time(), why, stopping.state(returncode), ended_by)


def _pause(folder: RunFolder, stopping: "_Shutdown", restarts: int) -> bool:
    """Wait before a restart; whether it is still wanted."""
    until = time.monotonic() + min(RESTART_SECONDS * 2 ** (restarts - 1), LONGEST_PAUSE)
    while True:
        if stopping.request or not folder.exists() or folder.open_request() in ENDS:
            return False
        if time.monotonic() >= until:
            return True
        time.sleep(min(POLL_SECONDS, RESTART_SECONDS))


def _wait_its_turn(folder: RunFolder, stopping: "_Shutdown") -> str:
    """Wait until the run may start, or receives a request to end, which is returned."""
    blocking: list[RunFolder] = []
    while folder.queued.exists():
        request = stopping.request or folder.open_request() or ""
        if request in ENDS:
            return request
        if not run_queue.is_blocked(folder, blocking):
            with suppress(RunLocked):  # another one is deciding
                blocking = run_queue.take_turn(folder)
            if not blocking:
                continue
            _speak_to_log(folder)
        time.sleep(POLL_SECONDS)
    return ""


def _leave_queue(folder: RunFolder, record: ProcessRecord, request: str) -> int:
    """End the attempt before it had an engine; an interrupted one is queued again when resumed."""
    if not request:
        return 1  # its folder is gone
    with suppress(OSError):  # the next attempt says what it cannot delete
        folder.clear_requests()
    returncode = _record_exit(folder, ExitRecord(record.attempt, 0, time.time(), state=ENDS[request]))
    if request != "interrupt":
        folder.leave_queue()
    return returncode


def _record_exit(folder: RunFolder, record: ExitRecord) -> int:
    try:
        folder.write_exit_record(record)
    except OSError as error:
        # The folder was deleted or the disk is full: readers will find the run to be lost, which is true.
        _print_error(message("{path}: the result of the run cannot be written: {error}", path=folder.path, error=error))
        return 1
    if record.state == ENDS["interrupt"]:
        return INTERRUPTED_EXIT_CODE
    return 1 if record.has_failed else record.returncode


class _Shutdown:
    """Ends the run when the supervisor itself is told to end: it asks the engine, then kills its process tree.

    SIGTERM and SIGUSR1 interrupt the run, SIGINT stops it. It kills on a second SIGTERM or SIGINT, or if the engine is
    too slow to answer; one that answers gets the time that its checkpoint takes. SIGUSR1 is a warning and never kills.
    """

    def __init__(self, folder: RunFolder, patience: GracePeriods) -> None:
        self.engine: subprocess.Popen[bytes] | None = None
        self.request = ""
        """What the supervisor was told, as the request of a run; even if that could not be written."""
        self._folder, self._patience = folder, patience
        self._is_interrupted = self._has_requested = self._is_killed = False
        on_interruption(lambda number: self._send_request("interrupt", is_warning=number != signal.SIGTERM))
        signal.signal(signal.SIGINT, lambda *_: self._send_request("stop"))
        if hasattr(signal, "SIGALRM"):
            signal.signal(signal.SIGALRM, lambda *_: self._lose_patience())

    def disarm(self) -> None:
        """The engine has ended; stop escalating."""
        self.engine = None
        self._wake_in(0)

    def message(self, returncode: int, killed_by: str) -> str:
        """One sentence on how the engine ended; empty if it ended well."""
        if returncode in (0, INTERRUPTED_EXIT_CODE):
            return ""
        if returncode > 0:
            return message(
                "the engine process exited with code {returncode}; see {name} for the reason",
                returncode=returncode,
                name=self._folder.log.name,
            )
        name = signal.Signals(-returncode).name
        if self._is_killed:
            return message("the run did not stop in time, so it was killed ({name})", name=name)
        if name in INTERRUPTIONS:
            return message("the run received {name} and stopped before it could save anything", name=name)
        return restart.death_words(-returncode, killed_by, self._folder.log)

    def state(self, returncode: int) -> str:
        """`interrupted` if the engine was told to end, and died before it was listening or could save; else empty."""
        if returncode >= 0 or self._is_killed:
            return ""
        is_early = signal.Signals(-returncode).name in INTERRUPTIONS
        is_told = "interrupt" in (self.request, self._folder.main_folder().open_request())
        return ENDS["interrupt"] if is_early or is_told else ""

    def _send_request(self, request: str, *, is_warning: bool = False) -> None:
        if self._is_interrupted and not is_warning:
            self._kill()
            return
        self._is_interrupted |= not is_warning
        if not self._has_requested or self.request != request:
            self.request = request
            self._has_requested = self._request_stop()
        if not is_warning:
            self._wake_in(self._patience.polite if self._has_requested else 0.01)

    def _request_stop(self) -> bool:
        try:
            self._folder.main_folder().request(self.request)
        except OSError:  # without a folder there are no requests
            return False
        return True

    def _lose_patience(self) -> None:
        run = self._folder.main_folder()
        has_answered = self._has_requested and run.exists() and not (run.path / self.request).exists()
        if has_answered and not self._is_killed:
            self._wake_in(self._patience.polite)
        else:
            self._kill()

    def _kill(self) -> None:
        self._is_killed = True
        if self.engine:
            for pid in _tree(self._folder, self.engine.pid) | {self.engine.pid}:
                process_tree.kill(pid)
        self._wake_in(1.0)

    def _wake_in(self, seconds: float) -> None:
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, seconds)


def _start(folder: RunFolder, command: Sequence[str]) -> subprocess.Popen[bytes]:
    with os.fdopen(_open_log(folder), "ab") as log:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env={**os.environ, process_tree.MARKER: str(folder.path), "PYTHONUNBUFFERED": "1"},
            preexec_fn=die_with(os.getpid()),
        )


def die_with(parent: int) -> Callable[[], None] | None:
    """What a child of this process does between fork and exec, so that it dies with it; only Linux has the means."""

    def bind() -> None:
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it is gone already
            os._exit(1)

    return bind if sys.platform == "linux" else None


def _wait(engine: subprocess.Popen[bytes]) -> int:
    """Block until the engine has ended, reaping adopted orphans meanwhile."""
    if os.name == "nt":
        return engine.wait()
    while True:
        pid, status = os.wait()
        if pid == engine.pid:
            engine.returncode = os.waitstatus_to_exitcode(status)
            return engine.returncode


def _tree(folder: RunFolder, session: int) -> set[int]:
    return process_tree.of_run(str(folder.path), session) | process_tree.descendants(os.getpid())


def _sweep_leftovers(folder: RunFolder) -> None:
    """Kill workers left by a killed supervisor; they would write to the files of the new attempt."""
    process_tree.end_all(lambda: process_tree.of_run(str(folder.path)))


def _describe_holder(folder: RunFolder) -> str:
    record = folder.process_record()
    return (
        message(" (process {supervisor_pid})", supervisor_pid=record.supervisor_pid)
        if record and not folder.exit_record()
        else ""
    )


def _speak_to_log(folder: RunFolder) -> None:
    """From here on the supervisor's output goes to the log; the closed pipe signals the parent."""
    log = _open_log(folder)
    sys.stdout.flush()
    sys.stderr.flush()
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)


def _open_log(folder: RunFolder) -> int:
    return open_inside(folder.path, folder.log.name, os.O_WRONLY | os.O_APPEND | os.O_CREAT)


def _refuse(sentence: str) -> int:
    _print_error(sentence)
    return 2


def _print_error(sentence: str) -> None:
    sys.stderr.write(f"{sentence}\n")
    sys.stderr.flush()


def _load_prctl() -> Callable[[int, int], object]:
    if sys.platform != "linux":
        return lambda option, value: None
    import ctypes  # only Linux has the call

    return ctypes.CDLL(None).prctl


_prctl = _load_prctl()

if __name__ == "__main__":
    sys.exit(main())
