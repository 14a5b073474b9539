"""Runs a timing trial in its own process: progress, the result, and guaranteed cleanup."""

import os
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any

import msgspec

from backend import process_tree
from backend.contract import places
from backend.contract.catalog import Device
from backend.contract.errors import InputError, RunFailed
from backend.contract.messages import learn, message
from backend.contract.processes import python_command
from backend.contract.redaction import redact
from backend.contract.rpc.protocol import ErrorReply, Progress
from backend.contract.run.cost import MeasuredTime
from backend.contract.spec import RunSpec
from backend.preflight import auto_settings, cost
from backend.training.failures.out_of_memory import MESSAGE
from backend.training.timing_trial import refuse_several

KILLED = -9
"""The exit code of a killed process: if Burnish did not kill it, memory ran out."""
LAST_WORDS = 20


class _Line(msgspec.Struct):
    """One line from the process."""

    progress: Progress | None = None
    answer: MeasuredTime | None = None
    error: ErrorReply | None = None
    messages: dict[str, Any] = {}


def measure_in_process(spec: RunSpec, devices: list[Device], report: Callable[[Progress], None]) -> MeasuredTime:
    """Measure `spec` in a separate process; if its memory is not enough, find what would need less.

    It inherits the caller's priority, so a low-priority caller measures too long a time.
    Raises InputError for a spec that cannot be trained or does not fit, RunFailed where the trial failed. However it
    ends, by an exception of `report` too, neither a process nor a file is left.
    """
    refuse_several(spec)
    planned = cost.plan(spec, devices)
    if planned.problems:
        raise InputError(planned.problems[0])
    spec = auto_settings.with_chosen(spec, planned.auto)
    with _start_process(spec) as process:
        outcome, words = _read_answers(process, report)
        code = process.wait() if outcome is None else 0
    if outcome is None and code == KILLED:
        outcome = MeasuredTime(shortage=MESSAGE)
    if outcome is None:
        raise RunFailed(
            "the measuring process exited with code {code}: {words}",
            "unknown",
            code=code,
            words=words or message("no reason given"),
        )
    if outcome.shortage:
        remedies = cost.plan(spec, devices, is_too_much=True).remedies
        return MeasuredTime(shortage=outcome.shortage, remedies=remedies)
    return outcome


@contextmanager
def _start_process(spec: RunSpec) -> "Iterator[subprocess.Popen[bytes]]":
    places.remove_leftover_scratch({process.pid for process in process_tree.processes()})
    process = subprocess.Popen(
        python_command("backend", "_measure", str(time.time())),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # as a run: Linux shares the processor out by sessions
        env={**os.environ, **spec.hardware.environment},
    )
    try:
        assert process.stdin
        process.stdin.write(msgspec.json.encode(spec.model_dump(mode="json")) + b"\n")
        process.stdin.flush()
        yield process
    finally:
        for pid in process_tree.descendants(process.pid):
            process_tree.kill(pid)
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            assert pipe
            pipe.close()
        places.remove_scratch(process.pid)


def _read_answers(
    process: "subprocess.Popen[bytes]", report: Callable[[Progress], None]
) -> tuple[MeasuredTime | None, str]:
    """The result, None if the process ended without one, and its last words. Raises the error that it reports."""
    assert process.stdout
    assert process.stderr
    words: deque[str] = deque(maxlen=LAST_WORDS)
    # A full pipe would stop it; nothing is done here but reading lines.
    listener = threading.Thread(target=_listen, args=(process.stderr, words), daemon=True)
    listener.start()
    for line in process.stdout:
        line_read = msgspec.json.decode(line, type=_Line)
        learn(line_read.messages)
        if line_read.progress is not None:
            report(line_read.progress)
        elif line_read.error is not None:
            raise InputError(line_read.error.message, line_read.error.field, at_line=line_read.error.line)
        else:
            return line_read.answer, ""
    process.wait()
    listener.join(1.0)
    return None, words[-1] if words else ""


def _listen(pipe: IO[bytes], words: deque[str]) -> None:
    for line in pipe:
        if text := redact(line.decode("utf-8", "replace")).strip():
            words.append(text)
