"""Owns `_measure`, the process of a trial: a spec comes over stdin, progress and what was found go over stdout."""

import os
import sys
import threading
import traceback
from argparse import ArgumentParser, Namespace
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from backend.commands.command import Command
from backend.contract import scratch
from backend.contract.errors import InputError, RunFailed, panics_as_errors
from backend.contract.redaction import redacted
from backend.contract.rpc.protocol import Mistake, Progress, Reply
from backend.contract.run.folder import RunFolder
from backend.contract.run.measurement import STAGES, MeasuredTime
from backend.helper.channel import Channel

MOST_LIKELY = "1000"
"""How gladly Linux ends a process whose memory is used up: this one first, and not the window."""


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("begun", metavar="TIME", type=float, help="when this process was started")


def _measure(arguments: Namespace) -> int:
    channel = Channel()
    values = msgspec.json.decode(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with_the_asker, daemon=True).start()
    with suppress(OSError):  # only Linux has it
        Path("/proc/self/oom_score_adj").write_text(MOST_LIKELY)
    own = scratch.folder(os.getpid())
    try:
        own.mkdir(parents=True)
        channel.send(_found(values, own, arguments.begun, channel))
    finally:
        scratch.remove(os.getpid())
    return 0


def _found(values: dict[str, Any], own: Path, begun: float, channel: Channel) -> Reply:
    """The one place of this process where an exception becomes a sentence."""
    from backend.preflight import resolve  # these load the data room
    from backend.training import trial
    from backend.training.failure import recognised
    from backend.training.failure_context import Situation

    def tell(stage: str, done: float, most: float) -> None:
        channel.send(Reply(0, progress=Progress(STAGES.index(stage), len(STAGES), "", "", stage, done, most)))

    try:
        with panics_as_errors():
            found = trial.measure(resolve.resolve(values, Path("/")), own, begun, tell)
        return Reply(0, MeasuredTime(measurement=found))
    except InputError as error:
        return Reply(0, error=Mistake(redacted(str(error)), error.field, error.line))
    except Exception as error:
        sys.stderr.write(redacted(traceback.format_exc()))
        code, failure = recognised(error, Situation(RunFolder(own))) or ("", None)
        if code == "out_of_memory" and failure is not None:
            return Reply(0, MeasuredTime(shortage=redacted(failure.message)))
        if failure is not None:
            return Reply(0, error=Mistake(redacted(f"{failure.message}. {failure.hint}")))
        if isinstance(error, RunFailed):
            return Reply(0, error=Mistake(redacted(f"{error}. {error.hint}")))
        first = next(iter(str(error).splitlines()), "it has no words")
        return Reply(0, error=Mistake(redacted(f"measuring failed unexpectedly: {type(error).__name__}: {first}")))


def _end_with_the_asker() -> None:
    """Whoever asked has gone, so nobody waits: end in the midst of a step, with all that was written."""
    sys.stdin.buffer.read()
    scratch.remove(os.getpid())
    os._exit(0)


COMMANDS = (Command("_measure", "", _arguments, _measure),)
