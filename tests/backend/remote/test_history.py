"""Tests that a machine's history comes from the copies of its runs, and that a plan for the machine takes its time from there."""

import json
from pathlib import Path

import pytest

from backend.contract import spec_file
from backend.contract.machines import Machine
from backend.contract.run import events
from backend.contract.run.folder import RunFolder, write_json
from backend.preflight import resolve
from backend.remote import history
from tests.backend.remote.remote_runs import Burnish


def _write_run(runs: Path, name: str, spec: Path, machine: str = "lab", seconds: float = 0.5, state: str = "finished") -> RunFolder:  # fmt: skip
    folder = RunFolder(runs / name)
    folder.path.mkdir(parents=True)
    values = resolve.read_spec(spec).model_dump(mode="json")
    folder.spec.write_text(spec_file.dump({**values, "name": name}), encoding="utf-8")
    write_json(folder.remote, {"machine": machine, "run": f"/far/runs/{name}"})
    steps = [
        events.StepFinished(
            time=float(number), step=number, epoch=0.1, loss=0.5, learning_rate=1e-3, gradient_norm=1.0, rows=8, tokens=100,
            seconds=9.0 if number == 1 else seconds,
        ) for number in range(1, 6)
    ]  # fmt: skip
    end = events.RunFinished(time=7.0, state=state, step=5, message="its disk is full" if state == "failed" else "")
    folder.events.write_bytes(b"".join(map(events.encode, [*steps, end])))
    return folder


def test_speed_leaves_the_first_step_out(runs: Path, spec: Path) -> None:
    speed = history.read_speed(_write_run(runs, "one", spec))
    assert speed
    assert (speed.steps, speed.rows_per_second, speed.token_seconds) == (4, 16.0, 0.005)


def test_history_lists_the_runs_of_the_machine_with_their_speed_and_failures(burnish: Burnish, machine: Machine, runs: Path, spec: Path) -> None:  # fmt: skip
    _write_run(runs, "one", spec)
    _write_run(runs, "two", spec, state="failed")
    _write_run(runs, "other", spec, machine="cluster")
    found = json.loads(burnish("machines", "history", "lab", "--json").stdout)["runs"]
    assert [(run["name"], run["rows_per_second"]) for run in found] == [("two", 16.0), ("one", 16.0)]
    assert found[0]["message"] == "its disk is full"
    assert burnish("machines", "history", "lab").stdout.splitlines()[-1] == "2 runs, 1 failed or lost"
    assert burnish("machines", "history", "cluster").stdout.splitlines()[-1] == "1 run, 0 failed or lost"
    assert "no run on gone is known here" in burnish("machines", "history", "gone").stdout


def test_plan_for_a_machine_takes_the_time_of_its_newest_run_like_it(burnish: Burnish, machine: Machine, runs: Path, spec: Path) -> None:  # fmt: skip
    arguments = ("plan", spec, "--on", "lab", "--set", "training.max_steps=1000")
    refused = burnish(*arguments)
    assert refused.returncode == 2
    assert "--on lab: no run with this model, task and engine is known to have trained there" in refused.stderr
    _write_run(runs, "2026-11-02-newer", spec, seconds=5.0)
    _write_run(runs, "2026-11-01-older", spec, seconds=0.5)
    _write_run(runs, "zzz of another machine", spec, machine="cluster", seconds=50.0)
    plan = json.loads(burnish(*arguments, "--json").stdout)
    [training] = [part["seconds"] for part in plan["time"] if part["name"] == "Training"]
    tokens_per_step = plan["tokens_per_epoch"] / plan["steps_per_epoch"]
    assert plan["measured"]["machine"] == "lab"
    assert training == pytest.approx(1000 * tokens_per_step * 5.0 / 100, rel=0.1)
    assert "from a run on lab, while memory and disk are those of this machine" in burnish(*arguments).stdout
