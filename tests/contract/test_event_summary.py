"""The quick reading of a run's events."""

import tracemalloc
from pathlib import Path

import pytest

from app.core.runs.run_state import RunState
from backend.contract.run import event_summary, events
from backend.contract.run.event_summary import TOO_LONG, EventSummary, landmarks
from backend.contract.run.folder import RunFolder

RECORDED = Path(__file__).parents[1] / "data" / "recorded"


@pytest.mark.parametrize("name", sorted(path.name for path in RECORDED.iterdir()))
def test_landmarks_fold_to_the_same_run_as_all_events(name: str):
    path = RunFolder(RECORDED / name).events
    whole, quick = RunState(), RunState()
    whole.apply_all(events.decode_lines(path.read_bytes())[0])
    quick.apply_all(landmarks(path))
    for attribute in ("state", "step", "seconds_spent", "best", "finished", "resumes", "total_steps", "attempt"):
        assert getattr(quick, attribute) == getattr(whole, attribute), attribute


def test_a_portion_at_a_time_gives_the_same(tmp_path: Path):
    path = RunFolder(RECORDED / "sentiment-resumed").events
    whole, parts = RunState(), RunState()
    whole.apply_all(landmarks(path))
    reader = EventSummary(path)
    while not reader.is_complete:
        parts.apply_all(reader.read(5000))
    assert (parts.seconds_spent, parts.step, parts.evaluations) == (
        whole.seconds_spent,
        whole.step,
        whole.evaluations,
    )


def test_sampled_rows_are_left_out(tmp_path: Path):
    path = tmp_path / "events.jsonl"
    step = events.StepFinished(
        time=1, step=1, epoch=0, loss=1, learning_rate=1, gradient_norm=1, rows=1, tokens=1, seconds=1
    )
    rows = events.RowsSampled(time=2, step=1, rows=[])
    measured = events.EvaluationFinished(time=3, step=1, epoch=0, metrics={}, rows=1, seconds=1)
    path.write_bytes(b"".join(map(events.encode, [step, rows, measured, rows])))
    assert landmarks(path) == [step, measured]


def test_a_half_written_line_waits(tmp_path: Path):
    path = tmp_path / "events.jsonl"
    line = events.encode(events.Warned(time=1, code="a", message="whole"))
    path.write_bytes(line + line[:20])
    reader = EventSummary(path)
    assert len(reader.read()) == 1
    with path.open("ab") as file:
        file.write(line[20:])
    assert len(reader.read()) == 1


def test_a_shorter_file_is_read_anew(tmp_path: Path):
    path = tmp_path / "events.jsonl"
    line = events.encode(events.Warned(time=1, code="a", message="x"))
    path.write_bytes(line * 3)
    reader = EventSummary(path)
    reader.read()
    path.write_bytes(line)
    assert (len(reader.read()), reader.began_anew) == (1, True)


def test_the_loss_of_every_step_is_read_beside_the_landmarks(tmp_path: Path):
    path = tmp_path / "events.jsonl"
    every = [
        events.StepFinished(
            time=n, step=n, epoch=n / 7, loss=None if n == 5 else 1.0 / n, learning_rate=1e-5 * n, gradient_norm=None,
            rows=1, tokens=1, seconds=1,
        )
        for n in range(1, 40)
    ]  # fmt: skip
    torn = b'{"event":"StepFinished","step":9,"ep\n'
    evaluated = events.EvaluationFinished(time=3, step=1, epoch=0, metrics={"loss": 0.5}, rows=1, seconds=1)
    path.write_bytes(b"".join([torn, events.encode(evaluated), *map(events.encode, every)]))
    reader, found = EventSummary(path), []
    while not reader.is_complete:
        reader.read(500)
        found += reader.losses()
        assert list(reader.losses()) == []
    assert found == [(step.step, step.loss, step.learning_rate) for step in every if step.loss is not None]


def test_of_a_file_that_no_run_writes_only_both_ends_are_read(tmp_path: Path):
    path = tmp_path / "events.jsonl"
    first, last = (events.Warned(time=n, code="a", message="x") for n in (1, 9))
    with path.open("wb") as file:
        file.write(events.encode(first))
        file.truncate(20_000_000_000)  # sparse, so it takes no room
        file.seek(0, 2)
        file.write(b"\n" + events.encode(last))
    reader, found, portions = EventSummary(path), [], 0
    while not reader.is_complete:
        found += reader.read()
        portions += 1
    assert [event.time for event in found] == [1, 1, 9]
    assert found[1].message.startswith(
        "events.jsonl is 20,000 MB, far more than a run writes, so only its start and end were read"
    )
    assert portions < 100


def test_of_nothing_but_zeros_it_is_said_too_and_once(tmp_path: Path):
    path = tmp_path / "events.jsonl"
    with path.open("wb") as file:
        file.truncate(20_000_000_000)
    reader = EventSummary(path)
    found = [event for _ in range(100) for event in reader.read()]
    assert reader.is_complete
    assert [event.code for event in found] == [TOO_LONG]


def test_a_long_run_that_grows_is_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "events.jsonl"
    line = events.encode(events.Warned(time=1, code="a", message="x"))
    monkeypatch.setattr(event_summary, "MAX_UNREAD", 50 * len(line))
    reader, found = EventSummary(path), 0
    for _ in range(10):
        with path.open("ab") as file:
            file.write(line * 40)
        found += len(reader.read())
    assert found == 400


def test_a_line_without_end_is_passed_over_in_portions(tmp_path: Path):
    path = tmp_path / "events.jsonl"
    with path.open("wb") as file:
        file.truncate(6 * events.LONGEST_LINE_BYTES)
    event = events.Warned(time=1, code="a", message="after it")
    with path.open("ab") as file:
        file.write(b"\n" + events.encode(event))
    tracemalloc.start()
    found = landmarks(path)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found == [event]
    assert most < 4 * events.LONGEST_LINE_BYTES
