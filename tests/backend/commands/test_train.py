"""Tests that a run can be started, watched, stopped, resumed and killed from a terminal, with true exit codes."""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest

from backend.commands import train
from backend.contract import spec_file
from backend.contract.errors import InputError
from backend.contract.processes import python_command
from backend.contract.resources import resource
from backend.contract.run import events
from backend.contract.run.fixes import RunFix
from backend.contract.run.folder import RunFolder, run_folders
from backend.training.checkpoints import Checkpoints
from tests import in_process
from tests.backend.commands.conftest import HUB_TOKEN

ENDLESS = ("--set=training.epochs=500", "--set=evaluation.every=never", "--set=evaluation.best_metric=null")


def _hear_interrupts() -> None:
    """Where the tests themselves run in the background of a shell, they and their children would ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Terminal:
    """`burnish` in the foreground of a terminal: a process that can be interrupted."""

    def __init__(self, runs: Path, *arguments: str | Path) -> None:
        self.process = subprocess.Popen(
            python_command("backend", *map(str, arguments)),
            env={**os.environ, "BURNISH_RUNS": str(runs)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=_hear_interrupts,
        )

    def wait_for(self, words: str) -> None:
        """Read stderr until a line holds these words."""
        stream: IO[str] | None = self.process.stderr
        assert stream
        for line in stream:
            if words in line:
                return
        raise AssertionError(f"never said: {words}")

    def interrupt(self) -> None:
        """Ctrl-C."""
        self.process.send_signal(signal.SIGINT)


@pytest.fixture
def terminal(runs: Path) -> Iterator[Callable[..., Terminal]]:
    """Opens terminals, which are closed afterwards, as is the run."""
    opened: list[Terminal] = []

    def open_one(*arguments: str | Path) -> Terminal:
        opened.append(Terminal(runs, *arguments))
        return opened[-1]

    yield open_one
    for each in opened:
        each.process.kill()
        each.process.communicate()
    for folder in run_folders(runs):
        if folder.life() == "alive":
            subprocess.run(python_command("backend", "stop", str(folder.path), "--now"), check=True)


def test_short_run_ends_with_model_and_predictions(short_run) -> None:
    folder, done = short_run

    (line,) = done.stdout.splitlines()
    result = json.loads(line)
    assert result["state"] == "finished"
    assert 0 <= result["metrics"]["accuracy"] <= 1
    assert result["predictions"] == str(folder / "predictions.csv")
    assert (folder / "predictions.csv").is_file()
    assert (Path(result["model"]) / "model.safetensors").is_file()


def test_the_plan_says_how_large_the_run_folder_becomes(burnish, short_run) -> None:
    folder, _ = short_run
    plan = json.loads(burnish("plan", folder / "spec.yaml", "--json").stdout)
    names = ("Checkpoints", "Final model", "Predictions, log")
    estimated = sum(part["megabytes"] for part in plan["disk"]["parts"] if part["name"] in names)
    written = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6
    assert estimated == pytest.approx(written, rel=0.15)


def test_run_folder_is_where_it_was_asked_for(short_run) -> None:
    folder, _ = short_run

    assert sorted(path.name for path in folder.parent.parent.iterdir()) == ["a new place"]


def test_finished_run_cannot_be_resumed(burnish, short_run) -> None:
    folder, _ = short_run
    before = (folder / "events.jsonl").read_bytes()

    done = burnish("resume", folder)

    assert done.returncode == 2
    assert "has finished" in done.stderr
    assert (folder / "events.jsonl").read_bytes() == before


def test_a_run_of_the_removed_bridge_is_not_resumed(burnish, runs: Path) -> None:
    run = RunFolder(runs / "bridged")
    run.path.mkdir(parents=True)
    values = spec_file.read(resource("demo", "sentiment.yaml"))
    run.spec.write_text(spec_file.dump({**values, "hardware": {"engine": "jax", "bridge": True}}), encoding="utf-8")

    done = burnish("resume", run.path)

    assert done.returncode == 2
    (sentence,) = done.stderr.splitlines()
    assert "the torchax bridge was removed" in sentence
    assert sentence.endswith("start a new run with PyTorch (hardware.engine: torch)")
    assert not run.lock.exists()


def test_resuming_on_several_hosts_with_the_queue_is_refused_before_anything_is_changed(burnish, runs: Path) -> None:
    run = RunFolder(runs / "pod")
    run.path.mkdir(parents=True)
    values = spec_file.read(resource("demo", "sentiment.yaml"))
    hosts = {"engine": "jax", "hosts": 2, "coordinator": "localhost:12345"}
    run.spec.write_text(spec_file.dump({**values, "hardware": hosts}), encoding="utf-8")

    done = burnish("resume", run.path, "--queue", "--set=training.keep_checkpoints=1", BURNISH_HOST="0")

    assert done.stderr.startswith("--queue: a run on several hosts")
    assert spec_file.read(run.spec)["hardware"] == hosts


def ended_with_nan(folder: Path) -> RunFolder:
    """What a run leaves whose loss became NaN at its 31st step."""
    folder.mkdir(parents=True)
    run = RunFolder(folder)
    shutil.copy(resource("demo", "sentiment.yaml"), run.spec)
    mend = RunFix({"training.learning_rate": 0.5})
    many = (
        events.RunStarted(time=1.0, name="broken", task="text_classification", model="bert-tiny"),
        events.RunFinished(time=2.0, state="failed", step=31, code="nan_loss", message="…", mend=mend),
    )
    run.events.write_bytes(b"".join(map(events.encode, many)))
    return run


def test_a_run_that_would_become_nan_again_is_not_resumed_and_the_way_out_is_said(burnish, runs: Path) -> None:
    run = ended_with_nan(runs / "broken")

    done = burnish("resume", run.path)

    assert done.returncode == 2
    (sentence,) = done.stderr.splitlines()
    assert "before its first checkpoint, so resuming it would give the same result" in sentence
    assert sentence.endswith(f"start a new run: burnish train {run.spec} --set=training.learning_rate=0.5")
    assert not run.lock.exists()


def test_a_run_that_became_nan_after_a_checkpoint_may_go_on(tmp_path: Path) -> None:
    run = ended_with_nan(tmp_path / "broken")
    asked = argparse.Namespace(engine=None)
    with pytest.raises(InputError, match="would give the same result"):
        train.refuse_the_same_end(run, asked, Checkpoints(run))

    def write(folder: Path) -> None:
        (folder / "weights").write_text("w")

    Checkpoints(run).save(20, write)
    train.refuse_the_same_end(run, asked, Checkpoints(run))


def test_hub_token_is_nowhere_in_the_run_folder(short_run) -> None:
    folder, done = short_run

    files = [path for path in folder.rglob("*") if path.is_file()]
    assert {"spec.yaml", "events.jsonl", "process.log", "predictions.csv"} <= {path.name for path in files}
    assert [path.name for path in files if HUB_TOKEN.encode() in path.read_bytes()] == []
    assert HUB_TOKEN not in done.stdout + done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
def test_a_run_outlives_its_terminal_and_is_stopped_resumed_and_interrupted(
    terminal: Callable[..., Terminal], burnish, runs: Path, spec: Path, until
) -> None:
    first = terminal("train", spec, *ENDLESS, "--set=training.checkpoint_every=never", "--json")
    first.wait_for("training")
    (folder,) = map(RunFolder, runs.iterdir())
    until(lambda: b'"StepFinished"' in folder.events.read_bytes())
    first.process.kill()
    first.process.wait()
    assert folder.life() == "alive"

    assert burnish("stop", folder.name).returncode == 0
    until(lambda: folder.life() == "ended")
    (line,) = json.loads(burnish("runs", "--json").stdout)
    assert line["state"] == "stopped"
    assert line["step"] > 0
    assert folder.model.is_dir()
    shutil.rmtree(folder.model)

    second = terminal("resume", folder.name, "--json")
    second.wait_for("training")
    second.interrupt()
    printed, _ = second.process.communicate()

    assert second.process.returncode == 0
    assert json.loads(printed)["state"] == "stopped"
    assert folder.process_record().attempt == 2
    assert folder.model.is_dir()
    assert folder.life() == "ended"

    third = json.loads(burnish("resume", folder.name, "--detach", "--json").stdout)
    assert (third["run"], third["name"], third["state"]) == (str(folder.path), folder.name, "starting")
    assert folder.process_record().attempt == 3
    assert burnish("stop", folder.name, "--now").returncode == 0
    until(lambda: folder.life() == "ended")


def test_folder_deleted_under_the_run_is_said(burnish, runs: Path, spec: Path) -> None:
    def delete(folder: RunFolder) -> None:
        while folder.path.exists():  # a file written meanwhile keeps its folder from being removed
            shutil.rmtree(folder.path, ignore_errors=True)

    with in_process.at_the_first_step(runs, delete):
        done = burnish("train", spec, *ENDLESS, "--set=training.checkpoint_every=5")

    assert done.returncode == 1
    assert "deleted" in done.stderr.splitlines()[-1]
    assert list(runs.iterdir()) == []
