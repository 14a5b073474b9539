"""The window's helper process: queries as JSON lines on stdin, answers on stdout, in any order.

It passes queries to workers, one at a time each, and itself only reports which models they have open, so no query
delays another or crashes the helper. A worker that has something in memory (a tokenizer) gets the next query on it.
"""

import os
import queue
import subprocess
import sys
import threading
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO, Any

import msgspec

from backend import process_tree
from backend.contract import places
from backend.contract.messages import message
from backend.contract.processes import python_command
from backend.contract.rpc.interactive import OpenModels
from backend.contract.rpc.protocol import CANCEL, CANCELLED, LONGEST_LINE, ErrorReply, Reply, Request, id_in
from backend.helper.channel import Channel
from backend.helper.query import DEVICE_GIVEN_UP
from backend.helper.worker import QUERIES

MAX_WORKERS = 6
IDLE_KEPT = 3
"""Workers that wait for the next question; a fresh one takes up to seconds to load its libraries."""
IDLE_SECONDS = 300.0
STOP_SECONDS = 5.0
"""Seconds until a worker that does not stop is killed, with everything that it has in memory."""
OPEN_MODELS, LET_GO = "open_models", "let_go"
"""What the helper answers itself, since it alone knows what its workers have in memory."""
MODEL = "target="
"""Prefix of the names of models that a worker has in memory."""


@dataclass(eq=False)
class Worker:
    """A child process that answers; `warm` names what it has in memory, confirmed by an answer if `proven`."""

    process: "subprocess.Popen[bytes]"
    request: Request | None = None
    warm: str = ""
    proven: bool = False
    deadline: float | None = None
    """Deadline for stopping a query whose answer is no longer needed."""
    free_since: float = field(default_factory=time.monotonic)

    def write(self, request: Request) -> None:
        """Send it a line. Raises BrokenPipeError if it has died."""
        assert self.process.stdin
        self.process.stdin.write(msgspec.json.encode(request) + b"\n")
        self.process.stdin.flush()


class _ReplyHeader(msgspec.Struct):
    """The fields of a reply that the helper reads."""

    id: int
    progress: Any = None
    error: ErrorReply | None = None


Line = tuple[Worker | None, bytes]
"""A line from a worker, or from the window (None); an empty one is the end of the pipe."""


def run() -> int:
    """Serve until stdin closes; then end every worker."""
    helper = Helper(Channel())
    try:
        helper.serve()
    except BrokenPipeError:
        sys.stderr.write("nobody reads the answers any more\n")
    finally:
        helper.close()
    return 0


