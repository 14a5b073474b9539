"""Tests that curves are read with little memory, and hold what the last attempt that reached each step has measured."""

import math
import random
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest

from backend.contract.errors import InputError
from backend.contract.run import events
from backend.contract.run.curves import STEP_COLUMNS, Curves, parting_step


def step_finished(step: int, loss: float) -> events.StepFinished:
    return events.StepFinished(
        time=step, step=step, epoch=step / 7, loss=loss, learning_rate=0.1, gradient_norm=None, rows=4, tokens=9,
        seconds=0.5,
    )  # fmt: skip


def write(path: Path, many: list[events.AnyEvent]) -> Path:
    path.write_bytes(b"".join(map(events.encode, many)))
    return path


def history(seed: int) -> list[events.AnyEvent]:
    """Attempts that resume anywhere; evaluations and measurements of memory also come late, and again."""
    draw = random.Random(seed)
    happened: list[events.AnyEvent] = [events.RunStarted(time=0, name="a", task="b", model="c")]
    step = 0
    for attempt in range(2, draw.randint(3, 6)):
        for _ in range(draw.randint(0, 12)):
            step += draw.random() < 0.8
            happened.append(step_finished(step, draw.random()))
            if draw.random() < 0.4:
                metrics = {draw.choice(["loss", "f1", "accuracy"]): draw.random()}
                at = max(0, step - draw.choice([0, 0, 0, 1, 3]))
                happened.append(events.EvaluationFinished(
                    time=step, step=at, epoch=at / 9, metrics=metrics, rows=3, seconds=1, split=draw.choice(["validation", "train"])
                ))  # fmt: skip
            if draw.random() < 0.2:
                happened.append(events.MemoryMeasured(time=step, step=draw.randint(0, step), memory_mb=draw.random()))
        step = draw.randint(0, step)
        happened.append(events.RunResumed(time=step, attempt=attempt, from_step=step))
    return [*happened, step_finished(step + 1, 0.5)]


def kept(happened: list[events.AnyEvent]) -> list[events.AnyEvent]:
    """What counts, by the plain rule: a resume drops what is later than its step."""
    found: list[events.AnyEvent] = []
    for event in happened:
        if isinstance(event, events.RunResumed):
            found = [one for one in found if one.step <= event.from_step]
        elif isinstance(event, events.StepFinished | events.EvaluationFinished | events.MemoryMeasured):
            found.append(event)
    return sorted(found, key=lambda one: one.step)


@pytest.mark.parametrize("seed", range(40))
def test_the_curves_are_those_of_the_plain_rule(tmp_path: Path, seed: int) -> None:
    happened = history(seed)
    curves = Curves(write(tmp_path / "events.jsonl", happened))
    assert list(curves) == kept(happened)
    assert list(curves) == kept(happened), "they can be read again"


@pytest.mark.parametrize("seed", range(40))
def test_a_row_holds_the_last_value_of_its_step(tmp_path: Path, seed: int) -> None:
    happened = history(seed)
    rows: dict[int, dict] = {}
    for event in kept(happened):
        if isinstance(event, events.StepFinished):
            rows.setdefault(event.step, {}).update({name: getattr(event, name) for name in STEP_COLUMNS})
        elif isinstance(event, events.EvaluationFinished):
            row = rows.setdefault(event.step, {"epoch": event.epoch})
            row.update({f"{event.split}_{name}": value for name, value in event.metrics.items()})
    curves = Curves(write(tmp_path / "events.jsonl", happened))
    assert list(curves.rows()) == list(rows.items())
    assert set(curves.columns) == {"step", *STEP_COLUMNS, *(name for row in rows.values() for name in row)}


def test_memory_does_not_grow_with_the_run(tmp_path: Path) -> None:
    path = write(tmp_path / "events.jsonl", [step_finished(step, 1 / (step + 1)) for step in range(20_000)])
    tracemalloc.start()
    try:
        rows = sum(1 for _ in Curves(path).rows())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert rows == 20_000
    assert peak < 500_000, f"{peak / 1e6:.1f} MB"


def test_what_a_live_run_appends_meanwhile_is_left_for_the_next_time(tmp_path: Path) -> None:
    path = write(tmp_path / "events.jsonl", [step_finished(1, 0.5), step_finished(2, 0.4)])
    curves = Curves(path)
    with path.open("ab") as file:
        file.write(events.encode(events.RunResumed(time=9, attempt=2, from_step=0)))
        file.write(events.encode(step_finished(1, math.pi)))
    assert [row["loss"] for _, row in curves.rows()] == [0.5, 0.4]


@pytest.mark.parametrize(
    "content", [None, b"", b"\xff\n{}\n", b'{"event":"MemoryMeasured","time":1,"step":1,"memory_mb":2}']
)
def test_a_run_without_steps_is_refused(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "events.jsonl"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match="tiny: this run has no steps yet"):
        Curves(path, "tiny")


def test_an_event_file_is_written_without_loading_torch(tmp_path: Path) -> None:
    path = write(tmp_path / "events.jsonl", [step_finished(1, 0.5)])
    program = """
import sys; from pathlib import Path
from backend.contract.run import curves
from backend.mirrors import tensorboard
tensorboard.write(curves.Curves(Path(sys.argv[1])), Path(sys.argv[2]))
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program, path, tmp_path / "board"], check=True)


def steps(tmp_path: Path, name: str, losses: dict[int, float]) -> Path:
    return write(tmp_path / name, [step_finished(step, loss) for step, loss in losses.items()])


def test_losses_part_at_the_first_step_that_both_have_with_another_value(tmp_path: Path):
    one = steps(tmp_path, "one", {1: 0.9, 2: 0.8, 3: 0.7, 4: 0.6})
    assert parting_step(one, steps(tmp_path, "two", {1: 0.9, 3: 0.7, 4: 0.5})) == (4, True)
    assert parting_step(one, steps(tmp_path, "same", {1: 0.9, 2: 0.8, 3: 0.7})) == (3, False)
    assert parting_step(one, steps(tmp_path, "later", {5: 0.1})) == (0, False)


def test_losses_of_a_void_attempt_do_not_part(tmp_path: Path):
    one = steps(tmp_path, "one", {1: 0.9, 2: 0.8, 3: 0.7})
    resumed = [step_finished(1, 0.9), step_finished(2, 5.0), events.RunResumed(time=2, attempt=2, from_step=1)]
    two = write(tmp_path / "two", [*resumed, step_finished(2, 0.8), step_finished(3, 0.7)])
    assert parting_step(one, two) == (3, False)
