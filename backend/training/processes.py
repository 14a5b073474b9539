"""Trains a run in one process or in several of this computer, which it starts, watches and ends together.

The first process (rank 0) runs the loop, and all make its engine's calls. If one dies, this launcher ends the others and
says why in their stead: a process that waits for another one cannot.
"""

import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NoReturn

from backend import process_tree, registry, restart, supervisor
from backend.contract.errors import InputError, RunFailed, panics_as_errors
from backend.contract.messages import join, message
from backend.contract.processes import python_command
from backend.contract.redaction import redact
from backend.contract.run.event_summary import landmarks
from backend.contract.run.events import AnyEvent, RunFinished, RunResumed, StepFinished, Warned
from backend.contract.run.fixes import RunFix
from backend.contract.run.folder import INTERRUPTED_EXIT_CODE, RunFolder, exit_code
from backend.contract.safe_files import MAX_SPEC, open_inside, read_unlinked, write_whole
from backend.engines.hosts import TCP, EngineOfProcesses, Position
from backend.hardware.devices import count_hosts, count_processes
from backend.preflight.resolve import read_run
from backend.training import loop
from backend.training.event_log import EventLog, read_events
from backend.training.failures.failure import FailureContext, failure_event

POLL_SECONDS = 0.1
FAILED = exit_code("failed")
PROCESS_LOST = "process_lost"
_CODES = {killed_by: code for code, killed_by in restart.LOSSES.items()}
"""With which the supervisor is told what it cannot see itself."""
MEETING_SECONDS = 300.0
"""How long the hosts that a launcher starts together may take to start."""
LEAVE_SECONDS = 20.0
"""How long the others may take to end after the first one."""
SHOWN_LINES, SHOWN_CHARACTERS = 3, 400
"""Of the end of the log of a process that died."""
LOG_BYTES = 20_000
_NCCL_TIMED_OUT = "Watchdog caught collective operation timeout: WorkNCCL"
"""What PyTorch prints before it aborts a process whose GPU has waited too long."""


@dataclass(frozen=True)
class Death:
    """How one of the processes ended."""

    returncode: int
    killed_by: str = ""
    """See `ExitRecord.killed_by`."""
    sentence: str = ""
    """What is known of it, if that is more than the code says."""
    is_elsewhere: bool = False
    """Whether it was on another computer, or in another control group, of which the supervisor sees nothing."""


def run(folder: RunFolder) -> int:
    """Train the run in as many processes as its spec wants. Returns the exit code; events tell the rest."""
    try:
        spec = read_run(folder.main_folder())
    except (InputError, OSError):
        return loop.run(folder)  # it says what is wrong
    count = count_processes(spec.hardware)
    return loop.run(folder, spec) if count == 1 else _launch(folder, count)


def take_part(folder: RunFolder, rank: int, count: int, rendezvous: str) -> int:
    """Be one of a run's processes. Returns the exit code."""
    if count == 1:
        return loop.run(folder)
    spec = read_run(folder)
    if count_hosts(spec.hardware) > 1:
        return _train_as_host(folder, rank, count, rendezvous)
    engine: EngineOfProcesses = registry.find("engine", spec.hardware.engine, "hardware.engine")
    try:
        with panics_as_errors():
            engine.join_processes(rank, count, rendezvous)
            if rank:
                engine.follow()
                return 0
            if (code := loop.run(folder, spec)) == FAILED:
                loop.end_at_once()  # the others are waiting for the next call, and this process for nothing
    except Exception as error:
        traceback.print_exc()
        try:
            _note_failure(folder, rank, error)
        finally:  # a full disk takes no note
            loop.end_at_once()
    with suppress(RunFailed):  # one hangs, and is killed: the run itself is complete
        engine.leave_processes()
    return code


def _train_as_host(folder: RunFolder, rank: int, count: int, rendezvous: str) -> int:
    """Be one of a run's hosts, whose frameworks meet at that address; each but the first has a folder of its own."""
    own = folder.host(rank)
    own.path.mkdir(exist_ok=True)
    write_whole(own.spec, read_unlinked(folder.spec, MAX_SPEC))
    return loop.run(own, position=Position(rank, count, rendezvous.removeprefix(TCP), MEETING_SECONDS))


def _launch(folder: RunFolder, count: int) -> int:
    started, kills = time.time(), restart.count_memory_kills()
    processes: list[subprocess.Popen[bytes]] = []
    with TemporaryDirectory(prefix="burnish-") as place:
        try:
            for rank in range(count):
                processes.append(_start(folder, rank, count, str(Path(place) / "rendezvous")))
            failed = _watch(processes)
        finally:
            _end(processes)
    if failed is None:
        return processes[0].returncode
    returncode = processes[failed].returncode
    return explain(folder, failed, Death(returncode, restart.killed_by(returncode, kills)), started)


