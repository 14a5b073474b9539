"""Cleaning up never fails a run: what cannot be deleted is renamed, reported once and tried again."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from backend.contract.errors import RunFailed
from backend.contract.run.events import CheckpointRemoved, CheckpointSaved, Warned
from backend.contract.run.folder import RunFolder
from backend.data.cache import DamagedCacheError, open_or_write
from backend.models import saved_model
from backend.training.checkpoints import Blocked, Checkpoints, CheckpointWriter, verify
from backend.training.event_log import EventLog, read_events
from backend.training.requests import Requests

NOBODY = 65534
needs_root = pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="needs a folder of another user")
pytestmark = pytest.mark.skipif(os.name == "nt", reason="read-only folders are no obstacle on Windows")


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder of a user whom permissions hold back, which this process is meanwhile."""
    folder = Path(tempfile.mkdtemp(prefix="burnish-removal-"))
    is_root = os.geteuid() == 0
    if is_root:
        os.chown(folder, NOBODY, -1)
        os.seteuid(NOBODY)
    try:
        yield folder
    finally:
        if is_root:
            os.seteuid(0)
        for inner in folder.rglob("*"):
            if inner.is_dir():
                inner.chmod(0o755)
        shutil.rmtree(folder)


@pytest.fixture
def checkpoints(place: Path) -> Checkpoints:
    return Checkpoints(RunFolder(place))


def filled_with(text: str) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        (folder / "weights").write_text(text)

    return write


def locked(folder: Path) -> Path:
    folder.chmod(0o555)
    return folder


def test_an_old_checkpoint_that_cannot_be_deleted_is_renamed_and_tried_again(checkpoints: Checkpoints, place: Path):
    locked(checkpoints.save(1, filled_with("one")))
    checkpoints.save(2, filled_with("two"))
    checkpoints.save(3, filled_with("three"))

    removal = checkpoints.remove_older(3, keep=1, best_step=None)

    assert (removal.steps, checkpoints.steps()) == ([1, 2], [3])
    [kept] = removal.kept
    kept.path.chmod(0o755)
    assert checkpoints.remove_older(3, keep=1, best_step=None).kept == []
    assert [path.name for path in (place / "checkpoints").iterdir()] == ["step-000003"]


def test_a_checkpoint_that_cannot_even_be_renamed_stays_whole(checkpoints: Checkpoints, place: Path):
    for step in (1, 2):
        checkpoints.save(step, filled_with(str(step)))
    locked(place / "checkpoints")

    removal = checkpoints.remove_older(2, keep=1, best_step=None)

    assert (removal.steps, checkpoints.steps()) == ([], [1, 2])
    assert [kept.path.name for kept in removal.kept] == ["step-000001"]
    assert verify(place / "checkpoints" / "step-000001")


def test_leftovers_that_cannot_be_deleted_do_not_keep_an_attempt_from_starting(checkpoints: Checkpoints, place: Path):
    for name in (".step-000007.123", ".step-000008.123"):
        (place / "checkpoints" / name).mkdir(parents=True)
        (place / "checkpoints" / name / "weights").touch()
    locked(place / "checkpoints" / ".step-000007.123")
    checkpoints.clear_leftovers()
    assert [path.name for path in (place / "checkpoints").iterdir()] == [".step-000007.123"]


def test_a_damaged_checkpoint_that_cannot_be_deleted_is_replaced(checkpoints: Checkpoints):
    damaged = checkpoints.save(1, filled_with("one"))
    (damaged / "weights").write_text("hole")
    locked(damaged)
    checkpoints.save(1, filled_with("again"))
    assert checkpoints.latest() == 1


def blocked(checkpoints: Checkpoints, place: Path) -> None:
    """A damaged checkpoint of another user, in a folder in which only an owner may rename."""
    damaged = checkpoints.save(1, filled_with("one"))
    (damaged / "weights").write_text("hole")
    (place / "checkpoints").chmod(0o1777)
    os.seteuid(0)
    os.chown(damaged, 0, 0)
    os.chown(place / "checkpoints", 0, 0)
    os.seteuid(NOBODY)


