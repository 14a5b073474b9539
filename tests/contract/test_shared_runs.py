"""Two users of one computer share a runs folder: each sees the other's runs live and waits for them in the queue."""

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from backend.commands.new_run import change_engine, change_settings
from backend.contract.errors import InputError, RunFailed
from backend.contract.run import queue
from backend.contract.run.events import StageStarted
from backend.contract.run.folder import (
    ExitRecord,
    ProcessRecord,
    RunFolder,
    boot_id,
    host_id,
    run_folders,
)
from backend.contract.run.lock import hold_lock
from backend.contract.spec import RunSpec, run_spec
from backend.training.checkpoints import Checkpoints
from backend.training.event_log import EventLog

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions")
NOBODY = 65534
SPEC = run_spec({"task": {"type": "causal_lm"}, "model": {"name_or_path": "x"}, "data": {"train": "x.txt"}})


@contextmanager
def another_user() -> Iterator[None]:
    """As somebody else if this is root; otherwise the files' own modes keep their owner out just as well."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@contextmanager
def closed(folder: Path) -> Iterator[None]:
    """Nobody but root writes in the folder meanwhile."""
    folder.chmod(0o555)
    try:
        yield
    finally:
        folder.chmod(0o755)


@pytest.fixture
def runs() -> Iterator[Path]:
    """A folder in which everybody may make runs; pytest's own is closed to others."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name)
        path.chmod(0o777)
        yield path


@pytest.fixture
def theirs(runs: Path) -> RunFolder:
    """The first user's run, which has been started."""
    return made(runs, "theirs")


def made(runs: Path, name: str) -> RunFolder:
    folder = RunFolder(runs / name)
    folder.path.mkdir()
    folder.spec.touch()
    folder.lock.touch()
    folder.write_process_record(ProcessRecord(1, host_id(), boot_id(), 1, 2, time.time()))
    return folder


@pytest.mark.parametrize("mode", [0o444, 0o000])
def test_anothers_run_is_alive_while_it_goes_on_whether_or_not_its_lock_can_be_read(theirs: RunFolder, mode: int):
    with hold_lock(theirs.lock):
        theirs.lock.chmod(mode)
        with another_user():
            assert theirs.life() == "alive"
            assert [run.path for run in queue.queue_of(theirs.path.parent).running] == [theirs.path]


@pytest.mark.parametrize("mode", [0o444, 0o000])
def test_anothers_run_that_has_ended_is_in_nobodys_way(theirs: RunFolder, mode: int):
    theirs.write_exit_record(ExitRecord(1, 0, time.time()))
    theirs.lock.chmod(mode)
    with another_user():
        assert theirs.life() == "ended"
        assert queue.queue_of(theirs.path.parent).running == []


def test_anothers_run_that_was_killed_is_lost_if_its_lock_can_be_read(theirs: RunFolder):
    theirs.lock.chmod(0o444)
    with another_user():
        assert theirs.life() == "lost"


def test_a_run_waits_for_anothers_and_begins_when_that_is_over(runs: Path, theirs: RunFolder):
    with another_user():
        mine = made(runs, "mine")
        mine.join_queue()
    with hold_lock(theirs.lock), another_user(), hold_lock(mine.lock):
        [blocking] = queue.take_turn(mine)
        assert blocking.path == theirs.path
        assert queue.is_blocked(mine, by=[theirs])
    with another_user():
        assert queue.take_turn(mine) == []


@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_whoever_decided_first_keeps_nobody_else_from_deciding(runs: Path, umask: int):
    theirs = made(runs, "theirs")
    theirs.join_queue()
    before = os.umask(umask)
    try:
        queue.take_turn(theirs)
    finally:
        os.umask(before)
    if os.geteuid() != 0:
        (runs / queue.DECIDING).chmod(0o444)
    with another_user():
        mine = made(runs, "mine")
        mine.join_queue()
        assert queue.take_turn(mine) == []


def test_a_run_that_another_user_keeps_to_themselves_is_not_listed(runs: Path, theirs: RunFolder):
    if os.geteuid() != 0:
        pytest.skip("the owner sees it in any case")
    theirs.path.chmod(0o700)
    with another_user():
        assert run_folders(runs) == []


def test_run_whose_events_another_user_replaced_fails_in_one_sentence(theirs: RunFolder) -> None:
    log = EventLog(theirs.events)
    theirs.events.unlink()
    theirs.events.symlink_to("elsewhere")
    event = StageStarted(time=1.0, stage="training")
    with closed(theirs.path), another_user():
        with pytest.raises(RunFailed, match=r"events\.jsonl was replaced"):
            log.write(event)
        log.write(event)  # how it ended, which exit.json says too
        log.close()


@pytest.mark.parametrize(
    "change",
    [
        partial(change_settings, changes=["hardware.micro_batch_size=4"]),
        lambda run, spec: change_engine(run, spec, Checkpoints(run), "jax", new_optimizer=True),
    ],
    ids=["settings", "engine"],
)
def test_spec_of_another_users_run_is_changed_in_a_run_of_ones_own(
    theirs: RunFolder, change: Callable[[RunFolder, RunSpec], RunSpec]
) -> None:
    theirs.lock.chmod(0o444)
    with another_user(), pytest.raises(InputError, match="start your own from"):
        change(theirs, SPEC)
