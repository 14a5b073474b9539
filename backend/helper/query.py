"""What a query is, and how its arguments are validated."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from backend.contract.errors import InputError
from backend.contract.rpc.protocol import Progress

ReportProgress = Callable[[Progress], None]
"""Called with how far a long answer is."""
Arguments = dict[str, Any]
DEVICE_GIVEN_UP = 75
"""Exit code of a worker that made room for a run on its accelerator."""


@dataclass(frozen=True)
class Query:
    """One query. `answer` gets its arguments and may raise InputError; it runs in a worker process."""

    name: str
    answer: Callable[..., Any]
    """Takes (Arguments, ReportProgress), and where it `can_stop` also `stop_requested`."""
    warm_by: str = ""
    """The argument whose value a worker keeps in memory, so that the next question about it goes to the same worker."""
    takes_device: bool = False
    """The worker may hold an accelerator afterwards, so it is ended with the answer."""
    can_stop: bool = False
    """It asks `stop_requested` again and again and then raises GenerationStopped; what is open stays open."""
    trains: bool = False
    """It starts a training, whose time is to be that of a run: a worker with normal priority answers only this.

    What a worker starts has its priority, and no process may raise its own again, so that worker never lowers it.
    """


def require(arguments: Arguments, name: str, kind: type | tuple[type, ...] = str) -> Any:
    """A required argument. Raises InputError."""
    value = arguments.get(name)
    if not isinstance(value, kind):
        raise InputError("the query needs {name}", name=repr(name))
    return value


def require_list(arguments: Arguments, name: str, most: int) -> list[Any]:
    """A list argument with a maximum length, empty if missing. Raises InputError."""
    values = list(arguments.get(name) or [])
    if len(values) > most:
        raise InputError(
            "{name}: {values:,} values are too many for one query (at most {most:,}); split them into several queries",
            name=name,
            values=len(values),
            most=most,
        )
    return values


def reporting(report: ReportProgress) -> Callable[[int, int, str], None]:
    """`report` as the function that data and models report their progress to."""
    return lambda done, total, unit: report(Progress(done, total, unit))
