"""One writer, whole lines."""

import errno
from pathlib import Path
from types import SimpleNamespace

import pytest

from backend.contract.events import StageStarted, encode
from backend.run.event_log import EventLog, cut_torn_line, read_events

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

    monkeypatch.setattr(log, "_file", SimpleNamespace(write=short))
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
