"""One writer, whole lines."""

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from backend.contract.run.events import RunResumed, RunStarted, StageStarted, StepFinished, Warned, encode
from backend.training.event_log import EventLog, cut_torn_line, read_events
from tests.backend.training.example_events import STARTED, step

LINE = encode(StageStarted(time=1.0, stage="training"))


@pytest.mark.parametrize("torn", [b"", b'{"event":"Step', b"x" * 200_000])
def test_a_torn_last_line_is_cut(tmp_path: Path, torn: bytes):
    path = tmp_path / "events.jsonl"
    path.write_bytes(LINE * 3 + torn)
    cut_torn_line(path)
    assert path.read_bytes() == LINE * 3


def test_a_file_of_half_a_line_becomes_empty(tmp_path: Path):
    path = tmp_path / "events.jsonl"
    path.write_bytes(LINE[:-5])
    cut_torn_line(path)
    assert path.read_bytes() == b""


def test_half_a_write_is_completed_when_there_is_room_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    log = EventLog(tmp_path / "events.jsonl")
    write, room = log._file.write, iter([10])

    def short(data: bytes) -> int:
        for size in room:
            return write(data[:size])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(log, "_file", SimpleNamespace(write=short, fileno=log._file.fileno))
    with pytest.raises(OSError, match="No space"):
        log.write(StageStarted(time=1.0, stage="training"))
    monkeypatch.undo()
    log.write(StageStarted(time=1.0, stage="training"))
    log.close()
    assert (tmp_path / "events.jsonl").read_bytes() == LINE * 2


def test_what_waits_is_written_in_order_by_the_next_urgent_event(tmp_path: Path):
    log = EventLog(tmp_path / "events.jsonl")
    log.append(StageStarted(time=1, stage="first"))
    assert read_events(tmp_path / "events.jsonl") == []
    log.write(StageStarted(time=2, stage="second"))
    assert [event.stage for event in read_events(tmp_path / "events.jsonl")] == ["first", "second"]
    log.close()


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EventLog]:
    """A log into which a run has written its beginning and five steps."""
    log = EventLog(tmp_path / "events.jsonl")
    for event in (STARTED, StageStarted(time=1.0, stage="training", total=9), *map(step, range(1, 6))):
        log.write(event)
    yield log
    log.close()


def delete(path: Path) -> None:
    path.unlink()


def empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize("lose", [delete, empty])
def test_a_file_that_is_lost_while_the_run_goes_on_begins_anew_and_says_which_steps_are_missing(
    tmp_path: Path, log: EventLog, lose: Callable[[Path], None]
):
    path = tmp_path / "events.jsonl"
    lose(path)
    log.write(step(6))
    found = read_events(path)
    assert [type(event) for event in found] == [RunStarted, StageStarted, Warned, StepFinished]
    assert "steps 1–5 and their evaluations are missing" in found[2].message


def test_a_file_that_an_editor_replaced_is_gone_on_with(tmp_path: Path, log: EventLog):
    path = tmp_path / "events.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    (tmp_path / "saved").write_bytes(b"".join(lines[:4]))
    (tmp_path / "saved").replace(path)
    log.write(step(6))
    found = read_events(path)
    assert path.read_bytes().startswith(b"".join(lines[:4]))
    assert "steps 3–5 and their evaluations are missing" in found[-2].message
    assert [event.step for event in found if isinstance(event, StepFinished)] == [1, 2, 6]


def test_a_later_attempt_whose_file_is_lost_still_says_whose_run_it_is(tmp_path: Path):
    log = EventLog(tmp_path / "events.jsonl")
    log.remember(STARTED)
    log.write(RunResumed(time=2.0, attempt=2, from_step=5))
    log.write(step(6))
    (tmp_path / "events.jsonl").unlink()
    log.write(step(7))
    log.close()
    found = read_events(tmp_path / "events.jsonl")
    assert [type(event) for event in found] == [RunStarted, RunResumed, Warned, StepFinished]
    assert "steps 1–6 and their evaluations are missing" in found[2].message


def test_a_folder_that_is_gone_is_not_made_again(tmp_path: Path):
    folder = tmp_path / "run"
    folder.mkdir()
    log = EventLog(folder / "events.jsonl")
    log.write(step(1))
    shutil.rmtree(folder)
    log.write(step(2))
    log.close()
    assert not folder.exists()


def link(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.with_name("outside"))


def link_to_the_file_itself(path: Path) -> None:
    path.rename(path.with_name("moved"))
    path.symlink_to("moved")


def hard_link(path: Path) -> None:
    path.unlink()
    path.hardlink_to(path.with_name("outside"))


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("put", [link, link_to_the_file_itself, hard_link, pipe, folder])
def test_what_a_run_may_not_write_to_is_put_aside(tmp_path: Path, log: EventLog, put: Callable[[Path], None]):
    (tmp_path / "outside").write_bytes(b"somebody's file\n")
    path = tmp_path / "events.jsonl"
    put(path)
    log.write(step(6))
    assert [type(event) for event in read_events(path)] == [RunStarted, StageStarted, Warned, StepFinished]
    assert (tmp_path / "outside").read_bytes() == b"somebody's file\n"
    assert len(list(tmp_path.glob(".events.jsonl.removed-*"))) == 1
