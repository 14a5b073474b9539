"""Runs long work on a thread, while the main thread checks for requests to stop."""

import threading
from collections.abc import Callable
from typing import Any

from backend.contract.errors import panics_as_errors

POLL_SECONDS = 0.1


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
    while thread.is_alive():
        poll()
        thread.join(POLL_SECONDS)
    result, error = given[0]
    if error is not None:
        raise error
    return result