@needs_root
def test_a_damaged_checkpoint_that_cannot_be_moved_keeps_its_place(checkpoints: Checkpoints, place: Path):
    blocked(checkpoints, place)
    with pytest.raises(Blocked):
        checkpoints.save(1, filled_with("again"))
    assert [path.name for path in (place / "checkpoints").iterdir()] == ["step-000001"]


def test_a_model_that_cannot_be_deleted_is_replaced(place: Path):
    saved_model.write(place / "model", filled_with("old"), {})
    locked(place / "model")

    [kept] = saved_model.write(place / "model", filled_with("new"), {})

    assert (place / "model" / "weights").read_text() == "new"
    assert kept.path.parent == place
    kept.path.chmod(0o755)
    assert saved_model.write(place / "model", filled_with("newer"), {}) == []
    assert [path.name for path in place.iterdir()] == ["model"]


def test_a_model_that_cannot_be_moved_is_one_sentence_and_stays(place: Path):
    folder = place / "run"
    folder.mkdir()
    saved_model.write(folder / "model", filled_with("old"), {})

    def fill(beside: Path) -> None:
        (beside / "weights").write_text("new")
        locked(folder)

    with pytest.raises((RunFailed, PermissionError)):
        saved_model.write(folder / "model", fill, {})
    assert (folder / "model" / "weights").read_text() == "old"


def test_a_damaged_cache_that_cannot_be_deleted_is_written_anew(place: Path):
    def opened(folder: Path) -> str:
        if not (folder / "whole").exists():
            raise DamagedCacheError(str(folder))
        return "read"

    (place / "cache").mkdir()
    (place / "cache" / "half").touch()
    locked(place / "cache")
    leftover = place / "cache.part"
    leftover.mkdir()
    (leftover / "half").touch()
    locked(leftover)

    found = open_or_write(place / "cache", opened, lambda beside: (beside / "whole").touch(), lambda *_: None)

    assert found == "read"


def test_a_request_that_cannot_be_deleted_is_answered_once(place: Path):
    run = RunFolder(place)
    run.spec.touch()
    run.request("checkpoint")
    requests = Requests(run, interval=0.0)
    assert requests.pending() == "checkpoint"
    locked(place)
    requests.close("checkpoint")
    assert requests.pending() is None
    os.utime(place / "checkpoint", (1, 1))  # asked again
    assert requests.pending() == "checkpoint"


def test_a_run_goes_on_beside_an_old_checkpoint_that_cannot_be_deleted_and_warns_once(place: Path):
    folder, log = RunFolder(place), EventLog(place / "events.jsonl")
    engine: Any = SimpleNamespace(save=filled_with("weights"))
    saving = CheckpointWriter(folder, log, engine, Checkpoints(folder), keep=1)
    for step in (1, 2, 3, 4):
        saving.start_save(step, None)
        saving.finish()
        if step == 1:
            locked(folder.checkpoint(1))
    log.close()

    events = read_events(folder.events)
    assert Checkpoints(folder).steps() == [4]
    assert [event.step for event in events if isinstance(event, CheckpointSaved)] == [1, 2, 3, 4]
    assert [event.step for event in events if isinstance(event, CheckpointRemoved)] == [1, 2, 3]
    assert [event.code for event in events if isinstance(event, Warned)] == ["not_deleted"]


@needs_root
def test_a_run_goes_on_without_the_checkpoint_whose_place_is_blocked(place: Path):
    folder, log = RunFolder(place), EventLog(place / "events.jsonl")
    blocked(Checkpoints(folder), place)
    engine: Any = SimpleNamespace(save=filled_with("again"))
    saving = CheckpointWriter(folder, log, engine, Checkpoints(folder), keep=1)
    for step in (1, 2):
        saving.start_save(step, None)
        saving.finish()
    log.close()

    assert Checkpoints(folder).latest() == 2
    warned = [event.code for event in read_events(folder.events) if isinstance(event, Warned)]
    assert warned == ["checkpoint_blocked", "not_deleted"]
