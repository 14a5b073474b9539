"""Owns a worker of the helper: it answers one question after another over its own stdin and stdout."""

import os
import queue
import sys
import threading
import time
import traceback

import msgspec
import psutil

from backend.contract.errors import InputError, RunFailed
from backend.contract.queries import Mistake, Progress, Reply, Request
from backend.contract.redaction import redacted
from backend.queries import (
    answer,
    catalog,
    chosen_rows,
    collected_rows,
    comparison,
    cost,
    curves,
    data,
    further_predictions,
    generation,
    hub,
    hub_account,
    large_answer,
    measurement,
    models,
    number_statistics,
    own_code,
    prediction_pages,
    prediction_statistics,
    predictions,
    storage,
    tokenizer_making,
    tokens,
    training_data,
    vocabulary,
)
from backend.queries.channel import LARGEST_ANSWER, Channel
from backend.queries.query import Query

QUERIES: dict[str, Query] = {
    query.name: query
    for module in (
        answer,
        catalog,
        chosen_rows,
        collected_rows,
        comparison,
        cost,
        curves,
        data,
        further_predictions,
        generation,
        hub_account,
        hub,
        measurement,
        models,
        own_code,
        number_statistics,
        own_code,
        prediction_pages,
        prediction_statistics,
        predictions,
        storage,
        tokenizer_making,
        tokens,
        training_data,
        vocabulary,
    )
    for query in module.QUERIES
}
NICENESS = 5
PROGRESS_SECONDS = 0.1
"""Progress without text is sent at most this often."""


def run(*, gives_way: bool = True) -> int:
    """Answer until stdin closes; then end at once, even in the middle of an answer, since nobody waits for it."""
    if gives_way:
        _give_way()
    channel = Channel()
    waiting: queue.Queue[bytes] = queue.Queue()
    threading.Thread(target=_read, args=(waiting,), daemon=True).start()
    while True:
        request = msgspec.json.decode(waiting.get(), type=Request)
        channel.send(answered(request, channel))


def _give_way() -> None:
    """Let the window go first where both want the processor: it should scroll while a file is read."""
    own = psutil.Process()
    own.nice(psutil.BELOW_NORMAL_PRIORITY_CLASS if psutil.WINDOWS else own.nice() + NICENESS)


def answered(request: Request, channel: Channel) -> Reply:
    """The last reply to a request; the one place of this process where an exception becomes a sentence."""
    try:
        query = QUERIES[request.query]
        answer = query.answer(request.arguments, Teller(request.id, channel))
        encoded = msgspec.json.encode(answer)
        if query.as_table and len(encoded) > LARGEST_ANSWER and isinstance(answer, msgspec.Struct):
            return Reply(request.id, {"arrow": large_answer.written(answer)})
        return Reply(request.id, msgspec.Raw(encoded))
    except InputError as error:
        return Reply(request.id, error=Mistake(redacted(str(error)), error.field, error.line, error.fix))
    except RunFailed as error:
        return Reply(request.id, error=Mistake(redacted(f"{error} {error.hint}".strip())))
    except Exception as error:
        sys.stderr.write(redacted(traceback.format_exc()))
        sys.stderr.flush()
        first = next(iter(str(error).splitlines()), "it has no words")
        message = f"{request.query} failed unexpectedly: {type(error).__name__}: {first}"
        return Reply(request.id, error=Mistake(redacted(message)))


class Teller:
    """Sends progress; bare numbers only now and then, text always."""

    def __init__(self, number: int, channel: Channel) -> None:
        self._number, self._channel, self._told = number, channel, 0.0

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        if progress.text or now - self._told >= PROGRESS_SECONDS:
            self._told = now
            self._channel.send(Reply(self._number, progress=progress))


def _read(waiting: "queue.Queue[bytes]") -> None:
    for line in sys.stdin.buffer:
        waiting.put(line)
    os._exit(0)