class Helper:
    """Passes queries to workers and forwards their replies."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._lines: queue.Queue[Line] = queue.Queue()
        self._workers: list[Worker] = []
        self._waiting: deque[Request] = deque()

    def serve(self) -> None:
        """Serve until stdin closes."""
        self._listen(None, os.fdopen(os.dup(0), "rb"))
        self._start_worker()  # its libraries load while the window makes its first question
        while True:
            self._end_overdue()
            try:
                worker, line = self._lines.get(timeout=self._patience())
            except queue.Empty:
                self._dismiss_idle()
                continue
            if worker is None and not line:
                return
            if worker is None:
                if not self._receive(line):
                    return
            else:
                self._handle_reply(worker, line)

    def close(self) -> None:
        """End every worker and its child processes."""
        for worker in list(self._workers):
            self._end(worker)

    def _receive(self, line: bytes) -> bool:
        """Receive a query; False if it cannot even be refused, so that the window starts another helper and retries."""
        try:
            request = msgspec.json.decode(line, type=Request)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            return self._refuse_unreadable(line, str(error))
        if request.query == CANCEL:
            self._cancel(request.id)
        elif request.query in (OPEN_MODELS, LET_GO):
            if request.query == LET_GO:
                self._unload(request.arguments.get("target"))
            self._channel.send(Reply(request.id, OpenModels(self._open_models())))
        elif request.query not in QUERIES:
            self._channel.refuse(
                request.id, message("there is no query {query}; update Burnish", query=repr(request.query))
            )
        else:
            self._waiting.append(request)
            self._assign()
        return True

    def _refuse_unreadable(self, line: bytes, why: str) -> bool:
        number = id_in(line)
        sys.stderr.write(f"a question that cannot be read: {why}\n")
        if number is None or not line.endswith(b"\n"):
            return False
        self._channel.refuse(
            number, message("the query cannot be read ({why}); try again, or run burnish doctor", why=why)
        )
        return True

    def _assign(self) -> None:
        for request in [one for one in self._waiting if not self._is_about_to_be_free(one)]:
            worker = self._worker_for(request)
            while worker is not None and not self._give(worker, request):
                worker = self._worker_for(request)  # the other died while it waited
            if worker is None:
                return
            self._waiting.remove(request)

    def _is_about_to_be_free(self, request: Request) -> bool:
        """Whether a worker with the needed object in memory is about to stop; another would load it a second time."""
        warm = _warm(request)
        return bool(warm) and any(one.deadline is not None and one.warm == warm for one in self._workers)

    def _give(self, worker: Worker, request: Request) -> bool:
        worker.request = request
        if (warm := _warm(request)) and warm != worker.warm:
            worker.warm, worker.proven = warm, False
        try:
            worker.write(request)
        except BrokenPipeError:
            self._end(worker)
            return False
        return True

    def _worker_for(self, request: Request) -> Worker | None:
        free = [worker for worker in self._workers if worker.request is None]
        if QUERIES[request.query].trains:
            if free and len(self._workers) >= MAX_WORKERS:
                self._end(free[0])
            return self._start_worker("--as-run") if len(self._workers) < MAX_WORKERS else None
        warm = _warm(request)
        for worker in free:
            if warm and worker.warm == warm:
                return worker
        for worker in free:
            if not worker.warm:
                return worker
        if len(self._workers) < MAX_WORKERS:
            return self._start_worker()
        return free[0] if free else None

    def _start_worker(self, *options: str) -> Worker:
        process = subprocess.Popen(
            python_command("backend", "_query", *options),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        worker = Worker(process)
        self._workers.append(worker)
        assert process.stdout
        self._listen(worker, process.stdout)
        return worker

    def _listen(self, worker: Worker | None, pipe: IO[bytes]) -> None:
        # One thread per pipe, since Windows cannot wait for several pipes at once; it does nothing but read lines.
        def read() -> None:
            with pipe:
                while line := pipe.readline(LONGEST_LINE):
                    self._lines.put((worker, line))
                    if not line.endswith(b"\n"):
                        break  # the end, or a line without one
            self._lines.put((worker, b""))

        threading.Thread(target=read, daemon=True).start()

    def _handle_reply(self, worker: Worker, line: bytes) -> None:
        if worker not in self._workers:
            return  # cancelled; these are its last words
        if not line:
            self._on_worker_exit(worker)
            return
        kind = _kind(line)
        if kind is None or worker.request is None or kind.id != worker.request.id:
            self._end(worker)
            if worker.request is not None and worker.deadline is None:
                self._channel.refuse(worker.request.id, _unreadable(worker.request.query))
            self._assign()
            return
        if worker.deadline is None:
            self._channel.send_line(line)
        if kind.progress is not None:
            return
        request, worker.request, worker.deadline = worker.request, None, None
        has_worked = kind.error is None or kind.error.message == CANCELLED
        worker.proven = worker.proven or (has_worked and bool(request and _warm(request)))
        worker.free_since = time.monotonic()
        if request and (QUERIES[request.query].takes_device or QUERIES[request.query].trains):
            self._end(worker)
        self._dismiss_idle()
        self._assign()

    def _on_worker_exit(self, worker: Worker) -> None:
        self._end(worker)
        if worker.request and worker.deadline is None:
            self._channel.refuse(worker.request.id, _describe_exit(worker.process.returncode, worker.request.query))
        self._assign()

    def _cancel(self, number: int) -> None:
        for request in [one for one in self._waiting if one.id == number]:
            self._waiting.remove(request)
            self._channel.refuse(number, CANCELLED)
        for worker in [one for one in self._workers if one.request and one.request.id == number]:
            if worker.deadline is not None:
                continue
            self._stop(worker)  # first, so that nothing is written any more when the client is notified
            self._channel.refuse(number, CANCELLED)
        self._assign()

    def _stop(self, worker: Worker) -> None:
        """Ask the worker to stop and keep what it has in memory, if it can; else end it."""
        assert worker.request is not None
        if not QUERIES[worker.request.query].can_stop:
            self._end(worker)
            return
        try:
            worker.write(Request(worker.request.id, CANCEL))
            worker.deadline = time.monotonic() + STOP_SECONDS
        except BrokenPipeError:
            self._end(worker)

    def _patience(self) -> float:
        """Seconds until the next deadline."""
        ends = [worker.deadline - time.monotonic() for worker in self._workers if worker.deadline is not None]
        return max(0.0, min(IDLE_SECONDS / 4, *ends)) if ends else IDLE_SECONDS / 4

    def _end_overdue(self) -> None:
        overdue = [one for one in self._workers if one.deadline is not None and one.deadline <= time.monotonic()]
        for worker in overdue:
            self._end(worker)
        if overdue:
            self._assign()

    def _open_models(self) -> list[str]:
        proven = (worker.warm for worker in self._workers if worker.proven and worker.warm.startswith(MODEL))
        return sorted({warm.removeprefix(MODEL) for warm in proven})

    def _unload(self, target: object) -> None:
        free = [one for one in self._workers if one.request is None or one.deadline is not None]
        for worker in [one for one in free if one.warm.startswith(MODEL)]:
            if target is None or worker.warm == f"{MODEL}{target}":
                self._end(worker)

    def _dismiss_idle(self) -> None:
        """Keep a few idle workers, and none that has been idle for long."""
        free = sorted((one for one in self._workers if one.request is None), key=lambda one: one.free_since)
        surplus = len(free) - IDLE_KEPT
        for position, worker in enumerate(free):
            if position < surplus or time.monotonic() - worker.free_since > IDLE_SECONDS:
                self._end(worker)

    def _end(self, worker: Worker) -> None:
        self._workers.remove(worker)
        process = worker.process
        if process.poll() is None:
            for pid in process_tree.descendants(process.pid):
                process_tree.kill(pid)
            process.kill()
        process.wait()
        places.remove_scratch(process.pid)
        assert process.stdin
        with suppress(BrokenPipeError):  # a question that it never took is still in the buffer
            process.stdin.close()


def _kind(line: bytes) -> _ReplyHeader | None:
    """The kind of reply on a line; None if the line is incomplete."""
    try:
        return msgspec.json.decode(line, type=_ReplyHeader) if line.endswith(b"\n") else None
    except msgspec.DecodeError:
        return None


def _unreadable(query: str) -> str:
    return message("the response to {query} cannot be read; try again, or run burnish doctor", query=query)


def _describe_exit(code: int, query: str) -> str:
    """Why there is no answer, for people."""
    if code == DEVICE_GIVEN_UP:
        return message("a run has started on this model's device; try again when the run has finished")
    how = message("killed by signal {value}", value=-code) if code < 0 else message("exit code {code}", code=code)
    return message(
        "the process that was answering {query} exited ({how}); try again, or run burnish doctor", query=query, how=how
    )


def _warm(request: Request) -> str:
    """What a worker has in memory after this query."""
    by = QUERIES[request.query].warm_by
    return f"{by}={request.arguments.get(by)}" if by else ""
