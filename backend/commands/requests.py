"""`burnish stop`, `pause` and `checkpoint` send a request to a run; `start` and `queue` start or move a queued one."""

from argparse import ArgumentParser, Namespace

from backend.commands.command import Command, requested_group, requested_run
from backend.contract.errors import InputError
from backend.contract.run import queue
from backend.contract.run.folder import RunFolder
from backend.contract.run.lock import RunLocked
from backend.contract.safe_text import one_line

PROMISES = {
    "stop": "it saves a checkpoint and its model, then ends",
    "pause": "it saves a checkpoint, then ends; burnish resume continues it",
    "checkpoint": "it saves a checkpoint after the current step and continues",
}
LEAVES = "it leaves the queue"
"""How a waiting run reacts to a request to stop or pause."""


def _arguments(parser: ArgumentParser, what: str = "a run") -> None:
    parser.add_argument("run", metavar="RUN", help=f"name or folder of {what}")


def _request_arguments(parser: ArgumentParser) -> None:
    _arguments(parser, "a run, or of a group for all of its runs")


def _stop_arguments(parser: ArgumentParser) -> None:
    _request_arguments(parser)
    parser.add_argument("--now", action="store_true", help="end the processes immediately, without a checkpoint")


def _request(arguments: Namespace) -> int:
    if (group := requested_group(arguments.run)) is None:
        return _request_of(_running(requested_run(arguments.run), arguments.command), arguments)
    alive = [run for run in group.made_runs() if run.life() == "alive"]
    if arguments.command == "checkpoint":
        alive = [run for run in alive if not run.waits()]
    if not alive:
        raise InputError(f"{group.name}: no run of this group is running, so there is nothing to {arguments.command}")
    for run in sorted(alive, key=RunFolder.waits, reverse=True):  # those in the queue first, else the next would start
        _request_of(run, arguments)
    return 0


def _request_of(folder: RunFolder, arguments: Namespace) -> int:
    kind: str = arguments.command
    waits = folder.waits()
    if waits and kind == "checkpoint":
        raise InputError(f"{folder.name}: this run waits in the queue, so there is nothing to save yet")
    if getattr(arguments, "now", False) and not waits:
        from backend.launchers.launcher import launcher_of  # loads pydantic

        launcher_of(folder).end_now(folder)
        print(
            f"{one_line(folder.name)}: its processes are being stopped; burnish resume continues from the last checkpoint"
        )
        return 0
    try:
        folder.request(kind)
    except OSError as error:
        raise InputError(f"{folder.path}: the request cannot be written there: {error.strerror}") from None
    print(f"{one_line(folder.name)}: {kind} asked for; {LEAVES if waits else PROMISES[kind]}")
    return 0


def _start(arguments: Namespace) -> int:
    folder = requested_run(arguments.run)
    from backend.preflight import resolve  # loads pydantic, pyarrow and the data room; a wrong name is said before

    resolve.read_run(folder, to_write=True)
    if not folder.is_queued():
        hint = f"burnish resume {folder.name} starts it" if folder.life() != "alive" else "it has already started"
        raise InputError(f"{folder.name}: this run is not in the queue; {hint}")
    try:
        queue.start_now(folder)
    except OSError as error:
        raise InputError(f"{folder.queued}: it cannot be removed: {error.strerror}") from None
    print(f"{one_line(folder.name)}: it starts now, even if other runs are in progress")
    return 0


def _queue_arguments(parser: ArgumentParser) -> None:
    _arguments(parser)
    parser.add_argument(
        "move", metavar="MOVE", choices=list(queue.MOVES), help="next (to the front), earlier or later (by one place)"
    )


def _move(arguments: Namespace) -> int:
    folder = requested_run(arguments.run)
    folder.check(to_write=True)
    try:
        place = queue.move(folder, queue.MOVES[arguments.move])
    except RunLocked:
        raise InputError(f"{folder.name}: another run is about to start; try again") from None
    except OSError as error:
        raise InputError(f"{folder.queued}: it cannot be changed: {error.strerror}") from None
    if place is None:
        raise InputError(f"{folder.name}: this run is not in the queue")
    print(f"{one_line(folder.name)}: it is number {place} in the queue")
    return 0


def _running(folder: RunFolder, kind: str) -> RunFolder:
    life = folder.life()
    if life != "alive" and (remote := folder.remote_run()) is not None:
        raise InputError(
            f"{folder.name}: nothing here follows this run; burnish resume {folder.name} connects to {one_line(remote.machine)} again"
        )
    if life != "alive":
        raise InputError(f"{folder.name}: this run is not running ({life}), so there is nothing to {kind}")
    return folder


COMMANDS = (
    Command("start", "start a queued run now", _arguments, _start),
    Command("queue", "move a queued run within the queue", _queue_arguments, _move),
    Command("stop", "stop a run, saving a checkpoint and the model", _stop_arguments, _request),
    Command("pause", "pause a run, saving a checkpoint to resume from", _request_arguments, _request),
    Command("checkpoint", "make a run save a checkpoint now", _request_arguments, _request),
)