def _start(folder: RunFolder, rank: int, count: int, rendezvous: str) -> "subprocess.Popen[bytes]":
    threads = max(1, len(_cores()) // count)
    log = None if rank == 0 else open_inside(folder.path, log_name(rank), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        return subprocess.Popen(
            process_command(folder, rank, count, rendezvous),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={"OMP_NUM_THREADS": str(threads), **os.environ},
            preexec_fn=supervisor.die_with(os.getpid()),
        )
    finally:
        if log is not None:
            os.close(log)


def _cores() -> Sequence[int]:
    return [*os.sched_getaffinity(0)] if sys.platform == "linux" else range(os.cpu_count() or 1)


def process_command(folder: RunFolder, rank: int, count: int, rendezvous: str) -> list[str]:
    """The command of one of the run's processes; see `take_part`."""
    place = ["--rank", str(rank), "--of", str(count), "--rendezvous", rendezvous]
    return python_command("backend", process_tree.ROLE, str(folder.path), *place)


def log_name(rank: int) -> str:
    """The file of the run folder with what the process of this rank prints."""
    return f"process-{rank}.log" if rank else "process.log"


def _watch(processes: Sequence["subprocess.Popen[bytes]"]) -> int | None:
    """Wait until all have ended, or one has failed, and return its rank."""
    until = float("inf")
    while True:
        codes = [process.poll() for process in processes]
        failed = next((rank for rank, code in enumerate(codes) if code not in (None, 0, INTERRUPTED_EXIT_CODE)), None)
        if failed is not None or None not in codes or time.monotonic() >= until:
            return failed
        if codes[0] is not None:
            until = min(until, time.monotonic() + LEAVE_SECONDS)
        time.sleep(POLL_SECONDS)


def _end(processes: Sequence["subprocess.Popen[bytes]"]) -> None:
    left = [process for process in processes if process.poll() is None]  # the number of another may have a new owner
    for process in left:
        process_tree.kill(process.pid)
    for process in left:
        process.wait()


def _note_failure(folder: RunFolder, rank: int, error: Exception) -> None:
    log = EventLog(folder.path / f"process-{rank}.jsonl")
    log.write(failure_event(error, 0, FailureContext(folder)))
    log.close()


def explain(folder: RunFolder, rank: int, death: Death, started: float) -> int:
    """Write the run's last event, unless the first process did. Returns the run's exit code.

    If the supervisor restarts the run after such a death, this process dies so too.
    """
    log = EventLog(folder.events)  # cuts what the first process has half written
    events = landmarks(folder.events)
    last = events[-1] if events else None
    if not isinstance(last, RunFinished) or last.time < started:
        step = last_step(events)
        last = _own_words(folder, rank, step, started) or _found_dead(folder, rank, death, step)
        if _will_restart(folder, last, death):
            sentence = join("; ", filter(None, (last.message, last.hint)))
            code = _CODES.get(death.killed_by, PROCESS_LOST) if death.is_elsewhere else PROCESS_LOST
            log.write(Warned(time=time.time(), code=code, message=sentence))
            log.close()
            _die_of(-death.returncode)
        log.write(last)
    log.close()
    return exit_code(last.state)


def _will_restart(folder: RunFolder, last: RunFinished, death: Death) -> bool:
    """Whether the supervisor restarts the run if this process dies as the lost one did."""
    record = folder.process_record()
    if record is None or last.code != PROCESS_LOST:
        return False
    return restart.restart_after(folder, record, death.returncode, death.killed_by) is not None


def _die_of(number: int) -> NoReturn:
    with suppress(OSError):  # SIGKILL has no handler
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    raise AssertionError(number)


def last_step(events: Iterable[AnyEvent]) -> int:
    """The step that a run's events have reached."""
    step = 0
    for event in events:
        if isinstance(event, StepFinished):
            step = event.step
        elif isinstance(event, RunResumed):
            step = event.from_step
    return step


def _own_words(folder: RunFolder, rank: int, step: int, started: float) -> RunFinished | None:
    """What the process itself has said."""
    found = read_events(folder.path / f"process-{rank}.jsonl")[-1:]
    if not found or not isinstance(found[0], RunFinished) or found[0].time < started:
        return None
    own = found[0]
    return RunFinished(
        time=time.time(),
        state="failed",
        step=step,
        message=message("rank {rank}: {sentence}", rank=rank, sentence=own.message),
        code=own.code,
        hint=own.hint or _end_of_log(folder, rank),
        mend=own.mend,
        field=own.field,
    )


def _found_dead(folder: RunFolder, rank: int, death: Death, step: int) -> RunFinished:
    returncode = death.returncode
    if returncode == -signal.SIGABRT and _NCCL_TIMED_OUT in _read_log(folder, rank):
        error = RunFailed(
            "rank {rank}: NCCL timed out while the GPUs exchanged numbers", "collective_failed", rank=rank
        )
        return failure_event(error, step, FailureContext(folder))
    if death.sentence:
        how = death.sentence
    elif returncode == -9:
        how = restart.kill_words(death.killed_by)
    elif returncode < 0:
        how = message("the process was terminated by {name}", name=signal.Signals(-returncode).name)
    else:
        how = message("the process exited with code {returncode}", returncode=returncode)
    sentence, context = message("rank {rank}: {sentence}", rank=rank, sentence=how), FailureContext(folder)
    hint, mend = "" if death.sentence else _end_of_log(folder, rank), RunFix(resume=context.can_resume)
    if death.killed_by == "memory":  # what helps a process that says so itself helps this one too
        told = failure_event(RunFailed("{sentence}", "out_of_memory", sentence=sentence), step, context)
        hint, mend = told.hint, told.mend or mend
    return RunFinished(
        time=time.time(), state="failed", step=step, message=sentence, code=PROCESS_LOST, hint=hint, mend=mend
    )


def _end_of_log(folder: RunFolder, rank: int) -> str:
    """Its last lines, in a sentence; empty if it has none."""
    lines = [line.strip() for line in _read_log(folder, rank).splitlines() if line.strip()]
    end = redact(" / ".join(lines[-SHOWN_LINES:]))[-SHOWN_CHARACTERS:]
    return message("{name} ends with: {end}", name=log_name(rank), end=end) if end else ""


def _read_log(folder: RunFolder, rank: int) -> str:
    """Its last part; empty if it cannot be read."""
    try:
        with os.fdopen(open_inside(folder.path, log_name(rank), os.O_RDONLY), "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - LOG_BYTES))
            return file.read().decode(errors="replace")
    except OSError:
        return ""
