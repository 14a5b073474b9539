"""Limits how long a server may take: a socket's timeout restarts with every byte, so a slow trickle would never end."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextvars import copy_context
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

ANSWER_SECONDS = 60.0
"""For the start of a reply, and again for the rest of one that is not a file."""
SILENT_SECONDS = 30.0
"""Without any byte received, unless the caller sets a limit."""
STALL_SECONDS, LEAST_BYTES = 60.0, 60_000
"""While a file arrives: waiting so long must bring so many bytes."""


class SlowServerError(Exception):
    """A server has not answered in time, or sends almost nothing."""


def run_in_time(ask: Callable[[], Any]) -> Any:
    """The result of `ask`, run in a thread so that no server can block it. Raises SlowServerError or its error."""
    answers: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()

    def run() -> None:
        try:
            answers.put((ask(), None))
        except BaseException as error:  # raised below, in the thread that waits
            answers.put((None, error))

    Thread(target=copy_context().run, args=(run,), daemon=True, name="waits for a server").start()
    try:
        answer, error = answers.get(timeout=ANSWER_SECONDS)
    except Empty:
        raise SlowServerError from None
    if error is not None:
        raise error
    return answer


def limit_total_time(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The chunks of a non-file answer. Raises SlowServerError if they take too long in total."""
    waited = 0.0
    for piece, seconds in _time_pieces(pieces):
        waited += seconds
        if waited > ANSWER_SECONDS:
            raise SlowServerError
        yield piece


def limit_stalls(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The chunks of a file. Raises SlowServerError if too little arrives while waiting."""
    waited, size = 0.0, 0
    for piece, seconds in _time_pieces(pieces):
        waited, size = waited + seconds, size + len(piece)
        if size >= LEAST_BYTES:
            waited, size = 0.0, 0
        elif waited > STALL_SECONDS:
            raise SlowServerError
        yield piece


def _time_pieces(pieces: Iterable[bytes]) -> Iterator[tuple[bytes, float]]:
    """Each chunk with the seconds spent waiting for it; the time to process it does not count."""
    since = time.monotonic()
    for piece in pieces:
        yield piece, time.monotonic() - since
        since = time.monotonic()
