"""One run on two hosts, which are processes here: its result is that of one host, and they live, stop and die together."""

import csv
import os
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from end_to_end.burnish_process import Burnish, events_of, wait_for

from backend.contract.run.events import CheckpointSaved, EvaluationFinished, PlanMade, RunFinished, StepFinished
from backend.contract.run.folder import RunFolder
from backend.training.checkpoints import Checkpoints

FLAGS = "--xla_backend_optimization_level=0 --xla_force_host_platform_device_count={}"


@pytest.fixture(autouse=True)
def processes(burnish: Burnish) -> None:
    """Every command is one: each is a host of its own."""
    burnish.in_process = False


def spec(burnish: Burnish, hosts: int, training: dict[str, Any] | None = None, **hardware: Any) -> Path:
    """A small training on four processors: those of one host, or two of each of two."""
    flags = {"XLA_FLAGS": FLAGS.format(4 // hosts)}
    where = {"hosts": hosts, "coordinator": f"127.0.0.1:{free_port()}"} if hosts > 1 else {"devices": [0, 1, 2, 3]}
    path = burnish.spec(
        f"{hosts}.yaml",
        training={"max_steps": 4, "checkpoint_every": "never", **(training or {})},
        evaluation={"every": 2, "best_metric": "loss"},
        hardware={"engine": "jax", "device": "cpu", "environment": flags, **where, **hardware},
    )
    path.write_text(path.read_text(encoding="utf-8").replace("  threads: 1\n", ""), encoding="utf-8")
    return path


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def start(burnish: Burnish, *command: str) -> list[subprocess.Popen[str]]:
    """The same command on both hosts."""
    hosts = [Burnish(burnish.home, {"BURNISH_HOST": str(number)}, in_process=False) for number in range(2)]
    return [host.start(*command) for host in hosts]


def ended(processes: list[subprocess.Popen[str]]) -> list[tuple[int, str]]:
    """Exit code and last words of each."""
    found = []
    for process in processes:
        _, err = process.communicate(timeout=280)
        found.append((process.returncode, (err.splitlines() or [""])[-1]))
    return found


def losses(folder: RunFolder) -> list[float]:
    return [event.loss or 0.0 for event in events_of(folder) if isinstance(event, StepFinished)]


def loss_evaluated(folder: RunFolder) -> list[float]:
    return [event.metrics["loss"] or 0.0 for event in events_of(folder) if isinstance(event, EvaluationFinished)]


def rows(folder: RunFolder) -> list[dict[str, str]]:
    with folder.predictions().open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_two_hosts_train_what_one_trains(burnish: Burnish):
    one, two = RunFolder(burnish.runs / "one"), RunFolder(burnish.runs / "two")
    assert burnish("train", str(spec(burnish, 1)), "--run-folder", str(one.path)).returncode == 0
    path = spec(burnish, 2, parallelism="fsdp")
    found = ended(start(burnish, "train", str(path), "--run-folder", str(two.path)))
    assert [code for code, _ in found] == [0, 0], found
    np.testing.assert_allclose(losses(two), losses(one), rtol=0, atol=1e-5)
    np.testing.assert_allclose(loss_evaluated(two), loss_evaluated(one), rtol=0, atol=1e-5)
    assert losses(two.host(1)) == losses(two)
    assert [row["prediction"] for row in rows(two)] == [row["prediction"] for row in rows(one)]
    assert (two.model / "model.safetensors").is_file()
    assert not {"model", "checkpoints", "predictions.csv"} & {entry.name for entry in two.host(1).path.iterdir()}
    plan = next(event for event in events_of(two) if isinstance(event, PlanMade))
    assert (plan.replicas, plan.micro_batch_size) == (4, 2)


@pytest.mark.slow
def test_hosts_die_together_go_on_and_stop_at_one_step(burnish: Burnish):
    run = RunFolder(burnish.runs / "run")
    path = spec(burnish, 2, {"max_steps": 100_000, "checkpoint_every": 5})
    processes = start(burnish, "train", str(path), "--run-folder", str(run.path))
    wait_for(lambda: any(isinstance(event, CheckpointSaved) for event in events_of(run)), processes[0], 200)
    record = run.host(1).process_record()
    assert record is not None
    os.kill(record.engine_pid, signal.SIGKILL)
    killed = time.monotonic()
    (first, sentence), (other, _) = ended(processes)
    assert time.monotonic() - killed < 60
    assert (first, other) == (1, 1)
    assert "run failed: host 1 disappeared: the engine process was killed (SIGKILL)" in sentence
    saved = Checkpoints(run).latest()
    assert saved

    processes = start(burnish, "resume", str(run.path))
    wait_for(lambda: losses(run)[-1:] and _last_step(run) > saved + 5, processes[0], 200)
    assert burnish("stop", str(run.path)).returncode == 0
    assert [code for code, _ in ended(processes)] == [0, 0]
    ends = [events_of(folder)[-1] for folder in (run, run.host(1))]
    assert [(end.state, end.step) for end in ends if isinstance(end, RunFinished)] == [("stopped", _last_step(run))] * 2
    assert Checkpoints(run).latest() == _last_step(run)


def _last_step(folder: RunFolder) -> int:
    return [event.step for event in events_of(folder) if isinstance(event, StepFinished)][-1]


@pytest.mark.slow
def test_a_host_that_does_not_come_is_named(burnish: Burnish):
    first = Burnish(burnish.home, {"BURNISH_HOST": "0"}, in_process=False)
    done = first("train", str(spec(burnish, 2, host_timeout=1)), "--run-folder", str(burnish.runs / "run"))
    assert done.returncode == 1
    assert (
        "run failed: the other hosts did not connect within 1 second. Run the same command on all 2 hosts"
        in done.stderr
    )


@pytest.mark.parametrize(
    ("number", "words"),
    [
        ("", "hardware.hosts: the spec is the same on all 2 hosts"),
        ("2", "BURNISH_HOST: '2' is not a host number; hardware.hosts is 2, so use 0 to 1"),
        ("1", "no run was started there within 1 second"),
    ],
)
def test_a_host_that_cannot_take_part_is_told_why(burnish: Burnish, number: str, words: str):
    host = Burnish(burnish.home, {"BURNISH_HOST": number})  # refused before it becomes a host
    done = host("train", str(spec(burnish, 2, host_timeout=1)), "--run-folder", str(burnish.runs / "run"))
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 2 if number == "1" else 1)
    assert words in done.stderr
    assert not (burnish.runs / "run").exists()
