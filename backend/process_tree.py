"""Finds the processes of a run by ancestry, session, marker and command line, and ends them (stdlib only)."""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

MARKER = "BURNISH_RUN"
"""Environment variable that every process of a run inherits; its value is the run folder's path."""
ROLE = "_run"
"""The word before the run folder's path in the command line of a run's engine.

Supervisors are left out: the one that looks holds the lock, so any other is just being refused.
"""


@dataclass(frozen=True)
class ProcessInfo:
    """One living process as the system lists it; `session` is its process group if sessions are unknown."""

    pid: int
    parent: int
    session: int
    command: tuple[str, ...]
    run: str = ""


def processes() -> list[ProcessInfo]:
    """All living processes visible to this user; zombies are left out."""
    if Path("/proc/self/stat").exists():
        found = (_from_proc(int(entry.name)) for entry in Path("/proc").iterdir() if entry.name.isdigit())
        return [process for process in found if process]
    return [] if os.name == "nt" else _from_ps()


def of_run(run: str, session: int = 0) -> set[int]:
    """The processes that run this run folder: its descendants, even if re-parented."""
    every = processes()
    found = {process.pid for process in every if process.run == run or _is_engine(process, run)}
    if session:
        found |= {process.pid for process in every if process.session == session}
    return (found | _below(found, every)) - {os.getpid()}


def descendants(pid: int) -> set[int]:
    """Children of a process, their children, and so on."""
    return _below({pid}, processes()) - {pid}


def end_all(find: Callable[[], set[int]], seconds: float = 10.0) -> int:
    """Kill what `find` returns until it returns nothing; returns how many were killed. Gives up after `seconds`."""
    killed: set[int] = set()
    deadline = time.monotonic() + seconds
    while (left := find()) and time.monotonic() < deadline:
        for pid in left:
            kill(pid)
        killed |= left
        _reap()
        time.sleep(0.01)
    return len(killed)


def kill(pid: int) -> None:
    """Kill a process, on Windows with all its children."""
    if os.name == "nt":
        subprocess.run(["taskkill", "/F", "/T", "/PID", str(pid)], capture_output=True, check=False)
        return
    try:
        os.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return  # the process exited between the check and the kill, or its number now belongs to another user


def _reap() -> None:
    # A subreaper inherits orphans; without this the killed ones would stay as zombies.
    try:
        while os.name != "nt" and os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return


def _below(roots: set[int], every: list[ProcessInfo]) -> set[int]:
    found = set(roots)
    while more := {process.pid for process in every if process.parent in found} - found:
        found |= more
    return found


def _is_engine(process: ProcessInfo, run: str) -> bool:
    # The path alone is not enough: an editor or the window may have it in its command line too.
    return f" {ROLE} {run} " in f" {' '.join(process.command)} "


def _from_proc(pid: int) -> ProcessInfo | None:
    folder = Path(f"/proc/{pid}")
    try:
        state, parent, _, session = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[:4]
        command = (folder / "cmdline").read_bytes().decode(errors="replace").rstrip("\0").split("\0")
    except (OSError, ValueError):
        return None  # it ended while we looked
    if state in "ZX":
        return None
    return ProcessInfo(pid, int(parent), int(session), tuple(command), _run_of(folder / "environ"))


def _run_of(environment: Path) -> str:
    try:
        variables = environment.read_bytes().split(b"\0")
    except OSError:
        return ""  # another user's process
    prefix = f"{MARKER}=".encode()
    return next((os.fsdecode(line[len(prefix) :]) for line in variables if line.startswith(prefix)), "")


def _from_ps() -> list[ProcessInfo]:
    columns = ["ps", "-axww", "-o", "pid=,ppid=,pgid=,stat=,command="]
    lines = subprocess.run(columns, capture_output=True, text=True, check=True).stdout.splitlines()
    rows = (line.split(None, 4) for line in lines)
    return [
        ProcessInfo(int(row[0]), int(row[1]), int(row[2]), tuple(row[4].split(" ")))
        for row in rows
        if len(row) == 5 and not row[3].startswith("Z")
    ]
