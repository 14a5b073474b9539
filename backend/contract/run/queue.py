"""The queue: runs of one folder that start in turn, as soon as the devices that they need are free (stdlib only)."""

import math
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import TypeVar

from backend.contract.run.folder import WHOLE_COMPUTER, DeviceRequest, RunFolder, run_folders
from backend.contract.run.lock import CHANGE_TRIES, LOCK_TRIES, RunLocked, hold_lock, take_lock

Run = TypeVar("Run")
MOVES = {"next": -sys.maxsize, "earlier": -1, "later": 1}
"""How a person moves a queued run → the number of places, as `move` takes it."""
DECIDING = ".queue.lock"
"""In the runs' folder; held while a run checks whether it is its turn or chooses its devices, so that two never do at once."""


@dataclass(frozen=True)
class RunQueue:
    """The runs of one folder that a process is running or holding in the queue."""

    running: list[RunFolder]
    waiting: list[RunFolder]
    """In the order in which they will begin."""

    def find_blocking_runs(self, folder: RunFolder) -> list[RunFolder]:
        """The runs that keep the queued `folder` from starting."""
        earlier = takewhile(lambda other: not _is_same(other, folder), self.waiting)
        return find_blocking_runs(
            folder.device_request(),
            [(run, run.claimed_devices()) for run in self.running],
            [(run, run.device_request()) for run in earlier],
        )

    def find_awaited_runs(self, folder: RunFolder) -> list[RunFolder]:
        """What to tell people that it is waiting for: the blocking runs that are active, or else the next in the queue."""
        blocking = self.find_blocking_runs(folder)
        return [run for run in blocking if run in self.running] or blocking[-1:]


def find_blocking_runs(
    request: DeviceRequest,
    running: Iterable[tuple[Run, frozenset[str] | None]],
    earlier: Iterable[tuple[Run, DeviceRequest]],
) -> list[Run]:
    """The running runs, with their devices, and the earlier ones of the queue that leave a run too few devices.

    A run that has not chosen its devices yet, or whose devices are unknown, may take any.
    """
    wanted, blocking = set(request.devices), []
    free, reserved = wanted, 0
    for run, claimed in running:
        taken = wanted if claimed is None else wanted & claimed
        if taken or not wanted:
            blocking.append(run)
            free = free - taken
    for run, other in earlier:
        shared = wanted & set(other.devices) if other.devices else wanted
        if shared or not wanted:
            blocking.append(run)
            if other.takes_all:
                free = free - shared
            else:
                reserved += min(other.count, len(shared))
    return [] if wanted and len(free) - reserved >= request.count else blocking


def queue_of(runs: Path) -> RunQueue:
    """The queue of the runs in a folder, based on the kernel's locks: a killed run does not block others."""
    return _queue_among(run_folders(runs))


def _queue_among(runs: Iterable[RunFolder]) -> RunQueue:
    alive = [(run, run.queued_since()) for run in runs if run.is_carried()]
    waiting = sorted((since, run.name, run) for run, since in alive if since is not None)
    return RunQueue([run for run, since in alive if since is None], [run for *_, run in waiting])


def join(folder: RunFolder, request: DeviceRequest = WHOLE_COMPUTER) -> None:
    """Queue a run behind those already waiting, even if the clock was set back."""
    joined = (run.queued_since() or 0.0 for run in queue_of(folder.path.parent).waiting)
    folder.join_queue(after=max(joined, default=0.0), request=request)


def is_blocked(folder: RunFolder, by: list[RunFolder]) -> bool:
    """Whether these runs alone still block a queued one. It reads far fewer files than `take_turn`."""
    few = (by[:1], by)  # usually the first one suffices
    return any(_queue_among([*runs, folder]).find_blocking_runs(folder) for runs in few)


def move(folder: RunFolder, places: int) -> int | None:
    """Move a queued run back by as many places, or forward by negative ones, as far as the queue goes.

    Returns its new place, counted from 1; None if it does not wait (any longer). Raises RunLocked if another decides.
    """
    runs = folder.path.parent
    with hold_lock(runs / DECIDING, of_all_users=True):
        waiting = queue_of(runs).waiting
        place = next((number for number, run in enumerate(waiting) if _is_same(run, folder)), None)
        if place is None:
            return None
        others = [run for run in waiting if not _is_same(run, folder)]
        after = max(0, min(len(others), place + places))
        if after == place:
            return place + 1
        moments = [run.queued_since() or 0.0 for run in others]
        moments.insert(after, _moment_between(moments[:after], moments[after:]))
        order = [*others[:after], folder, *others[after:]]
        joined = -math.inf
        # The others, which may belong to other users, keep their moments, unless there is none between two of them.
        for run, moment in zip(order, moments, strict=True):
            joined = max(moment, math.nextafter(joined, math.inf))
            if run.queued_since() not in (joined, None):  # None: it has just left the queue
                run.rejoin_queue(joined)
        return after + 1


def _moment_between(earlier: list[float], later: list[float]) -> float:
    """When a run would have joined that is behind the one and before the other; one of them may be empty."""
    if not earlier:
        return later[0] - 1
    return (earlier[-1] + later[0]) / 2 if later else earlier[-1] + 0.001


def start_now(folder: RunFolder) -> None:
    """Let a queued run begin regardless of others, but not while one is moved, which might queue it again."""
    with _deciding(folder.path.parent):
        folder.leave_queue()


def take_turn(folder: RunFolder) -> list[RunFolder]:
    """Let a run leave the queue if nothing blocks it; else return the runs that do. Raises RunLocked if another decides."""
    runs = folder.path.parent
    with hold_lock(runs / DECIDING, of_all_users=True):
        blocking = queue_of(runs).find_blocking_runs(folder)
        if not blocking:
            folder.leave_queue()
        return blocking


@contextmanager
def choosing_devices(folder: RunFolder) -> Iterator[frozenset[str]]:
    """The devices that the folder's other runs use or need next; until the block ends, no other run chooses."""
    runs = folder.path.parent
    with _deciding(runs, CHANGE_TRIES):
        queue = queue_of(runs)
        used = [run.claimed_devices() or () for run in queue.running if not _is_same(run, folder)]
        needed = [request.devices for run in queue.waiting if (request := run.device_request()).takes_all]
        yield frozenset().union(*used, *needed)


@contextmanager
def _deciding(runs: Path, tries: int = LOCK_TRIES) -> Iterator[None]:
    """Hold the queue's lock; go without if it cannot be taken: two runs may share a device, which is better than to fail."""
    with ExitStack() as stack:
        with suppress(OSError, RunLocked):
            stack.callback(os.close, take_lock(runs / DECIDING, tries, of_all_users=True))
        yield


def _is_same(one: RunFolder, other: RunFolder) -> bool:
    """Whether both are one folder, even through a link, or with different case on a case-insensitive disk."""
    try:
        return one.path.samefile(other.path)
    except OSError:  # deleted meanwhile
        return one.path == other.path
