"""The commands that Burnish runs itself: the engine process `_run`, the far end of ssh `_agent`, the timing trial `_measure`, the helper `serve` and its `_query`."""

import io
import os
import shutil
import sys
import threading
from argparse import ArgumentParser, Namespace
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from backend.commands.command import Command
from backend.contract.processes import on_interruption
from backend.contract.redaction import redact
from backend.contract.run.folder import RunFolder

MOST_LIKELY = "1000"
"""How gladly Linux ends a process whose memory is used up: this one first, and not the window."""


def _run_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN")


def _process_arguments(parser: ArgumentParser) -> None:
    _run_arguments(parser)
    parser.add_argument("--rank", type=int, help="one of several processes, which the one without a rank starts")
    parser.add_argument("--of", type=int, default=1)
    parser.add_argument("--rendezvous", default="", help="a file, or tcp://HOST:PORT, where they meet")


def _run(arguments: Namespace) -> int:
    folder = RunFolder(arguments.run)
    on_interruption(_InterruptOnce(folder).request)
    sys.stdout = sys.stderr = RedactedStream(sys.stderr)
    if arguments.rank is not None:
        from backend.launchers import local
        from backend.training import processes  # loads the data room and the framework

        return local.end_process(processes.take_part(folder, arguments.rank, arguments.of, arguments.rendezvous))
    if folder.search.exists():
        from backend.search import driver  # loads the data room

        return driver.run(folder)
    from backend.launchers.launcher import launcher_of  # loads pydantic

    return launcher_of(folder).run(folder)


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


def _measure(arguments: Namespace) -> int:
    folder = RunFolder(arguments.run)
    threading.Thread(target=_exit_with_caller, args=(folder,), daemon=True).start()
    with suppress(OSError):  # only Linux has it
        Path("/proc/self/oom_score_adj").write_text(MOST_LIKELY)
    from backend.launchers import local
    from backend.training import loop  # these load pydantic, the data room and the framework

    return local.end_process(loop.run(folder, is_trial=True))


def _exit_with_caller(folder: RunFolder) -> None:
    """Exit, even mid-step, when stdin closes: the process that asked is gone, and removes nothing any more.

    The folder gets another name first, under which threads that are still writing find no place for new files. If
    removing it fails, the next trial does it, because the name is the number of a process that has ended.
    """
    sys.stdin.buffer.read()
    removed = folder.path.with_name(str(os.getpid()))
    with suppress(OSError):  # Windows keeps the name of a folder with open files
        folder.path.rename(removed)
    for path in (removed, folder.path):
        shutil.rmtree(path, ignore_errors=True)
    with suppress(OSError):  # another process keeps something there
        removed.parent.rmdir()
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


def _agent_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("folder", metavar="FOLDER")


def _agent(arguments: Namespace) -> int:
    from backend.remote import agent

    return agent.run(arguments.folder)


COMMANDS = (
    Command("_run", "", _process_arguments, _run),
    Command("_agent", "", _agent_arguments, _agent),
    Command("_measure", "", _run_arguments, _measure),
    Command("serve", "", _no_arguments, _serve),
    Command("_query", "", _query_arguments, _query),
)
