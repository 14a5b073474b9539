"""Calls `burnish` within the test's own process, the training of a followed run too: each new process would load the frameworks again."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

from backend import process_tree
from backend.__main__ import main
from backend.commands import train
from backend.commands.follow import Follower, RunOutcome
from backend.commands.screen import ProgressScreen
from backend.contract.rpc.plan import DeviceList
from backend.contract.run.events import EventReader
from backend.contract.run.folder import ExitRecord, ProcessRecord, RunFolder, boot_id, host_id
from backend.contract.run.lock import take_lock
from backend.contract.spec import RunSpec
from backend.training import background

pa.scalar(0)  # pyarrow looks for pandas once; a command that leaves it out would do so for all later tests

_attempt_of_a_supervisor = train.attempt


def call(
    arguments: list[str], working_folder: Path, environment: Mapping[str, str]
) -> "subprocess.CompletedProcess[str]":
    """One command with its exit code and what it printed; working folder, environment and streams are its own meanwhile.

    What a command does to its own process (limits, code of a model, other packages on its path) needs a real one.
    """
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as out,
        tempfile.TemporaryFile("w+", encoding="utf-8") as err,
        Path(os.devnull).open(encoding="utf-8") as nothing,
        pytest.MonkeyPatch.context() as patch,
        _environment(environment),
    ):
        patch.chdir(working_folder)
        patch.setattr(sys, "argv", ["burnish", *arguments])
        for name, stream in (("stdin", nothing), ("stdout", out), ("stderr", err)):
            patch.setattr(sys, name, stream)
        patch.setattr(train, "attempt", _attempt)
        try:
            code = main(arguments)
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        return subprocess.CompletedProcess(["burnish", *arguments], code, _text(out), _text(err))


@contextmanager
def at_the_first_step(runs: Path, act: Callable[[RunFolder], object]) -> Iterator[None]:
    """What is done beside a training that goes on in this process, once the only run of `runs` has taken a step."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.005):
            for events in runs.glob("*/events.jsonl"):
                if b'"StepFinished"' in events.read_bytes():
                    act(RunFolder(events.parent))
                    return

    beside = threading.Thread(target=watch)
    beside.start()
    try:
        yield
    finally:
        over.set()
        beside.join()


def start(folder: RunFolder, spec: RunSpec, **_: object) -> SimpleNamespace:
    """`new_run.start` for whoever follows a run only after it has started: the run is over when this returns."""
    _attempt(folder, spec)
    return SimpleNamespace(wait=lambda: 0)


def _attempt(
    folder: RunFolder,
    spec: RunSpec,
    *,
    pause: float | None = None,
    queue: bool = False,
    listed: DeviceList | None = None,
) -> RunOutcome:
    """`train.attempt` with the engine process in this one, between the records that its supervisor would write."""
    if queue or folder.life() == "alive":
        return _attempt_of_a_supervisor(folder, spec, queue=queue, listed=listed)
    reader = EventReader.at_end(folder.events)
    lock = take_lock(folder.lock)
    try:
        folder.check(to_write=True)
        folder.clear_requests()
        folder.set_pause(pause)
        number = folder.next_attempt()
        folder.write_process_record(ProcessRecord(number, host_id(), boot_id(), os.getpid(), os.getpid(), time.time()))
        code = _train(folder, spec)
        if folder.exists():
            folder.write_exit_record(ExitRecord(number, code, time.time()))
    finally:
        os.close(lock)
    return Follower(folder, reader, ProgressScreen()).watch()


def _train(folder: RunFolder, spec: RunSpec) -> int:
    with (
        folder.log.open("a", encoding="utf-8") as log,
        pytest.MonkeyPatch.context() as patch,
        _environment({**os.environ, **spec.hardware.environment, process_tree.MARKER: str(folder.path)}),
        _signals(),
    ):
        patch.setattr(sys, "stdout", log)
        patch.setattr(sys, "stderr", log)
        patch.setattr(background, "has_abandoned_work", lambda: False)  # by an earlier test: this process must not end
        return main(["_run", str(folder.path)])


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    before, wanted = dict(os.environ), dict(values)
    try:
        os.environ.clear()
        os.environ.update(wanted)
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def _signals() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGUSR1)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _text(stream) -> str:
    stream.seek(0)
    return stream.read()
