"""Tests with a real Ray cluster on this computer, with a token: runs train in its workers, obey, and survive what is killed."""

import json
import os
import shlex
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from backend.contract.machines import Machine, write_machines
from backend.contract.processes import python_command
from backend.contract.run.folder import RunFolder, run_folders
from backend.contract.spec.section import validate
from backend.remote import ray_jobs
from tests.backend.remote import clusters
from tests.backend.remote.clusters import wait_for
from tests.backend.remote.remote_runs import Burnish, losses

Until = Callable[[Callable[[], object]], None]
ENDLESS = ("--set", "training.max_steps=100000", "--set", "training.epochs=10000", "--set", "evaluation.every=never")
LONGER = ("--set", "training.max_steps=60", "--set", "training.epochs=100", "--set", "evaluation.every=20")
LACKING = clusters.missing("ray")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900), pytest.mark.skipif(bool(LACKING), reason=LACKING)]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[clusters.RayCluster]:
    """A cluster of two nodes with two CPUs each; its token is in `RAY_AUTH_TOKEN`."""
    with clusters.ray(tmp_path_factory.mktemp("ray")) as found, pytest.MonkeyPatch.context() as patch:
        patch.setenv(ray_jobs.TOKEN, found.token)
        yield found


@pytest.fixture
def dashboard(running: clusters.RayCluster) -> str:
    """Its address from here."""
    return running.dashboard


@pytest.fixture
def until() -> Until:
    return lambda is_true: wait_for(is_true, 240)


