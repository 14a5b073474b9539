"""The queue: runs of one folder that start in turn, as soon as the devices that they need are free (stdlib only)."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import TypeVar

from backend.contract.run.folder import WHOLE_COMPUTER, DeviceDemand, RunFolder, run_folders
from backend.contract.run.lock import hold_lock

Run = TypeVar("Run")
DECIDING = ".queue.lock"
"""In the runs' folder; held while a run checks whether it is its turn, so that two never check at once."""


@dataclass(frozen=True)
class RunQueue:
    """The runs of one folder that a process is running or holding in the queue."""

    running: list[RunFolder]
    waiting: list[RunFolder]
    """In the order in which they will begin."""

    def ahead(self, folder: RunFolder) -> list[RunFolder]:
        """The runs that the queued `folder` is waiting for."""
        earlier = takewhile(lambda other: not _is_same(other, folder), self.waiting)
        return runs_ahead(
            folder.demand(),
            [(run, run.claimed_devices()) for run in self.running],
            [(run, run.demand()) for run in earlier],
        )

    def awaited(self, folder: RunFolder) -> list[RunFolder]:
        """What to tell people that it is waiting for: the active ones of `ahead`, or else the next one."""
        ahead = self.ahead(folder)
        return [run for run in ahead if run in self.running] or ahead[-1:]


def runs_ahead(
    demand: DeviceDemand,
    running: Iterable[tuple[Run, frozenset[str] | None]],
    earlier: Iterable[tuple[Run, DeviceDemand]],
) -> list[Run]:
    """The running runs, with their devices, and the queued ones before it that leave a run too few devices.

    A run that has not chosen its devices yet, or whose devices are unknown, may take any.
    """
    wanted, ahead = set(demand.devices), []
    free = wanted
    for run, claimed in running:
        taken = wanted if claimed is None else wanted & claimed
        if taken or not wanted:
            ahead.append(run)
            free = free - taken
    left = len(free)
    for run, other in earlier:
        shared = wanted & set(other.devices) if other.devices else wanted
        if shared or not wanted:
            ahead.append(run)
            left -= min(other.count, len(shared)) if other.devices else len(shared)
    return [] if wanted and left >= demand.count else ahead


def queue_of(runs: Path) -> RunQueue:
    """The queue of the runs in a folder, based on the kernel's locks: a killed run does not block others."""
    alive = [(run, run.queued_since()) for run in run_folders(runs) if run.is_carried()]
    waiting = sorted((since, run.name, run) for run, since in alive if since is not None)
    return RunQueue([run for run, since in alive if since is None], [run for *_, run in waiting])


def join(folder: RunFolder, demand: DeviceDemand = WHOLE_COMPUTER) -> None:
    """Queue a run behind those already waiting, even if the clock was set back."""
    joined = (run.queued_since() or 0.0 for run in queue_of(folder.path.parent).waiting)
    folder.join_queue(after=max(joined, default=0.0), demand=demand)


def is_ahead(other: RunFolder, folder: RunFolder) -> bool:
    """Whether `folder` must wait for `other`, whatever others do: it is running, or joined the queue earlier."""
    own, demand = folder.queued_since(), folder.demand()
    if own is None or not other.is_carried() or demand.count < len(demand.devices):
        return False
    since = other.queued_since()
    return since is None or (since, other.name) < (own, folder.name)


def take_turn(folder: RunFolder) -> RunFolder | None:
    """Let a run leave the queue if it is its turn; else return one ahead of it. Raises RunLocked if another decides."""
    runs = folder.path.parent
    with hold_lock(runs / DECIDING, of_all_users=True):
        before = next(iter(queue_of(runs).ahead(folder)), None)
        if before is None:
            folder.leave_queue()
        return before


def _is_same(one: RunFolder, other: RunFolder) -> bool:
    """Whether both are one folder, even through a link, or with different case on a case-insensitive disk."""
    try:
        return one.path.samefile(other.path)
    except OSError:  # deleted meanwhile
        return one.path == other.path
