"""Tests that whoever follows a run sees whole events, each once, and only those of the attempt that was started."""

from pathlib import Path

from backend.commands.follow import EventReader
from backend.contract import events

FIRST = events.encode(events.Warned(time=1, code="a", message="one"))
SECOND = events.encode(events.Warned(time=2, code="b", message="two"))


def messages(found: list[events.AnyEvent]) -> list[str]:
    """The words of the events."""
    return [event.message for event in found if isinstance(event, events.Warned)]


def test_half_written_line_waits(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    reader = EventReader(file)
    file.write_bytes(FIRST + SECOND[:20])

    assert messages(reader.new()) == ["one"]
    file.write_bytes(FIRST + SECOND)
    assert messages(reader.new()) == ["two"]
    assert reader.new() == []


def test_file_that_is_not_there_yet_has_no_events(tmp_path: Path) -> None:
    assert EventReader(tmp_path / "events.jsonl").new() == []


def test_earlier_attempts_and_their_torn_line_are_passed_over(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    file.write_bytes(FIRST + b'{"torn')
    reader = EventReader.at_end(file)

    file.write_bytes(FIRST + SECOND)  # the new attempt cuts the torn line

    assert messages(reader.new()) == ["two"]
