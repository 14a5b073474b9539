"""Checkpoints are whole or not there, also those that are written beside training; what goes wrong with them is heard."""

import errno
import hashlib
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from backend.contract import spec_file
from backend.contract.resources import resource
from backend.contract.run.events import CheckpointRemoved, CheckpointSaved, RunResumed
from backend.contract.run.folder import RunFolder
from backend.preflight.resolve import read_spec
from backend.training import loop
from backend.training.checkpoints import Checkpoints, CheckpointWriter, verify
from backend.training.event_log import EventLog, read_events
from tests.backend.conftest import Until


def filled_with(text: str):
    def write(folder: Path) -> None:
        (folder / "model.safetensors").write_text(text)

    return write


@pytest.fixture
def checkpoints(tmp_path: Path) -> Checkpoints:
    return Checkpoints(RunFolder(tmp_path))


def test_the_highest_step_that_verifies_is_the_latest(checkpoints: Checkpoints):
    checkpoints.save(5, filled_with("five"))
    ten = checkpoints.save(10, filled_with("ten"))
    (ten / "model.safetensors").write_text("tin")
    assert checkpoints.latest() == 5


def test_a_full_disk_leaves_the_old_checkpoint_and_nothing_else(checkpoints: Checkpoints, tmp_path: Path):
    checkpoints.save(5, filled_with("five"))

    def disk_full(folder: Path) -> None:
        (folder / "model.safetensors").write_text("half")
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        checkpoints.save(10, disk_full)
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["step-000005"]
    assert verify(tmp_path / "checkpoints" / "step-000005")


def test_a_damaged_checkpoint_is_replaced(checkpoints: Checkpoints):
    damaged = checkpoints.save(5, filled_with("five"))
    (damaged / "model.safetensors").unlink()
    checkpoints.save(5, filled_with("again"))
    assert (damaged / "model.safetensors").read_text() == "again"


def test_a_good_checkpoint_is_never_overwritten(checkpoints: Checkpoints):
    path = checkpoints.save(5, filled_with("five"))
    checkpoints.save(5, filled_with("other"))
    assert (path / "model.safetensors").read_text() == "five"


def test_the_best_is_kept_beside_the_newest(checkpoints: Checkpoints):
    for step in (1, 2, 3, 4):
        checkpoints.save(step, filled_with(str(step)))
    assert checkpoints.remove_older(4, keep=2, best_step=1).steps == [2]
    assert checkpoints.steps() == [1, 3, 4]


def test_a_damaged_later_checkpoint_drives_out_no_good_one(checkpoints: Checkpoints):
    later = checkpoints.save(9, filled_with("nine"))
    (later / "model.safetensors").unlink()
    checkpoints.save(5, filled_with("five"))
    assert checkpoints.remove_older(5, keep=1, best_step=None).steps == []
    assert checkpoints.latest() == 5


def test_leftovers_of_a_killed_save_are_cleared(checkpoints: Checkpoints, tmp_path: Path):
    (tmp_path / "checkpoints" / ".step-000007.123").mkdir(parents=True)
    checkpoints.clear_leftovers()
    assert list((tmp_path / "checkpoints").iterdir()) == []


def stated(folder: Path, name: object, content: bytes = b"five") -> None:
    """Let the manifest name one file, as if it had that content."""
    files = {name: [len(content), hashlib.sha256(content).hexdigest()]}
    (folder / "checkpoint.json").write_text(json.dumps({"step": 5, "files": files}))


@pytest.mark.parametrize(
    "name", ["../outside", "sub/../../outside", "{folder}/outside", "", ".", "a\0b", "link", "by/link"]
)
def test_a_manifest_names_only_files_of_its_checkpoint(checkpoints: Checkpoints, name: str):
    folder = checkpoints.save(5, filled_with("five"))
    outside = folder.parent / "outside"
    outside.write_bytes(b"five")
    (folder / "link").symlink_to(outside)
    (folder / "by").mkdir()
    (folder / "by" / "link").symlink_to(outside)
    stated(folder, name.format(folder=folder.parent))
    assert not verify(folder)
    stated(folder, "model.safetensors")
    assert verify(folder)


@pytest.mark.parametrize("content", ["[" * 100_000, "5", '{"files": {"model.safetensors": []}}', '{"files": 5}'])
def test_a_manifest_of_another_shape_verifies_nothing(checkpoints: Checkpoints, content: str):
    folder = checkpoints.save(5, filled_with("five"))
    (folder / "checkpoint.json").write_text(content)
    assert not verify(folder)
    assert checkpoints.engine_of(5) == ""


def test_an_endless_file_is_not_read(checkpoints: Checkpoints):
    folder = checkpoints.save(5, filled_with("five"))
    os.mkfifo(folder / "pipe")
    stated(folder, "pipe")
    assert not verify(folder)
    (folder / "checkpoint.json").unlink()
    (folder / "checkpoint.json").symlink_to("/dev/zero")
    assert not verify(folder)


def test_a_file_of_another_size_is_not_hashed(checkpoints: Checkpoints):
    folder = checkpoints.save(5, filled_with("five"))
    with (folder / "huge").open("wb") as file:
        file.truncate(1 << 42)  # takes no room on the disk, and an hour to read
    stated(folder, "huge")
    assert not verify(folder)


