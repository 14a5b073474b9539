"""Says what a run's process died of, and whether the supervisor restarts the run after it (stdlib only)."""

import os
import signal
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from backend.contract.messages import message, plural
from backend.contract.processes import INTERRUPTIONS
from backend.contract.run.folder import ENDS, ExitRecord, ProcessRecord, RunFolder
from backend.contract.safe_files import open_unlinked
from backend.contract.safe_text import parse_json

LAST_BYTES = 1_000_000
"""Of the events, in which the last one is."""
LAST_LOG_BYTES = 20_000
MAX_PREEMPTIONS = 20
"""Restarts in a row, without a new checkpoint, of a run whose node a cluster takes back."""
LOSSES = {"lost_for_memory": "memory", "preempted": "preemption", "node_lost": "node", "lost": ""}
"""Code of the event with which an engine process ends after the death of a process elsewhere → `ExitRecord.killed_by` of that one."""
LOST_HOST = b"JAX distributed service detected fatal errors"
"""What JAX prints before it aborts a process because another host is gone."""


@dataclass(frozen=True)
class MemoryKills:
    """How many processes the kernel has killed for want of memory; None if it does not say."""

    own: int | None
    """In this process's control group, to which a session, a job or a container belongs."""
    system: int | None
    """On the whole computer since it booted."""


def count_memory_kills() -> MemoryKills:
    """What the kernel has counted until now."""
    return MemoryKills(_kills_of_group(), _oom_kills(Path("/proc/vmstat")))


def _kills_of_group(root: Path = Path("/sys/fs/cgroup"), groups: Path = Path("/proc/self/cgroup")) -> int | None:
    try:
        lines = [line.split(":", 2) for line in groups.read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError):
        return None
    for _, controllers, path in (line for line in lines if len(line) == 3):
        inside = path.strip("/")
        if not controllers:
            places = [root / inside / "memory.events"]
        elif "memory" in controllers.split(","):  # version 1; in a container its own group is the root
            places = [root / "memory" / inside / "memory.oom_control", root / "memory" / "memory.oom_control"]
        else:
            continue
        for place in places:
            if (found := _oom_kills(place)) is not None:
                return found
    return None


def _oom_kills(path: Path) -> int | None:
    try:
        lines = path.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), None)


def killed_by(returncode: int, before: MemoryKills) -> str:
    """See `ExitRecord.killed_by`. Where only the whole computer is counted, a kill may have been another program's."""
    if returncode != -9:
        return ""
    now = count_memory_kills()
    if now.own is not None and before.own is not None:
        return "memory" if now.own > before.own else "signal"
    if now.system is not None and now.system == before.system:
        return "signal"
    return ""


def killed_elsewhere(folder: RunFolder, started: float) -> str | None:
    """The same of a process on another computer, whose death the engine process has told of and then died of itself; else None."""
    if folder.remote.exists():  # what its events tell is not of the mirror
        return None
    last = _last_event(folder)
    is_told = last.get("event") == "Warned" and isinstance(last.get("time"), int | float) and last["time"] >= started
    return LOSSES.get(str(last.get("code"))) if is_told else None


def death_words(number: int, killed_by: str, log: Path) -> str:
    """How a process ended that got this signal."""
    name = signal.Signals(number).name
    if name == "SIGKILL":
        return kill_words(killed_by)
    if name == "SIGABRT" and _ends_without_host(log):
        return message(
            "another host of the run is gone or does not answer, so JAX ended the process; see {log}", log=log.name
        )
    return message(
        "the engine process was terminated by {name}; see {name_2} for a possible reason", name=name, name_2=log.name
    )


def _ends_without_host(log: Path) -> bool:
    try:
        with open_unlinked(log) as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - LAST_LOG_BYTES))
            return LOST_HOST in file.read()
    except OSError:
        return False


def kill_words(killed_by: str) -> str:
    """How a process ended that got SIGKILL; see `ExitRecord.killed_by`."""
    if killed_by == "memory":
        return message("the engine process was killed (SIGKILL), because the system ran out of memory")
    if killed_by == "preemption":
        return message("the cluster took back a node of the run")
    if killed_by == "node":
        return message("a node of the run, or the cluster's process on it, is gone")
    if killed_by == "signal":
        return message(
            "the engine process was killed (SIGKILL) by a person or another program; the system had enough memory"
        )
    return message("the engine process was killed (SIGKILL), which usually means that the system ran out of memory")


def restart_after(folder: RunFolder, record: ProcessRecord, returncode: int, killed_by: str) -> ProcessRecord | None:
    """The record of the attempt that follows by itself on one that died so; None if the run ends here.

    A death is a signal that nobody asked for. Out of memory twice without a new checkpoint would be out of memory a third time.
    A node that a cluster takes back says nothing about the run, so it does not count as one of `max_restarts`.
    """
    if returncode >= 0 or signal.Signals(-returncode).name in (*INTERRUPTIONS, "SIGINT"):
        return None
    if not folder.exists() or folder.open_request() in ENDS or _has_said_its_end(folder, record.started):
        return None
    progress = newest_progress(folder)
    before, preemptions = (record.restarts, record.preemptions) if progress == record.checkpoint else (0, 0)
    following = replace(
        record, attempt=record.attempt + 1, engine_pid=0, checkpoint=progress, restarts=before, preemptions=preemptions,
        died_of=-returncode, killed_by=killed_by,
    )  # fmt: skip
    if killed_by == "preemption":
        is_tried = record.max_restarts > 0 and preemptions < MAX_PREEMPTIONS
        return replace(following, preemptions=preemptions + 1) if is_tried else None
    if before >= (record.max_restarts if progress else min(1, record.max_restarts)):
        return None
    if before and killed_by == record.killed_by == "memory":
        return None
    return replace(following, restarts=before + 1)


def _has_said_its_end(folder: RunFolder, started: float) -> bool:
    """Whether the attempt's last event says how it ended: what a library does while the process exits may crash."""
    if folder.remote.exists():  # its events bear another computer's clock
        return False
    last = _last_event(folder)
    return last.get("event") == "RunFinished" and isinstance(last.get("time"), int | float) and last["time"] >= started


def _last_event(folder: RunFolder) -> dict[str, Any]:
    """The values of the last event; none if there is none, or only half of it."""
    try:
        with open_unlinked(folder.events) as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - LAST_BYTES))
            found = parse_json(file.read().splitlines()[-1])
    except (OSError, ValueError, LookupError):
        return {}
    return found if isinstance(found, dict) else {}


def newest_progress(folder: RunFolder) -> int:
    """What grows while an attempt is worth repeating: the newest checkpoint, or how much of another computer's run is copied.

    Of a search, the newest checkpoints of all its trials.
    """
    if folder.remote.exists():
        return folder.events.stat().st_size if folder.events.exists() else 0
    if folder.search.exists() and folder.trials.is_dir():
        return sum(newest_progress(RunFolder(trial)) for trial in folder.trials.iterdir())
    return max(folder.checkpoint_steps(), default=0)


def describe_end(folder: RunFolder, record: ProcessRecord, ended: ExitRecord) -> str:
    """How the last attempt ended, and that restarting did not help."""
    if not record.restarts or ended.returncode >= 0 or ended.state or newest_progress(folder) != record.checkpoint:
        return ended.message
    if ended.killed_by == record.killed_by == "memory":
        return message("{reason}, again after a restart and before a new checkpoint", reason=ended.message)
    return plural(
        "{reason}; a restart did not reach a new checkpoint",
        "{reason}; {count} restarts in a row did not reach a new checkpoint",
        record.restarts,
        reason=ended.message,
    )
