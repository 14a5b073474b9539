"""`burnish search`: what it refuses before anything is written, and one real search that is killed on the way."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from backend.contract import spec_file
from backend.contract.processes import python_command
from backend.contract.run.folder import RunFolder

GOOD: dict[str, Any] = {
    "space": {"training.learning_rate": {"log": [1e-4, 1e-2]}, "training.weight_decay": [0.0, 0.1]},
    "metric": "accuracy",
    "trials": 4,
    "sampler": "random",
}


@pytest.fixture
def search_spec(spec: Path):
    """Writes the demo's spec with a search section."""

    def write(changes: dict[str, Any] | None = None, **search: Any) -> Path:
        values = {**spec_file.read(spec), "search": {**GOOD, **search}}
        values = spec_file.set_values(values, changes or {})
        spec.write_text(spec_file.dump(values), encoding="utf-8")
        return spec

    return write


@pytest.mark.parametrize(
    ("search", "words"),
    [
        ({"space": {"training.learning_rat": [1]}}, "training.learning_rat: no such setting; did you mean learning_rate?"),
        ({"space": {"training.learning_rate": {"log": [1e-5, 100]}}}, "training.learning_rate: 100.0 cannot be used: input should be less than or equal to 10"),
        ({"space": {"training.schedule": ["linear", "square"]}}, "training.schedule: 'square' cannot be used"),
        ({"space": {"training.batch_size": {"log": [4, 64]}}}, "this setting takes whole numbers; write {log_int: [4, 64]}"),
        ({"space": {"training.learning_rate": {"log": [1e-3, 1e-5]}}}, "the range from 0.001 to 1e-05 is empty"),
        ({"space": {"adapter.rank": [4, 8]}}, "adapter"),
        ({"space": {}}, "search.space"),
        ({"metric": "f2"}, "search.metric: trials of text_classification cannot be compared by 'f2'; choose one of"),
        ({"trials": None}, "search.trials: a search needs a budget"),
        ({"trials": 0}, "search.trials: 0 cannot be used"),
        ({"sampler": "magic"}, "search.sampler"),
        ({"sampler": "grid"}, "a grid needs a list of values here"),
        ({"halvin": {}}, "search.halvin: no such setting; did you mean halving?"),
        ({"halving": {"factor": 1}}, "search.halving.factor"),
        ({"confirm": {"seeds": 1}}, "search.confirm.seeds"),
    ],
    ids=str,
)  # fmt: skip
def test_mistake_is_one_sentence_and_nothing_is_written(
    burnish, runs: Path, search_spec, search: dict[str, Any], words: str
):
    done = burnish("search", search_spec(**search))
    assert done.returncode == 2
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not runs.exists()


@pytest.mark.parametrize(
    ("changes", "search", "words"),
    [
        ({"data.validation": None, "evaluation.best_metric": None}, {}, "trials are compared on validation data"),
        ({"evaluation.best_metric": None}, {"metric": None}, "search.metric: say by which metric"),
        ({"training.epochs": 1}, {"halving": {}}, "trials are only evaluated at their end"),
        ({"evaluation.every": "never", "evaluation.best_metric": None}, {"halving": {}}, "trials are only evaluated at their end"),
        ({"training.seeds": 3}, {}, "training.seeds: a search trains its best trials with new seeds"),
        ({"data.train": "nothing.csv"}, {}, "nothing.csv"),
    ],
    ids=str,
)  # fmt: skip
def test_search_that_could_compare_nothing_is_refused(
    burnish, runs: Path, search_spec, changes: dict[str, Any], search: dict[str, Any], words: str
):
    done = burnish("search", search_spec(changes, **search))
    assert done.returncode == 2, done.stderr
    assert words in done.stderr
    assert not runs.exists()


def test_spec_without_a_search_is_refused_with_an_example(burnish, spec: Path, runs: Path):
    done = burnish("search", spec)
    assert done.returncode == 2
    assert "has no search section; add one, for example search: {space:" in done.stderr
    assert not runs.exists()


def test_search_is_not_trained_as_a_run(burnish, search_spec, runs: Path):
    done = burnish("train", search_spec())
    assert done.returncode == 2
    assert "start it with burnish search" in done.stderr
    assert not runs.exists()


