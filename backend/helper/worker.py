"""Answers the helper's queries one after another over its own stdin and stdout; a query can be cancelled meanwhile."""

import os
import queue
import sys
import threading
import time
import traceback
from collections.abc import Callable

import msgspec
import psutil

from backend.contract.errors import InputError, RunFailed, describe_system_error, panics_as_errors
from backend.contract.messages import join, message, table_of
from backend.contract.redaction import redact
from backend.contract.rpc.generation import GenerationStopped, never
from backend.contract.rpc.protocol import CANCEL, CANCELLED, ErrorReply, Progress, Reply, Request
from backend.helper.channel import Channel
from backend.helper.queries import (
    catalog,
    data,
    hub,
    inference,
    machines,
    models,
    prediction_filter,
    prediction_statistics,
    predictions,
    runs,
    storage,
    tokenizers,
    trackers,
    training_data,
    vocabulary,
)
from backend.helper.query import Query

QUERIES: dict[str, Query] = {
    query.name: query
    for module in (
        catalog,
        data,
        hub,
        inference,
        machines,
        models,
        prediction_filter,
        prediction_statistics,
        predictions,
        runs,
        storage,
        tokenizers,
        trackers,
        training_data,
        vocabulary,
    )
    for query in module.QUERIES
}
NICENESS = 5
PROGRESS_SECONDS = 0.1
"""Progress without text is sent at most this often."""


def run(*, gives_way: bool = True) -> int:
    """Answer until stdin closes; then exit at once, even mid-answer, because no one is waiting for it."""
    if gives_way:
        _give_way()
    channel = Channel()
    inbox = Inbox()
    threading.Thread(target=inbox.read, daemon=True).start()
    while True:
        request = inbox.questions.get()
        channel.send(answer_request(request, channel, lambda number=request.id: inbox.cancelled == number))


def _give_way() -> None:
    """Lower this process's priority, so that the window keeps scrolling while a file is read."""
    own = psutil.Process()
    own.nice(psutil.BELOW_NORMAL_PRIORITY_CLASS if psutil.WINDOWS else own.nice() + NICENESS)


def answer_request(request: Request, channel: Channel, stop_requested: Callable[[], bool] = never) -> Reply:
    """The final reply to a request; the only place in this process where an exception becomes a sentence."""
    try:
        query = QUERIES[request.query]
        more = {"stop_requested": stop_requested} if query.can_stop else {}
        with panics_as_errors():
            answer = query.answer(request.arguments, ProgressReporter(request.id, channel), **more)
        return Reply(request.id, msgspec.Raw(msgspec.json.encode(answer)), messages=table_of(answer))
    except GenerationStopped:
        return Reply(request.id, error=ErrorReply(CANCELLED))
    except InputError as error:
        return Reply(request.id, error=ErrorReply(redact(str(error)), error.field, error.line, error.fix))
    except RunFailed as error:
        return Reply(request.id, error=ErrorReply(redact(join(" ", filter(None, [str(error), error.hint])))))
    except Exception as error:
        sys.stderr.write(redact(traceback.format_exc()))
        sys.stderr.flush()
        if reason := describe_system_error(error):
            return Reply(request.id, error=ErrorReply(redact(reason)))
        first = next(iter(str(error).splitlines()), message("it has no message"))
        sentence = message(
            "{query} failed unexpectedly: {class_name}: {first}",
            query=request.query,
            class_name=type(error).__name__,
            first=first,
        )
        return Reply(request.id, error=ErrorReply(redact(sentence)))


class ProgressReporter:
    """Sends progress: text always, numbers only occasionally."""

    def __init__(self, number: int, channel: Channel) -> None:
        self._number, self._channel, self._reported_at = number, channel, 0.0

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        if progress.text or now - self._reported_at >= PROGRESS_SECONDS:
            self._reported_at = now
            self._channel.send(Reply(self._number, progress=progress))


class Inbox:
    """Incoming messages: queries in order, and the last cancelled one."""

    def __init__(self) -> None:
        self.questions: queue.Queue[Request] = queue.Queue()
        self.cancelled = -1

    def read(self) -> None:
        """Read until stdin closes; then the process exits at once."""
        for line in sys.stdin.buffer:
            request = msgspec.json.decode(line, type=Request)
            if request.query == CANCEL:
                self.cancelled = request.id
            else:
                self.questions.put(request)
        os._exit(0)
