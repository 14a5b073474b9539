"""Tests that `burnish export` writes each step and evaluation once, as the last attempt has it."""

import csv
from pathlib import Path

import pytest

from backend.contract import events


@pytest.fixture
def run(runs: Path) -> Path:
    """A run that was resumed from step 1 after it had reached step 3."""

    def step(number: int, loss: float) -> events.StepFinished:
        return events.StepFinished(
            time=1, step=number, epoch=number / 2, loss=loss, learning_rate=0.1, gradient_norm=None, rows=4, tokens=9,
            seconds=0.5,
        )  # fmt: skip

    def evaluation(number: int, accuracy: float) -> events.EvaluationFinished:
        return events.EvaluationFinished(
            time=1, step=number, epoch=number / 2, metrics={"accuracy": accuracy}, rows=4, seconds=0.1
        )

    folder = runs / "tiny"
    folder.mkdir(parents=True)
    (folder / "spec.yaml").write_text("version: 1\n")
    happened = [
        evaluation(0, 0.5),
        step(1, 1.0), step(2, 0.9), evaluation(2, 0.6), step(3, 0.8),
        events.RunResumed(time=2, attempt=2, from_step=1),
        step(2, 0.7), evaluation(2, 0.75),
    ]  # fmt: skip
    (folder / "events.jsonl").write_bytes(b"".join(map(events.encode, happened)) + b'{"event":"StepFin')
    return folder


def test_void_steps_are_left_out(burnish, run: Path, tmp_path: Path) -> None:
    file = tmp_path / "curves.csv"

    assert burnish("export", "tiny", "--csv", file).returncode == 0

    with file.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert [(row["step"], row["loss"], row["validation_accuracy"]) for row in rows] == [
        ("0", "", "0.5"),
        ("1", "1.0", ""),
        ("2", "0.7", "0.75"),
    ]


def test_curves_go_to_stdout_when_asked(burnish, run: Path) -> None:
    done = burnish("export", run, "--csv", "-")

    assert done.stdout.splitlines()[0].startswith("step,epoch,loss,learning_rate,gradient_norm")


def test_folder_that_is_not_there_is_named(burnish, run: Path, tmp_path: Path) -> None:
    done = burnish("export", "tiny", "--csv", tmp_path / "nowhere" / "curves.csv")

    assert done.returncode == 2
    assert "cannot be written" in done.stderr
