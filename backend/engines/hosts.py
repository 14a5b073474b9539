"""What an engine provides to a run of several processes or hosts: how they meet, and a store that all hosts read."""

from dataclasses import dataclass
from typing import Any, Protocol

from backend.contract.messages import message

OPEN = "BURNISH_OPEN_COORDINATOR"
"""Environment variable with which the user agrees to processes that meet at a public address; no spec can."""
TCP = "tcp://"
"""Before the address at which processes meet, if that is not a file."""


@dataclass(frozen=True)
class Position:
    """Which of a run's hosts this one is."""

    number: int = 0
    """Counted from 0; the first writes the run's files, and what it decides counts."""
    count: int = 1
    coordinator: str = ""
    """`host:port` at which the first can be reached."""
    timeout: float = 300.0
    """Seconds that hosts wait for each other before the run starts."""

    @property
    def is_first(self) -> bool:
        """Whether this host writes the run's files."""
        return self.number == 0


def describe_wait(seconds: float) -> str:
    """How long a host waited, in words; unrounded, as the setting says it."""
    return message("1 second") if seconds == 1 else message("{seconds:g} seconds", seconds=seconds)


class Store(Protocol):
    """The framework's own store of words that every host reads. Each method raises RunFailed if the first host cannot be reached."""

    def put(self, key: str, word: str) -> None:
        """Write a word, replacing an older one of that key."""
        ...

    def get(self, key: str, seconds: float) -> str | None:
        """Wait for a word and return it; None if it does not appear within this many seconds."""
        ...

    def forget(self, folder: str) -> None:
        """Delete every word whose key starts with `folder/`."""
        ...

    def wait_for_all(self, name: str) -> None:
        """Wait until every host has called this."""
        ...

    def is_torn(self, error: Exception) -> bool:
        """Whether an error may be caused by another host's exit."""
        ...

    def leave(self) -> None:
        """Wait until all hosts leave, and close. Raises RunFailed if one does not arrive."""
        ...


class EngineOfProcesses(Protocol):
    """What an engine that trains in several processes has besides an `EngineEntry`."""

    @staticmethod
    def join_processes(rank: int, count: int, rendezvous: str) -> None:
        """Meet the other processes of the run through a file of this computer, or at `tcp://HOST:PORT` on the first one's.

        Then the first process's `create` leads them.
        """
        ...

    @staticmethod
    def follow() -> None:
        """In every process but the first: compute what that one wants, until it is done."""
        ...

    @staticmethod
    def leave_processes() -> None:
        """In the first process: let the others end."""
        ...


class EngineOfHosts(Protocol):
    """What an engine that trains on several hosts has besides an `EngineEntry`."""

    @staticmethod
    def position(settings: Any) -> Position:
        """Which of the run's hosts this one is. Raises InputError if that cannot be determined."""
        ...

    @staticmethod
    def join(position: Position) -> Store:
        """Connect to the other hosts, before any other use of the framework. Raises RunFailed if one is missing.

        From here on the framework watches them, and ends this process if one is gone and nothing else would end it.
        """
        ...