@pytest.fixture
def cluster(
    dashboard: str, tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch, until: Until
) -> Iterator[str]:
    """The cluster as the machine `cluster`, whose storage this computer sees; the fields can be changed by name."""
    monkeypatch.setenv("BURNISH_CONFIG", str(tmp_path / "config"))
    burnish = tmp_path / "burnish"
    burnish.write_text(f'#!/bin/sh\nexec {shlex.join(python_command("backend"))} "$@"\n')
    burnish.chmod(0o755)
    settings = {"scheduler": "ray", "dashboard": dashboard, "folder": str(place), "command": str(burnish)}
    write_machines({"cluster": validate(Machine, settings, "cluster")})
    yield dashboard
    for folder in run_folders(place / "runs"):
        if folder.life() == "alive":
            folder.request("stop")
    until(lambda: all(folder.life() != "alive" for folder in run_folders(place / "runs")))


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """As each worker has one CPU, a run here has one too."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


def _start_run(burnish: Burnish, spec: Path, runs: Path, *options: str) -> RunFolder:
    started = burnish("train", spec, "--on", "cluster", "--run-folder", runs / "there", "--detach", *options)
    assert started.returncode == 0, started.stderr
    return RunFolder(runs / "there")


def _assert_equal(there: RunFolder, here: RunFolder) -> None:
    assert losses(there) == losses(here)
    assert there.predictions().read_bytes() == here.predictions().read_bytes()
    assert (there.model / "model.safetensors").read_bytes() == (here.model / "model.safetensors").read_bytes()


def test_check_runs_a_job(burnish: Burnish, cluster: str, until: Until) -> None:
    until(lambda: "2 nodes, 4 CPU" in burnish("machines", "check", "cluster").stdout)
    result = burnish("machines", "check", "cluster")
    assert result.returncode == 0, result.stderr
    assert "Ray 2." in result.stdout


def test_two_workers_are_two_hosts_of_jax(burnish: Burnish, cluster: str, runs: Path, spec: Path, place: Path) -> None:
    jax = ("--set", "hardware.engine=jax", "--set", "model.dropout=0")  # its masks depend on the devices
    result = burnish("train", spec, "--on", "cluster", "--run-folder", runs / "there", *LONGER, *jax, "--set", "hardware.hosts=2")  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert burnish("train", spec, "--run-folder", runs / "here", *LONGER, *jax).returncode == 0
    there, here = RunFolder(runs / "there"), RunFolder(runs / "here")
    assert losses(there) == pytest.approx(losses(here), abs=1e-4)
    assert len(losses(there)) == 60
    assert losses(run_folders(place / "runs")[0].host(1)) == losses(there)


@pytest.mark.parametrize(("engine", "workers"), [("torch", 1), ("torch", 2), ("torch", 3), ("jax", 1)])
def test_workers_compute_the_numbers_of_processes_here(burnish: Burnish, cluster: str, runs: Path, spec: Path, engine: str, workers: int) -> None:  # fmt: skip
    # Two workers fit on one node and meet in a file, three meet over the network.
    several = ("--set", f"hardware.processes={workers}", "--set", f"hardware.engine={engine}")
    result = burnish("train", spec, "--on", "cluster", "--run-folder", runs / "there", *LONGER, *several)
    assert result.returncode == 0, result.stderr
    assert burnish("train", spec, "--run-folder", runs / "here", *LONGER, *several).returncode == 0
    assert len(losses(RunFolder(runs / "here"))) == 60
    _assert_equal(RunFolder(runs / "there"), RunFolder(runs / "here"))


def test_paused_run_continues_in_another_job(burnish: Burnish, cluster: str, runs: Path, spec: Path, until: Until) -> None:  # fmt: skip
    slow = ("--set", "training.max_steps=400", "--set", "training.epochs=1000", "--set", "evaluation.every=never")
    near = _start_run(burnish, spec, runs, *slow)
    until(lambda: len(losses(near)) > 3)
    assert burnish("checkpoint", near.path).returncode == 0
    assert burnish("pause", near.path).returncode == 0
    until(lambda: near.life() == "ended")
    assert '"state":"paused"' in near.events.read_text()
    assert 3 < len(losses(near)) < 400
    assert burnish("resume", near.path).returncode == 0
    assert burnish("train", spec, "--run-folder", runs / "here", *slow).returncode == 0
    _assert_equal(near, RunFolder(runs / "here"))


def test_worker_that_is_killed_costs_no_numbers(burnish: Burnish, cluster: str, runs: Path, spec: Path, place: Path, until: Until) -> None:  # fmt: skip
    slow = ("--set", "training.max_steps=400", "--set", "training.epochs=1000", "--set", "evaluation.every=never",
            "--set", "hardware.processes=2", "--set", "training.checkpoint_every=20")  # fmt: skip
    near = _start_run(burnish, spec, runs, *slow)
    until(lambda: len(losses(near)) > 30)
    far = run_folders(place / "runs")[0]
    victim = next(one for one in psutil.process_iter(["cmdline"]) if _is_rank(one, far, 1))
    victim.send_signal(signal.SIGKILL)
    until(lambda: near.life() == "ended")
    assert '"code":"process_lost"' in near.events.read_text()
    assert burnish("train", spec, "--run-folder", runs / "here", *slow).returncode == 0
    here = RunFolder(runs / "here")
    assert near.predictions().read_bytes() == here.predictions().read_bytes()
    assert (near.model / "model.safetensors").read_bytes() == (here.model / "model.safetensors").read_bytes()


def _is_rank(process: psutil.Process, folder: RunFolder, rank: int) -> bool:
    return f"{folder.path} --rank {rank} " in " ".join(process.info["cmdline"] or [])


def test_driver_that_is_killed_costs_no_numbers(burnish: Burnish, cluster: str, runs: Path, spec: Path, place: Path, until: Until) -> None:  # fmt: skip
    slow = ("--set", "training.max_steps=400", "--set", "training.epochs=1000", "--set", "evaluation.every=never",
            "--set", "training.checkpoint_every=20")  # fmt: skip
    near = _start_run(burnish, spec, runs, *slow)
    until(lambda: len(losses(near)) > 30)
    record = run_folders(place / "runs")[0].process_record()
    assert record
    os.kill(record.supervisor_pid, signal.SIGKILL)
    until(lambda: near.life() == "ended")
    assert "were gone. Restarted from its last checkpoint" in near.events.read_text()
    assert burnish("train", spec, "--run-folder", runs / "here", *slow).returncode == 0
    here = RunFolder(runs / "here")
    assert near.predictions().read_bytes() == here.predictions().read_bytes()
    assert (near.model / "model.safetensors").read_bytes() == (here.model / "model.safetensors").read_bytes()


def test_job_is_stopped_at_once(burnish: Burnish, cluster: str, runs: Path, spec: Path, place: Path, until: Until) -> None:  # fmt: skip
    near = _start_run(burnish, spec, runs, *ENDLESS)
    until(lambda: losses(near))
    assert burnish("stop", near.path, "--now").returncode == 0
    until(lambda: near.life() == "ended")
    far = str(run_folders(place / "runs")[0].path)
    until(lambda: not any(far in (one.info["cmdline"] or []) for one in psutil.process_iter(["cmdline"])))


def test_run_that_waits_for_workers_can_be_stopped(burnish: Burnish, cluster: str, runs: Path, spec: Path, until: Until) -> None:  # fmt: skip
    near = _start_run(burnish, spec, runs, "--set", "hardware.processes=9", "--set", "training.batch_size=16")
    until(lambda: "it waits for more nodes" in (near.events.read_text() if near.events.exists() else ""))
    assert burnish("stop", near.path).returncode == 0
    until(lambda: near.life() == "ended")
    assert '"state":"stopped"' in near.events.read_text()


def test_wrong_token_is_said(burnish: Burnish, cluster: str, monkeypatch: pytest.MonkeyPatch, spec: Path, runs: Path) -> None:  # fmt: skip
    monkeypatch.setenv(ray_jobs.TOKEN, "0" * 32)
    result = burnish("train", spec, "--on", "cluster", "--run-folder", runs / "there")
    assert (result.returncode, "does not accept your token" in result.stderr) == (2, True)
    assert not (runs / "there").exists()


def test_node_that_the_cluster_takes_away_costs_no_steps(burnish: Burnish, cluster: str, running: clusters.RayCluster, runs: Path, spec: Path, until: Until) -> None:  # fmt: skip
    near = _start_run(
        burnish, spec, runs, *ENDLESS, "--set", "hardware.processes=3", "--set", "training.checkpoint_every=never"
    )
    until(lambda: losses(near))
    _drain_second_node(running)
    until(lambda: '"event":"CheckpointSaved"' in near.events.read_text())
    until(lambda: "the cluster took back a node of the run" in near.events.read_text())
    until(lambda: "it waits for more nodes" in near.events.read_text())
    assert burnish("stop", near.path).returncode == 0
    until(lambda: near.life() == "ended")


def _drain_second_node(running: clusters.RayCluster) -> None:
    """As a cloud does with a spot instance. The cluster has one node less from here on, so this comes last."""
    request = urllib.request.Request(
        f"{running.dashboard}/nodes?view=summary", headers={"Authorization": f"Bearer {running.token}"}
    )
    with urllib.request.urlopen(request) as answer:
        nodes = [node["raylet"] for node in json.loads(answer.read())["data"]["summary"]]
    other = next(node["nodeId"] for node in nodes if not node.get("isHeadNode"))
    ray = str(Path(sys.executable).with_name("ray"))
    options = [f"--address={running.address}", f"--node-id={other}", "--reason=DRAIN_NODE_REASON_PREEMPTION",
               "--reason-message=spot", "--deadline-remaining-seconds=20"]  # fmt: skip
    subprocess.run([ray, "drain-node", *options], check=True, env={**os.environ, "RAY_AUTH_MODE": "token"})
