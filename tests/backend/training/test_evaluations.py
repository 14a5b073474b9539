"""Tests that a run measures every step that it owes a measure, and keeps the best one wherever it lies."""

from pathlib import Path
from typing import Any

import pytest
from pyarrow.parquet import read_table

from backend.contract import spec_file
from backend.contract.resources import resource
from backend.contract.run.events import EvaluationFinished, RowsSampled, RunFinished
from backend.contract.run.folder import RunFolder
from backend.preflight.resolve import read_spec
from backend.training import loop
from backend.training.event_log import read_events
from backend.training.requests import Requests


def run_folder(path: Path, **sections: dict[str, Any]) -> RunFolder:
    values = read_spec(resource("demo", "sentiment.yaml")).model_dump(mode="json")
    values["data"]["max_rows"] = 64
    for name, changes in sections.items():
        values[name] |= changes
    folder = RunFolder(path)
    folder.spec.write_text(spec_file.dump(values), encoding="utf-8")
    return folder


def evaluated_steps(folder: RunFolder) -> list[int]:
    return [event.step for event in read_events(folder.events) if isinstance(event, EvaluationFinished)]


class PauseAfterTwoSteps(Requests):
    """A person who asks for a pause between the second step and its evaluation."""

    looks = 0

    def interrupt(self) -> None:
        """Nothing is asked for during the stages."""

    def pending(self) -> str | None:
        """Called once after every step."""
        self.looks += 1
        return "pause" if self.looks == 2 else None


def test_untrained_model_can_be_the_best(tmp_path: Path):
    folder = run_folder(
        tmp_path,
        training={"max_steps": 2, "learning_rate": 10.0, "checkpoint_every": "never", "warmup": 0},
        evaluation={"at_start": True, "every": 2, "best_metric": "loss"},
    )

    assert loop.run(folder) == 0

    finished = read_events(folder.events)[-1]
    assert isinstance(finished, RunFinished)
    assert (finished.state, finished.best_step) == ("finished", 0)


def test_each_evaluation_shows_the_same_few_rows_before_its_numbers(tmp_path: Path):
    folder = run_folder(
        tmp_path,
        training={"max_steps": 1, "checkpoint_every": "never"},
        evaluation={"at_start": True, "every": 1, "best_metric": None, "max_rows": 16},
    )

    assert loop.run(folder) == 0

    kinds = (EvaluationFinished, RowsSampled)
    found = [event for event in read_events(folder.events) if isinstance(event, kinds)]
    assert [(type(event), event.step) for event in found] == [
        (RowsSampled, 0), (EvaluationFinished, 0), (RowsSampled, 1), (EvaluationFinished, 1)
    ]  # fmt: skip
    first, second = (
        [row.row for row in event.rows if row.kind == "drawn"] for event in found if isinstance(event, RowsSampled)
    )
    assert first == second
    validation = read_table(folder.predictions("validation", "parquet"))["text"].to_pylist()
    shown = [row for event in found if isinstance(event, RowsSampled) for row in event.rows]
    assert [row.values["text"] for row in shown] == [validation[row.row] for row in shown]


def test_resumed_run_makes_up_for_the_evaluation_that_a_pause_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = run_folder(tmp_path, training={"max_steps": 4}, evaluation={"every": 2, "best_metric": None})
    with monkeypatch.context() as patched:
        patched.setattr(loop, "Requests", PauseAfterTwoSteps)
        loop.run(folder)
    assert evaluated_steps(folder) == []

    loop.run(folder)

    assert evaluated_steps(folder) == [2, 4]
