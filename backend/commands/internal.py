"""Owns `_run`, the engine process of an attempt; the supervisor alone starts it."""

import io
import sys
import time
import traceback
from argparse import ArgumentParser, Namespace
from contextlib import suppress
from typing import TextIO

from backend.commands.command import Command
from backend.contract.processes import on_interruption
from backend.contract.redaction import redacted
from backend.contract.run.folder import RunFolder


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN")


def _run(arguments: Namespace) -> int:
    folder = RunFolder(arguments.run)
    on_interruption(_Interruption(folder).request)
    sys.stdout = sys.stderr = RedactedStream(sys.stderr)
    try:
        from backend.training import loop  # loads the data room and the framework
    except ImportError:
        _say_why_nothing_began(folder)
        return 1
    return loop.run(folder)


class _Interruption:
    """Requests the interruption of a run once.

    The supervisor may have been told as well, and a request that comes after the answer would count as a new one.
    """

    def __init__(self, folder: RunFolder) -> None:
        self._folder, self._is_requested = folder, False

    def request(self, _: int) -> None:
        """Takes the number of a signal."""
        if self._is_requested:
            return
        self._is_requested = True
        with suppress(OSError):  # nothing could be saved in that folder either
            self._folder.whole().request("interrupt")


class RedactedStream(io.TextIOBase):
    """What Python code prints on its way to `process.log`, without hub tokens."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Pass it on; a token that is written in two halves is not recognised."""
        self._stream.write(redacted(text))
        return len(text)

    def flush(self) -> None:
        """Pass it on."""
        self._stream.flush()

    def fileno(self) -> int:
        """The real one, for libraries that write by it."""
        return self._stream.fileno()


def _say_why_nothing_began(folder: RunFolder) -> None:
    """An incomplete installation ends an attempt before its first event; people still get their sentence."""
    from backend.contract.run.events import RunFinished
    from backend.training.event_log import EventLog  # needs none of those libraries

    error = sys.exc_info()[1]
    sys.stderr.write(traceback.format_exc())
    message = f"a library that training needs cannot be loaded: {redacted(str(error))}"
    event = RunFinished(
        time=time.time(),
        state="failed",
        step=0,
        message=message,
        code="import",
        hint="burnish doctor says what to install.",
    )
    log = EventLog(folder.events)
    log.write(event)
    log.close()


COMMANDS = (Command("_run", "", _arguments, _run),)
