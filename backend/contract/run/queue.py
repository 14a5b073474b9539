"""The queue: runs of one folder that start one after another, when those before them have ended (stdlib only)."""

from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from backend.contract.run.folder import RunFolder, run_folders
from backend.contract.run.lock import hold_lock

DECIDING = ".queue.lock"
"""In the runs' folder; held by whoever finds out whether it is its turn, so that two never do at once."""


@dataclass(frozen=True)
class RunQueue:
    """The runs of one folder that a process carries."""

    running: list[RunFolder]
    waiting: list[RunFolder]
    """In the order in which they will begin."""

    def ahead(self, folder: RunFolder) -> list[RunFolder]:
        """What `folder`, which waits, waits for."""
        return [*self.running, *takewhile(lambda other: not _is_same(other, folder), self.waiting)]


def queue_of(runs: Path) -> RunQueue:
    """The queue of the runs in a folder. The kernel's locks are asked: a run that was killed is in nobody's way."""
    alive = [(run, run.queued_since()) for run in run_folders(runs) if run.is_carried()]
    waiting = sorted((since, run.name, run) for run, since in alive if since is not None)
    return RunQueue([run for run, since in alive if since is None], [run for *_, run in waiting])


def join(folder: RunFolder) -> None:
    """Let a run wait behind those that are there already, even if the clock was put back meanwhile."""
    joined = (run.queued_since() or 0.0 for run in queue_of(folder.path.parent).waiting)
    folder.join_queue(after=max(joined, default=0.0))


def is_ahead(other: RunFolder, folder: RunFolder) -> bool:
    """Whether `folder` waits for `other`: it is going on, or waits and joined the queue before."""
    own = folder.queued_since()
    if own is None or not other.is_carried():
        return False
    since = other.queued_since()
    return since is None or (since, other.name) < (own, folder.name)


def take_turn(folder: RunFolder) -> RunFolder | None:
    """Let a run leave the queue if it is its turn; otherwise one that it waits for. Raises RunLocked while another decides."""
    runs = folder.path.parent
    with hold_lock(runs / DECIDING, of_all_users=True):
        before = next(iter(queue_of(runs).ahead(folder)), None)
        if before is None:
            folder.leave_queue()
        return before


def _is_same(one: RunFolder, other: RunFolder) -> bool:
    """Also where one is named by a link, or in other letters on a disk that takes large and small ones for the same."""
    try:
        return one.path.samefile(other.path)
    except OSError:  # deleted meanwhile
        return one.path == other.path
