"""Run folders of released versions open for ever: each is kept as it was written, but for weights and vocabularies.

`python -m tests.recording record FOLDER --runs DIR` makes such folders; those of a version are never changed again.
"""

import csv
import io
import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest

from app.core.runs.run_state import RunState
from backend.__main__ import main
from backend.contract.run.events import decode_lines
from backend.contract.run.folder import RunFolder
from backend.preflight.resolve import read_run

KEPT = Path(__file__).parents[2] / "data" / "kept"
RUNS = {path.parent.name: path.parent for path in sorted(KEPT.glob("*/*/spec.yaml"))}
TASKS = {
    "text_classification", "text_regression", "token_classification", "question_answering", "seq2seq_lm", "causal_lm",
    "masked_lm", "multiple_choice",
}  # fmt: skip


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Path:
    """A runs folder with all of them, or with the one that the test is about."""
    names = [request.getfixturevalue("name")] if "name" in request.fixturenames else RUNS
    for name in names:
        shutil.copytree(RUNS[name], tmp_path / "runs" / name)
    monkeypatch.setenv("BURNISH_RUNS", str(tmp_path / "runs"))
    return tmp_path / "runs"


def raw_events(name: str) -> list[dict[str, Any]]:
    """The lines as any JSON reader sees them."""
    return [json.loads(line) for line in (RUNS[name] / "events.jsonl").read_text(encoding="utf-8").splitlines()]


def losses(name: str) -> dict[int, float]:
    return {event["step"]: event["loss"] for event in raw_events(name) if event["event"] == "StepFinished"}


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_there_is_one_of_every_task():
    assert {event["task"] for name in RUNS for event in raw_events(name) if event["event"] == "RunStarted"} == TASKS


@pytest.mark.parametrize("name", RUNS)
def test_its_spec_opens(name: str, runs: Path):
    spec = read_run(RunFolder(runs / name))
    started = raw_events(name)[0]
    assert (spec.name, spec.task["type"], spec.hardware.engine) == (started["name"], started["task"], started["engine"])
    assert (spec.adapter is not None) == name.startswith("lora")


@pytest.mark.parametrize("name", RUNS)
def test_the_window_shows_its_whole_curves(name: str):
    state = RunState()
    state.apply_all(decode_lines((RUNS[name] / "events.jsonl").read_bytes())[0])
    assert dict(zip(state.series["loss"].xs, state.series["loss"].ys, strict=True)) == losses(name)
    assert state.state == "finished"
    assert state.step == max(losses(name))
    measured = [event for event in raw_events(name) if event["event"] == "EvaluationFinished"]
    assert len(state.evaluations) == len(measured) > 0


def test_all_are_listed_with_their_final_metrics(runs: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["runs", "--json"]) == 0
    listed = {Path(run["run"]).name: run for run in json.loads(capsys.readouterr().out)}
    assert {name: run["state"] for name, run in listed.items()} == dict.fromkeys(RUNS, "finished")
    assert {name: run["metrics"] for name, run in listed.items()} == {
        name: raw_events(name)[-1]["metrics"] for name in RUNS
    }


def test_all_are_compared(runs: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["compare", *RUNS]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in RUNS)
    assert "task.type" in printed


@pytest.mark.parametrize("name", RUNS)
def test_its_report_is_written(name: str, runs: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["report", name]) == 0
    assert f"State: finished at step {max(losses(name))}." in capsys.readouterr().out


@pytest.mark.parametrize("name", RUNS)
def test_its_curves_are_exported(name: str, runs: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["export", name, "--csv", "-"]) == 0
    written = {int(row["step"]): float(row["loss"]) for row in rows(capsys.readouterr().out) if row["loss"]}
    assert written.keys() == losses(name).keys()
    assert all(math.isclose(loss, losses(name)[step], rel_tol=1e-6) for step, loss in written.items())


@pytest.mark.parametrize("name", RUNS)
def test_its_predictions_are_exported(name: str, runs: Path, tmp_path: Path):
    assert main(["export", name, "--predictions", str(tmp_path / "rows.csv")]) == 0
    exported = rows((tmp_path / "rows.csv").read_text(encoding="utf-8"))
    before = rows((RUNS[name] / "predictions.csv").read_text(encoding="utf-8"))
    assert [row["prediction"] for row in exported] == [row["prediction"] for row in before] != []
