"""The commands that Burnish runs itself: the engine process `_run`, the timing trial `_measure`, the helper `serve` and its `_query`."""

import io
import os
import sys
import threading
import time
import traceback
from argparse import ArgumentParser, Namespace
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

import msgspec

from backend.commands.command import Command
from backend.contract import places
from backend.contract.errors import InputError, RunFailed, panics_as_errors
from backend.contract.messages import join, message
from backend.contract.processes import on_interruption
from backend.contract.redaction import redact
from backend.contract.rpc.protocol import ErrorReply, Progress, Reply
from backend.contract.run.cost import STAGES, MeasuredTime
from backend.contract.run.folder import RunFolder
from backend.helper.channel import Channel

MOST_LIKELY = "1000"
"""How gladly Linux ends a process whose memory is used up: this one first, and not the window."""


def _run_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN")


def _run(arguments: Namespace) -> int:
    folder = RunFolder(arguments.run)
    on_interruption(_InterruptOnce(folder).request)
    sys.stdout = sys.stderr = RedactedStream(sys.stderr)
    try:
        from backend.training import loop  # loads the data room and the framework
    except ImportError:
        _explain_failed_start(folder)
        return 1
    return loop.run(folder)


class _InterruptOnce:
    """Requests the interruption of a run at most once.

    The supervisor may have received the signal too, and a second request after the answer would count as a new one.
    """

    def __init__(self, folder: RunFolder) -> None:
        self._folder, self._is_requested = folder, False

    def request(self, _: int) -> None:
        """Request the interruption; takes the signal's number."""
        if self._is_requested:
            return
        self._is_requested = True
        with suppress(OSError):  # nothing could be saved in that folder either
            self._folder.main_folder().request("interrupt")


class RedactedStream(io.TextIOBase):
    """Redacts hub tokens from what Python code prints to `process.log`."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Pass it on; a token split across two writes is not recognised."""
        self._stream.write(redact(text))
        return len(text)

    def flush(self) -> None:
        """Pass it on."""
        self._stream.flush()

    def fileno(self) -> int:
        """The real file descriptor, for libraries that write to it directly."""
        return self._stream.fileno()


def _explain_failed_start(folder: RunFolder) -> None:
    """Explain an incomplete installation, which ends an attempt before its first event."""
    from backend.contract.run.events import RunFinished
    from backend.training.event_log import EventLog  # needs none of those libraries

    error = sys.exc_info()[1]
    sys.stderr.write(traceback.format_exc())
    sentence = message("a library required for training cannot be loaded: {error}", error=redact(str(error)))
    event = RunFinished(
        time=time.time(),
        state="failed",
        step=0,
        message=sentence,
        code="import",
        hint=message("run burnish doctor to see what to install."),
    )
    log = EventLog(folder.events)
    log.write(event)
    log.close()


def _measure_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("begun", metavar="TIME", type=float, help="when this process was started")


def _measure(arguments: Namespace) -> int:
    channel = Channel()
    values = msgspec.json.decode(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with_the_asker, daemon=True).start()
    with suppress(OSError):  # only Linux has it
        Path("/proc/self/oom_score_adj").write_text(MOST_LIKELY)
    own = places.scratch_folder(os.getpid())
    try:
        own.mkdir(parents=True)
        channel.send(_run_measurement(values, own, arguments.begun, channel))
    finally:
        places.remove_scratch(os.getpid())
    return 0


def _run_measurement(values: dict[str, Any], own: Path, begun: float, channel: Channel) -> Reply:
    """The only place in this process where an exception becomes a message."""
    from backend.preflight import resolve  # these load the data room
    from backend.training import timing_trial
    from backend.training.failures.failure import FailureContext, recognise_failure

    def report(stage: str, done: float, most: float) -> None:
        channel.send(Reply(0, progress=Progress(STAGES.index(stage), len(STAGES), "", "", stage, done, most)))

    try:
        with panics_as_errors():
            found = timing_trial.measure(resolve.resolve(values, Path("/")), own, begun, report)
        return Reply(0, MeasuredTime(measurement=found))
    except InputError as error:
        return Reply(0, error=ErrorReply(redact(str(error)), error.field, error.line))
    except Exception as error:
        sys.stderr.write(redact(traceback.format_exc()))
        code, failure = recognise_failure(error, FailureContext(RunFolder(own))) or ("", None)
        if code == "out_of_memory" and failure is not None:
            return Reply(0, MeasuredTime(shortage=redact(failure.message)))
        if failure is not None:
            return Reply(0, error=ErrorReply(redact(join(". ", [failure.message, failure.hint]))))
        if isinstance(error, RunFailed):
            return Reply(0, error=ErrorReply(redact(join(". ", [str(error), error.hint]))))
        first = next(iter(str(error).splitlines()), message("it has no message"))
        sentence = message(
            "measuring failed unexpectedly: {class_name}: {first}", class_name=type(error).__name__, first=first
        )
        return Reply(0, error=ErrorReply(redact(sentence)))


def _end_with_the_asker() -> None:
    """Exit, even mid-step, when stdin closes: the process that asked is gone."""
    sys.stdin.buffer.read()
    places.remove_scratch(os.getpid())
    os._exit(0)


def _no_arguments(parser: ArgumentParser) -> None:
    """No arguments: requests come over stdin."""


def _serve(arguments: Namespace) -> int:
    from backend.helper import server

    return server.run()


def _query_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--as-run", action="store_true", help="with the priority that a run has")


def _query(arguments: Namespace) -> int:
    from backend.helper import worker

    return worker.run(gives_way=not arguments.as_run)


COMMANDS = (
    Command("_run", "", _run_arguments, _run),
    Command("_measure", "", _measure_arguments, _measure),
    Command("serve", "", _no_arguments, _serve),
    Command("_query", "", _query_arguments, _query),
)
