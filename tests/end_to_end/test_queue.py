"""The queue from the command line: runs that wait for each other, and what may be asked of one that waits."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from end_to_end.burnish_process import Burnish, wait_for

from backend.contract.run.folder import RunFolder, new_run_folder, run_folders
from tests.backend.lifecycle.conftest import SUPERVISE

LONG = {"max_steps": 100_000, "batch_size": 8, "learning_rate": 1e-4, "checkpoint_every": "never"}
UNTIL_STOPPED = """
import pathlib, sys, time
stop = pathlib.Path(sys.argv[1], "stop")
while not stop.exists():
    time.sleep(0.02)
stop.unlink()
"""


@pytest.fixture
def first(burnish: Burnish, clock) -> Iterator[RunFolder]:
    """A run that goes on until it is stopped; its engine is a few lines of Python."""
    run = new_run_folder(burnish.runs, "first")
    run.spec.write_bytes(long(burnish).read_bytes())
    command = [sys.executable, "-P", "-c", SUPERVISE, str(run.path), UNTIL_STOPPED, "60", "0"]
    supervisor = subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True)
    wait_for(lambda: (record := run.process_record()) and record.engine_pid, clock)
    yield run
    run.request("stop")
    supervisor.wait(timeout=60)


@pytest.fixture
def second(burnish: Burnish, first: RunFolder) -> RunFolder:
    """One that waits for it."""
    return queued(burnish, "second")


def long(burnish: Burnish) -> Path:
    return burnish.spec("long.yaml", training=LONG, evaluation={"every": "never"})


def queued(burnish: Burnish, name: str) -> RunFolder:
    done = burnish("train", str(burnish.spec()), "--set", f"name={name}", "--queue", "--detach", "--json")
    started = json.loads(done.stdout)
    assert started["state"] == "queued"
    return RunFolder(started["run"])


@pytest.mark.slow
def test_two_queued_runs_compute_beside_each_other_on_two_devices(burnish: Burnish, clock):
    burnish.in_process = False
    hardware = {"engine": "jax", "environment": {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}}
    spec = burnish.spec("two.yaml", training=LONG, evaluation={"every": "never"}, hardware=hardware)
    spec.write_text(spec.read_text(encoding="utf-8").replace("  threads: 1\n", ""), encoding="utf-8")
    runs = []
    for name in ("one", "two", "three"):
        done = burnish("train", str(spec), "--set", f"name={name}", "--queue", "--detach", "--json")
        assert done.stdout, done.stderr
        runs.append(RunFolder(json.loads(done.stdout)["run"]))
    try:
        wait_for(lambda: [run.claimed_devices() for run in runs[:2]] == [{"cpu"}, {"cpu:1"}], clock)
        wait_for(lambda: all(b"StepFinished" in run.events.read_bytes() for run in runs[:2]), clock)
        assert runs[2].is_queued()
    finally:
        for run in reversed(runs):
            run.request("stop")
        wait_for(lambda: ended(*runs), clock)


def ended(*folders: RunFolder) -> bool:
    return all(folder.life() == "ended" for folder in folders)


@pytest.fixture
def clock() -> Iterator["subprocess.Popen[str]"]:
    """A process that lives as long as the test, for waits that watch nobody else."""
    process = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"], text=True)
    yield process
    process.kill()
    process.wait()


def test_runs_train_one_after_another_and_each_alone(burnish: Burnish, first: RunFolder, second: RunFolder):
    followed = burnish.start("train", str(burnish.spec()), "--set", "name=third", "--queue", "--json")
    third = wait_for(lambda: next((run for run in run_folders(burnish.runs) if "third" in run.name), None), followed)
    wait_for(third.is_queued, followed)
    lines = {run["name"]: run for run in json.loads(burnish("runs", "--json").stdout)}
    assert (lines[second.name]["state"], lines[third.name]["state"]) == ("queued", "queued")
    assert lines[second.name]["message"] == f"waits for {first.name} (1 of 2 in the queue)"
    assert lines[third.name]["message"] == f"waits for {first.name} (2 of 2 in the queue)"

    burnish("stop", second.name)
    wait_for(lambda: ended(second), followed)
    assert third.is_queued()
    assert burnish("stop", first.name).returncode == 0
    wait_for(lambda: (record := third.process_record()) and record.engine_pid, followed)
    assert burnish("stop", third.name, "--now").returncode == 0  # other tests train to the end
    out, said = followed.communicate(timeout=240)

    assert json.loads(out)["name"] == third.name
    told = [line for line in said.splitlines() if line.startswith(third.name)]
    assert told[0] == f"{third.name} waits for {first.name} (2 of 2 in the queue); Ctrl-C removes it from the queue"
    assert f"{third.name} starts; Ctrl-C stops it" in told
    assert first.exit_record().ended < third.process_record().started


def test_ctrl_c_takes_a_run_that_waits_out_of_the_queue(burnish: Burnish, first: RunFolder):
    followed = burnish.start(
        "train", str(burnish.spec()), "--set", "name=second", "--queue",
        start_new_session=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    second = wait_for(lambda: next((run for run in run_folders(burnish.runs) if "second" in run.name), None), followed)
    assert followed.stderr
    assert any("waits for" in line for line in iter(followed.stderr.readline, ""))  # after what was chosen for it

    followed.send_signal(signal.SIGINT)
    out, said = followed.communicate(timeout=60)

    assert followed.returncode == 0, said
    assert out.splitlines()[:2] == ["stopped", f"resume with  burnish resume {second.name}"]
    assert "Leaving the queue" in said
    assert not second.events.exists()
    assert {path.name for path in second.path.iterdir()} <= {
        "facts.json", "exit.json", "process.json", "process.log", "run.lock", "spec.yaml",
    }  # fmt: skip
    assert first.life() == "alive"


def test_a_run_that_waits_is_let_go_by_start(burnish: Burnish, first: RunFolder, second: RunFolder, clock):
    done = burnish("start", second.name)

    assert (done.returncode, done.stderr) == (0, "")
    wait_for(lambda: (record := second.process_record()) and record.engine_pid, clock)
    assert not second.is_queued()
    assert first.life() == "alive"
    assert burnish("stop", second.name, "--now").returncode == 0


def test_what_a_run_that_waits_cannot_do_is_said(burnish: Burnish, first: RunFolder, second: RunFolder):
    checkpoint, start, resume = (
        burnish("checkpoint", second.name),
        burnish("start", first.name),
        burnish("resume", second.name),
    )

    assert [done.returncode for done in (checkpoint, start, resume)] == [2, 2, 2]
    assert "waits in the queue, so there is nothing to save yet" in checkpoint.stderr
    assert start.stderr == f"{first.name}: this run is not in the queue; it has already started\n"
    assert "already waiting in the queue" in resume.stderr
    assert burnish("stop", second.name).stdout == f"{second.name}: stop asked for; it leaves the queue\n"


@pytest.mark.slow
def test_a_stopped_one_is_listed_as_stopped_and_resumed_at_once(
    burnish: Burnish, first: RunFolder, second: RunFolder, clock
):
    burnish("stop", second.name)
    wait_for(lambda: ended(second), clock)
    [line] = json.loads(burnish("runs", "--search", "second", "--json").stdout)
    assert (line["state"], line["message"]) == ("stopped", "it was removed from the queue before it started")

    done = burnish("resume", second.name, "--json")

    assert json.loads(done.stdout)["state"] == "finished", done.stderr
    assert first.life() == "alive"


@pytest.mark.slow
def test_a_paused_run_is_resumed_in_the_queue(burnish: Burnish, clock):
    spec = burnish.spec(training={**LONG, "max_steps": 400})
    paused = RunFolder(
        json.loads(burnish("train", str(spec), "--set", "name=paused", "--detach", "--json").stdout)["run"]
    )
    wait_for(lambda: b"StepFinished" in (paused.events.read_bytes() if paused.events.exists() else b""), clock)
    burnish("pause", paused.name)
    wait_for(lambda: ended(paused), clock)
    other = json.loads(burnish("train", str(long(burnish)), "--detach", "--json").stdout)["name"]

    resumed = json.loads(burnish("resume", paused.name, "--queue", "--detach", "--json").stdout)

    assert resumed["state"] == "queued"
    assert json.loads(burnish("runs", "--search", "paused", "--json").stdout)[0]["state"] == "queued"
    burnish("stop", other)
    wait_for(lambda: ended(paused), clock)
    assert json.loads(burnish("runs", "--search", "paused", "--json").stdout)[0]["state"] == "finished"


def test_one_that_was_lost_while_it_waited_waits_again_when_it_is_resumed(
    burnish: Burnish, first: RunFolder, second: RunFolder, clock
):
    os.kill(second.process_record().supervisor_pid, signal.SIGKILL)
    wait_for(lambda: second.life() == "lost", clock)
    [line] = json.loads(burnish("runs", "--search", "second", "--json").stdout)
    assert line["state"] == "lost"

    assert json.loads(burnish("resume", second.name, "--detach", "--json").stdout)["state"] == "queued"
    assert second.is_queued()


def test_a_run_on_several_hosts_does_not_wait(burnish: Burnish, tmp_path: Path):
    spec = burnish.spec()
    spec.write_text(spec.read_text().replace("threads: 1", "engine: jax\n  hosts: 2\n  coordinator: localhost:12345"))

    burnish.environment["BURNISH_HOST"] = "0"
    refused = burnish("train", str(spec), "--queue", "--run-folder", str(tmp_path / "shared"))

    assert refused.returncode == 2
    assert refused.stderr.startswith("--queue: a run on several hosts starts on all of them at once")
    assert not (tmp_path / "shared").exists()