class Slow:
    """An engine whose files are whole once `may_finish` is set."""

    def __init__(self, problem: OSError | None = None) -> None:
        self.may_finish, self.problem = threading.Event(), problem

    def save(self, folder: Path) -> Callable[[], None]:
        inner = folder / "state"
        inner.mkdir()
        (inner / "numbers").write_text("half")

        def finish() -> None:
            self.may_finish.wait()
            if self.problem is not None:
                raise self.problem
            (inner / "numbers").write_text("whole")

        return finish


@pytest.fixture
def log(tmp_path: Path) -> Any:
    log = EventLog(tmp_path / "events.jsonl")
    yield log
    log.close()


def saving(tmp_path: Path, log: EventLog, engine: Any, keep: int = 2) -> CheckpointWriter:
    return CheckpointWriter(RunFolder(tmp_path), log, engine, Checkpoints(RunFolder(tmp_path)), keep)


def test_training_goes_on_and_nothing_counts_until_it_is_whole(tmp_path: Path, log: EventLog):
    engine = Slow()
    found = saving(tmp_path, log, engine)
    found.start_save(5, None)
    found.report_finished()
    assert Checkpoints(RunFolder(tmp_path)).steps() == []
    assert read_events(tmp_path / "events.jsonl") == []
    engine.may_finish.set()
    found.finish()
    assert Checkpoints(RunFolder(tmp_path)).latest() == 5
    assert [type(event) for event in read_events(tmp_path / "events.jsonl")] == [CheckpointSaved]


def test_damage_to_an_inner_file_is_seen(tmp_path: Path, log: EventLog):
    engine = Slow()
    engine.may_finish.set()
    found = saving(tmp_path, log, engine)
    found.start_save(5, None)
    found.finish()
    (tmp_path / "checkpoints" / "step-000005" / "state" / "numbers").write_text("hole!")
    assert Checkpoints(RunFolder(tmp_path)).latest() is None


def test_a_full_disk_is_heard_at_the_next_checkpoint_and_leaves_nothing(tmp_path: Path, log: EventLog):
    engine = Slow(OSError(errno.ENOSPC, "No space left on device"))
    found = saving(tmp_path, log, engine)
    found.start_save(5, None)
    engine.may_finish.set()
    with pytest.raises(OSError, match="No space"):
        found.start_save(10, None)
    assert list((tmp_path / "checkpoints").iterdir()) == []


def test_a_finished_checkpoint_is_reported(tmp_path: Path, log: EventLog):
    engine = SimpleNamespace(save=lambda folder: lambda: (folder / "model").write_text("all"))
    found = saving(tmp_path, log, engine)
    found.start_save(5, 5)
    found.finish()
    [saved] = read_events(tmp_path / "events.jsonl")
    assert isinstance(saved, CheckpointSaved)
    assert (saved.step, saved.folder, saved.is_best) == (5, "checkpoints/step-000005", True)


def test_the_old_best_stays_until_the_new_one_is_whole(tmp_path: Path, log: EventLog, until: Until):
    engine = Slow()
    engine.may_finish.set()
    found, kept = saving(tmp_path, log, engine, keep=1), Checkpoints(RunFolder(tmp_path))
    found.start_save(5, 5)
    found.start_save(8, 5)
    found.finish()
    engine.may_finish.clear()
    found.start_save(9, 5)
    engine.may_finish.set()
    until(lambda: kept.steps() == [5, 9])
    engine.may_finish.clear()
    found.start_save(10, 10)  # by now a better one is known, and the one before is settled
    assert kept.steps() == [5, 9]
    engine.may_finish.set()
    found.finish()
    assert kept.steps() == [10]
    removed = [event.step for event in read_events(tmp_path / "events.jsonl") if isinstance(event, CheckpointRemoved)]
    assert sorted(removed) == [5, 8, 9]


def test_a_resume_that_keeps_fewer_makes_room_before_it_saves(tmp_path: Path):
    values = read_spec(resource("demo", "sentiment.yaml")).model_dump(mode="json")
    values["data"]["max_rows"] = 64
    values["evaluation"] |= {"every": "never", "best_metric": None}
    values["training"] |= {"max_steps": 3, "checkpoint_every": 1, "keep_checkpoints": 3}
    folder = RunFolder(tmp_path)
    folder.spec.write_text(spec_file.dump(values), encoding="utf-8")
    assert loop.run(folder) == 0
    values["training"] |= {"max_steps": 4, "keep_checkpoints": 1}
    (folder.path / "spec.started.yaml").unlink()  # as in a folder of an older Burnish, whose spec may be edited
    folder.spec.write_text(spec_file.dump(values), encoding="utf-8")
    assert loop.run(folder) == 0
    said = read_events(folder.events)
    resumed = next(place for place, event in enumerate(said) if isinstance(event, RunResumed))
    changes = [event for event in said[resumed:] if isinstance(event, CheckpointSaved | CheckpointRemoved)]
    assert [(type(event), event.step) for event in changes] == [
        (CheckpointRemoved, 1), (CheckpointRemoved, 2), (CheckpointSaved, 4), (CheckpointRemoved, 3)
    ]  # fmt: skip
