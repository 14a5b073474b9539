"""What an engine provides to a run on several hosts: which host this is, and a board that all of them read."""

from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True)
class Position:
    """Which of a run's hosts this one is."""

    number: int = 0
    """Counted from 0; the first writes the run's files, and what it decides counts."""
    count: int = 1
    coordinator: str = ""
    """`host:port` at which the first can be reached."""
    timeout: float = 300.0
    """Seconds that hosts wait for one another before the run begins."""

    @property
    def is_first(self) -> bool:
        """Whether the run's files are this host's to write."""
        return self.number == 0


class Board(Protocol):
    """Notes that every host can write and read. Each method raises RunFailed where the first host cannot be reached."""

    def put(self, key: str, note: str) -> None:
        """Write a note; an older one of that name is replaced."""
        ...

    def get(self, key: str, seconds: float) -> str | None:
        """The note, as soon as it stands there; None where it does not after so many seconds."""
        ...

    def forget(self, folder: str) -> None:
        """Take every note away whose name begins with `folder/`."""
        ...

    def is_torn(self, error: Exception) -> bool:
        """Whether an error may come of another host that is gone."""
        ...

    def leave(self) -> None:
        """Wait until all hosts leave, and close. Raises RunFailed where one does not come."""
        ...


class EngineOfHosts(Protocol):
    """What the entry of an engine that trains on several hosts has beside an `EngineEntry`."""

    @staticmethod
    def position(settings: Any) -> Position:
        """Which of the run's hosts this one is. Raises InputError where nothing says so."""
        ...

    @staticmethod
    def join(position: Position) -> Board:
        """Meet the other hosts, before anything else is asked of the framework. Raises RunFailed where one does not come."""
        ...