def test_folder_holds_one_search(burnish, search_spec, tmp_path: Path):
    there = tmp_path / "there"
    there.mkdir()
    done = burnish("search", search_spec(), "--run-folder", there)
    assert done.returncode == 2
    assert "already exists; choose a new folder" in done.stderr
    assert list(there.iterdir()) == []


def test_run_is_no_search(burnish, short_run):
    done = burnish("search", short_run[0])
    assert done.returncode == 2
    assert "this is a run, not a search" in done.stderr


# Real ones


def _call(*arguments: str, runs: Path) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "BURNISH_RUNS": str(runs)}
    return subprocess.run(
        python_command("backend", *arguments), env=environment, capture_output=True, text=True, check=False
    )


def _losses(folder: RunFolder) -> dict[int, float]:
    from backend.search.report import read_losses

    return dict(enumerate(read_losses(folder)))


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_killed_search_gives_what_an_undisturbed_one_gives(search_spec, runs: Path, tmp_path: Path):
    path = search_spec({"data.max_rows": 64, "training.epochs": 9}, trials=4, halving={"factor": 2, "rungs": 2})
    undisturbed = _call("search", str(path), "--run-folder", str(tmp_path / "one"), "--json", runs=runs)
    assert undisturbed.returncode == 0, undisturbed.stderr
    folder = RunFolder(tmp_path / "other")
    started = _call("search", str(path), "--run-folder", str(folder.path), "--detach", runs=runs)
    assert started.stdout.strip() == str(folder.path)
    for trial in ("trial-001", "trial-002"):
        _wait(lambda trial=trial: b"StepFinished" in _bytes(folder.trials / trial / "events.jsonl"))
        record = folder.process_record()
        assert record is not None
        os.kill(record.supervisor_pid, signal.SIGKILL)
        _wait(lambda: not folder.is_carried())
        _call("search", str(folder.path), "--detach", runs=runs)
    done = _call("search", str(folder.path), runs=runs)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == str(folder.path)
    one = json.loads(undisturbed.stdout)
    other = json.loads(_call("search", str(folder.path), "--json", runs=runs).stdout)
    trials = [[{key: trial[key] for key in ("trial", "settings", "metric", "state", "steps")} for trial in found["trials"]] for found in (one, other)]  # fmt: skip
    assert trials[0] == trials[1]
    for trial in one["trials"]:
        name = Path(trial["run"]).name
        assert _losses(RunFolder(trial["run"])) == _losses(RunFolder(folder.trials / name))


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_two_trials_train_at_once_and_continue_after_a_kill(
    search_spec, runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("XLA_FLAGS", "--xla_force_host_platform_device_count=2")
    changes = {"data.max_rows": 32, "training.epochs": 4, "hardware.engine": "jax"}
    folder = RunFolder(tmp_path / "search")
    started = _call("search", str(search_spec(changes, trials=3, parallel=2)), "--run-folder", str(folder.path), "--detach", runs=runs)  # fmt: skip
    assert started.returncode == 0, started.stderr
    first, second = (RunFolder(folder.trials / f"trial-00{number}") for number in (1, 2))
    _wait(lambda: all(one.is_carried() and not one.waits() and one.claimed_devices() for one in (first, second)))
    record = folder.process_record()
    assert record is not None
    os.kill(record.supervisor_pid, signal.SIGKILL)
    _wait(lambda: not folder.is_carried())
    done = _call("search", str(folder.path), runs=runs)
    assert done.returncode == 0, done.stderr
    found = json.loads(_call("search", str(folder.path), "--json", runs=runs).stdout)["trials"]
    assert sorted(trial["trial"] for trial in found) == [1, 2, 3]
    assert all(trial["state"] == "finished" and trial["steps"] == trial["total_steps"] for trial in found)
    assert len({trial["settings"]["training.learning_rate"] for trial in found}) == 3


def _wait(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 400  # another trial may have to train first
    while not condition():
        assert time.monotonic() < deadline, "the condition was never met"
        time.sleep(0.05)


def _bytes(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""
