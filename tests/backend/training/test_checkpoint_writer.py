"""A checkpoint that is written beside training counts once it is whole, and what goes wrong with it is heard."""

import errno
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
from backend.training.checkpoint_writer import Saving
from backend.training.checkpoints import Checkpoints
from backend.training.event_log import EventLog, read_events
from tests.backend.conftest import Until


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


def saving(tmp_path: Path, log: EventLog, engine: Any, keep: int = 2) -> Saving:
    return Saving(RunFolder(tmp_path), log, engine, Checkpoints(RunFolder(tmp_path)), keep)


def test_training_goes_on_and_nothing_counts_until_it_is_whole(tmp_path: Path, log: EventLog):
    engine = Slow()
    found = saving(tmp_path, log, engine)
    found.begin(5, None)
    found.look()
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
    found.begin(5, None)
    found.finish()
    (tmp_path / "checkpoints" / "step-000005" / "state" / "numbers").write_text("hole!")
    assert Checkpoints(RunFolder(tmp_path)).latest() is None


def test_a_full_disk_is_heard_at_the_next_checkpoint_and_leaves_nothing(tmp_path: Path, log: EventLog):
    engine = Slow(OSError(errno.ENOSPC, "No space left on device"))
    found = saving(tmp_path, log, engine)
    found.begin(5, None)
    engine.may_finish.set()
    with pytest.raises(OSError, match="No space"):
        found.begin(10, None)
    assert list((tmp_path / "checkpoints").iterdir()) == []


def test_a_finished_checkpoint_is_reported(tmp_path: Path, log: EventLog):
    engine = SimpleNamespace(save=lambda folder: lambda: (folder / "model").write_text("all"))
    found = saving(tmp_path, log, engine)
    found.begin(5, 5)
    found.finish()
    [saved] = read_events(tmp_path / "events.jsonl")
    assert isinstance(saved, CheckpointSaved)
    assert (saved.step, saved.folder, saved.is_best) == (5, "checkpoints/step-000005", True)


def test_the_old_best_stays_until_the_new_one_is_whole(tmp_path: Path, log: EventLog, until: Until):
    engine = Slow()
    engine.may_finish.set()
    found, kept = saving(tmp_path, log, engine, keep=1), Checkpoints(RunFolder(tmp_path))
    found.begin(5, 5)
    found.begin(8, 5)
    found.finish()
    engine.may_finish.clear()
    found.begin(9, 5)
    engine.may_finish.set()
    until(lambda: kept.steps() == [5, 9])
    engine.may_finish.clear()
    found.begin(10, 10)  # by now a better one is known, and the one before is settled
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
