"""Runs work on a thread: what takes long, while the main thread checks for requests to stop, or what is needed next."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Generic, TypeVar

from backend.contract.errors import panics_as_errors

POLL_SECONDS = 0.1

Value = TypeVar("Value")

_abandoned: list[threading.Thread] = []


class Interrupted(Exception):
    """The run was interrupted during a long stage."""

    def __init__(self, request: str) -> None:
        super().__init__(request)
        self.request = request


def run_beside(work: Callable[[], Any], poll: Callable[[], None], name: str) -> Any:
    """The result or exception of `work`. `poll` is called meanwhile; if it raises, the work is abandoned."""
    given: list[tuple[Any, Exception | None]] = []

    def run() -> None:
        try:
            with panics_as_errors():
                given.append((work(), None))
        except Exception as error:
            given.append((None, error))

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    thread.join(POLL_SECONDS)
    try:
        while thread.is_alive():
            poll()
            thread.join(POLL_SECONDS)
    except BaseException:
        _abandoned.append(thread)
        raise
    result, error = given[0]
    if error is not None:
        raise error
    return result


def has_abandoned_work() -> bool:
    """Whether work that was abandoned still runs. Python ends such a thread at its own exit, and aborts if that is in C++."""
    return any(thread.is_alive() for thread in _abandoned)


class Prefetcher(Generic[Value]):
    """The values of `make` for one number after another; a thread makes the next one while the last is used.

    `make` is called for one number at a time, and what it raises is raised by `take`. Unless it `is_ahead`, there is no
    thread, and each value is made when it is taken.
    """

    def __init__(self, make: Callable[[int], Value], last: int, *, is_ahead: bool) -> None:
        self._make, self._last = make, last
        self._pool = ThreadPoolExecutor(1, "prefetching") if is_ahead else None
        self._next: tuple[int, Future[Value]] | None = None

    def take(self, number: int) -> Value:
        """The value for this number, which is at most the last."""
        if self._pool is None:
            return self._make(number)
        is_there = self._next is not None and self._next[0] == number
        future = self._next[1] if self._next is not None and is_there else self._pool.submit(self._make, number)
        value = future.result()
        self._next = (number + 1, self._pool.submit(self._make, number + 1)) if number < self._last else None
        return value

    def close(self) -> None:
        """Drop what was not taken, and end the thread."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
