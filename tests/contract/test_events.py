"""Events survive their file, whatever state the file is in and whichever version wrote it."""

import tracemalloc
import typing
from collections.abc import Callable, Iterable
from io import BytesIO
from pathlib import Path

import msgspec
import pytest

from backend.contract.errors import InputError
from backend.contract.run import events
from backend.contract.run.fixes import RunFix

STEP = events.StepFinished(
    time=1.5,
    step=1,
    epoch=0.1,
    loss=0.7,
    learning_rate=3e-5,
    gradient_norm=1.0,
    rows=16,
    tokens=320,
    seconds=0.02,
)
KINDS = typing.get_args(events.AnyEvent)


def filled(kind: type[events.Event]) -> events.Event:
    """An event of that kind with a telling value in every field."""
    by_type: dict[object, object] = {
        str: "two\nlines and සිංහල",
        int: 7,
        float: 0.25,
        bool: True,
        list[str]: ["a.csv"],
        list[events.SampledRow]: [events.SampledRow(row=3, kind="worst", values={"text": "é", "n": 1}, rating=0.5)],
        dict[str, str]: {"torch": "2.13"},
        dict[str, int]: {"good": 3},
        dict[str, bool]: {"loss": False},
        dict[str, float]: {"accuracy": 0.5},
        dict[str, tuple[float, float]]: {"accuracy": (0.4, 0.6)},
        dict[str, float | None]: {"accuracy": 0.9, "f1": None},
        float | None: 0.5,
        str | None: "accuracy",
        int | None: 4,
        dict[str, typing.Any]: {"3 told apart": ["{count} told apart", {"count": 3}]},
        RunFix | None: RunFix({"hardware.micro_batch_size": 4}, resume=True),
    }
    return kind(**{field.name: by_type[field.type] for field in msgspec.structs.fields(kind)})


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_event_comes_back_equal(kind: type[events.Event]):
    event = filled(kind)
    line = events.encode(event)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert events.decode(line) == event


def test_half_written_last_line_waits():
    whole, half = events.encode(STEP), events.encode(STEP)[:-5]
    found, taken = events.decode_lines(whole + half)
    assert found == [STEP]
    assert taken == len(whole)


def test_line_that_was_half_written_is_read_when_it_is_whole():
    data = events.encode(STEP)
    _, taken = events.decode_lines(data[:20])
    found, _ = events.decode_lines(data[taken:])
    assert found == [STEP]


def test_unknown_event_of_a_newer_version_is_skipped():
    newer = b'{"event":"TeaBrewed","time":1,"cups":2}\n'
    found, taken = events.decode_lines(newer + events.encode(STEP))
    assert found == [STEP]
    assert taken == len(newer) + len(events.encode(STEP))


def test_unknown_field_of_a_newer_version_is_ignored():
    line = events.encode(STEP).replace(b'{"event"', b'{"mood":"good","event"')
    assert events.decode(line) == STEP


@pytest.mark.parametrize("line", [b"", b"\n", b"not json\n", b"[1]\n", b"\0\0\0\n", b'{"event":"StepFinished"}\n'])
def test_damaged_line_is_no_event(line: bytes):
    assert events.decode_lines(line + events.encode(STEP))[0] == [STEP]


def test_loss_that_is_no_number_becomes_null():
    event = events.decode(events.encode(msgspec.structs.replace(STEP, loss=float("nan"), gradient_norm=float("inf"))))
    assert isinstance(event, events.StepFinished)
    assert event.loss is None
    assert event.gradient_norm is None


@pytest.mark.parametrize("longer", [0, 1, 17])
def test_line_too_long_for_an_event_is_passed_over_in_portions(monkeypatch, longer: int):
    monkeypatch.setattr(events, "LONGEST_LINE_BYTES", 32)
    file = BytesIO(b"a\n" + b"x" * (64 + longer) + b"\nb\nc")
    assert list(events.lines_of(file)) == [b"a\n", b"b\n", b"c"]


def test_lines_end_at_the_size_that_was_asked_for():
    assert list(events.lines_of(BytesIO(b"one\ntwo\nthree\n"), size=6)) == [b"one\n", b"tw"]


def test_a_line_that_never_ends_is_refused(tmp_path: Path):
    with (tmp_path / "events.jsonl").open("wb+") as file:
        file.truncate(20_000_000_000)  # sparse, so it takes no room
        with pytest.raises(InputError, match="without a line break"):
            list(events.lines_of(file))


# A reader

ONE = events.encode(events.Warned(time=1, code="a", message="one"))
TWO = events.encode(events.Warned(time=2, code="b", message="two"))


def messages(found: Iterable[events.AnyEvent]) -> list[str]:
    """The words of the events."""
    return [event.message for event in found if isinstance(event, events.Warned)]


def test_half_written_line_waits(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    reader = events.EventReader(file)
    file.write_bytes(ONE + TWO[:20])

    assert messages(reader.new()) == ["one"]
    file.write_bytes(ONE + TWO)
    assert messages(reader.new()) == ["two"]
    assert list(reader.new()) == []


def test_file_that_is_not_there_yet_has_no_events(tmp_path: Path) -> None:
    assert list(events.EventReader(tmp_path / "events.jsonl").new()) == []


def test_earlier_attempts_and_their_torn_line_are_passed_over(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    file.write_bytes(ONE + b'{"torn')
    reader = events.EventReader.at_end(file)

    file.write_bytes(ONE + TWO)  # the new attempt cuts the torn line

    assert messages(reader.new()) == ["two"]


def test_a_file_that_begins_anew_is_read_from_its_beginning(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    file.write_bytes(ONE * 3)
    reader = events.EventReader(file)
    assert messages(reader.new()) == ["one"] * 3

    file.unlink()
    assert list(reader.new()) == []
    file.write_bytes(TWO)

    assert messages(reader.new()) == ["two"]


def most_memory(action: Callable[[], object]) -> int:
    """Bytes that Python held at most meanwhile."""
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_long_file_is_read_in_pieces(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    with file.open("wb") as target:
        target.write(ONE + b"x" * (3 * events.LONGEST_LINE_BYTES) + b"\n" + TWO)
        target.truncate(30 * events.LONGEST_LINE_BYTES)
    found: list[events.AnyEvent] = []

    assert most_memory(lambda: found.extend(events.EventReader(file).new())) < 5 * events.LONGEST_LINE_BYTES
    assert messages(found) == ["one", "two"]
    assert most_memory(lambda: events.EventReader.at_end(file)) < 5 * events.LONGEST_LINE_BYTES


def test_the_end_behind_a_line_without_end_is_found(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    file.write_bytes(ONE)
    with file.open("ab") as target:
        target.truncate(2 * events.LONGEST_LINE_BYTES)
    reader = events.EventReader.at_end(file)
    with file.open("ab") as target:
        target.write(b"\n" + TWO)

    assert messages(reader.new()) == ["two"]
