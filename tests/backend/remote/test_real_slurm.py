"""Tests with the real Slurm, of one node: a run is a job, is queued again at its time limit, and can be cancelled."""

import getpass
import json
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from backend.contract.machines import Machine, read_machines, write_machines
from backend.contract.run.folder import RunFolder, run_folders
from tests.backend.remote import clusters
from tests.backend.remote.clusters import wait_for
from tests.backend.remote.remote_runs import Burnish, losses

Until = Callable[[Callable[[], object]], None]
ENDLESS = ("--set", "training.max_steps=1000000", "--set", "evaluation.every=never")
LACKING = clusters.missing("slurm")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(LACKING), reason=LACKING)]


@pytest.fixture(scope="module")
def configuration(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The configuration of a running cluster with processes and folders of its own."""
    with clusters.slurm(tmp_path_factory.mktemp("slurm")) as path:
        yield path


@pytest.fixture
def cluster(configuration: Path, machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The machine `cluster`: this computer as its login node."""
    monkeypatch.setenv("SLURM_CONF", str(configuration))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    write_machines({"cluster": machine.model_copy(update={"address": "", "scheduler": "slurm", "time": "10"})})
    yield
    subprocess.run(["scancel", "--user", getpass.getuser()], check=True)
    wait_for(lambda: not subprocess.run(["squeue", "-h"], capture_output=True).stdout)


def _state(burnish: Burnish, folder: RunFolder) -> str:
    return next(line["state"] for line in json.loads(burnish("runs", "--json").stdout) if line["name"] == folder.name)


@pytest.mark.usefixtures("cluster")
def test_run_as_a_job_equals_the_run_here(burnish: Burnish, runs: Path, spec: Path, place: Path) -> None:
    there = burnish("train", spec, "--on", "cluster", "--run-folder", runs / "there", "--json")
    here = burnish("train", spec, "--run-folder", runs / "here")
    assert (here.returncode, there.returncode) == (0, 0), there.stderr
    near, local = RunFolder(runs / "there"), RunFolder(runs / "here")
    assert losses(near) == losses(local)
    assert json.loads(there.stdout.splitlines()[-1])["metrics"]["accuracy"] >= 0
    assert near.predictions().read_bytes() == local.predictions().read_bytes()
    assert (near.model / "model.safetensors").read_bytes() == (local.model / "model.safetensors").read_bytes()
    assert near.events.read_bytes() == run_folders(place / "runs")[0].events.read_bytes()


@pytest.mark.usefixtures("cluster")
def test_job_at_its_time_limit_is_queued_again_and_goes_on_exactly(burnish: Burnish, runs: Path, spec: Path, until: Until) -> None:  # fmt: skip
    before = read_machines()["cluster"]
    write_machines({"cluster": before.model_copy(update={"time": "1", "script_lines": "#SBATCH --signal=B:USR1@10"})})
    burnish("train", spec, "--on", "cluster", "--run-folder", runs / "there", "--detach", *ENDLESS)
    near, local = RunFolder(runs / "there"), RunFolder(runs / "here")
    _until_later(lambda: '"event":"RunResumed"' in near.events.read_text() if near.events.exists() else False)
    resumed_at = len(losses(near))
    until(lambda: len(losses(near)) > resumed_at + 20)
    assert near.life() == "alive"
    assert burnish("stop", near.path).returncode == 0
    _until_later(lambda: near.life() == "ended")
    assert _state(burnish, near) == "stopped"
    burnish("train", spec, "--run-folder", runs / "here", "--detach", *ENDLESS)
    _until_later(lambda: len(losses(local)) >= len(losses(near)))
    burnish("stop", local.path)
    assert losses(near) == losses(local)[: len(losses(near))]
    until(lambda: local.life() == "ended")


def _until_later(condition: Callable[[], object]) -> None:
    end = time.monotonic() + 240  # Slurm looks at time limits every 30 s
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.5)


@pytest.mark.usefixtures("cluster")
def test_two_tasks_are_two_hosts_of_a_run(burnish: Burnish, runs: Path, spec: Path, place: Path) -> None:
    before = read_machines()["cluster"]
    lines = "#SBATCH --nodes=1\n#SBATCH --ntasks-per-node=2"  # the cluster has only one node
    write_machines({"cluster": before.model_copy(update={"script_lines": lines})})
    jax = ("--json", "--set", "hardware.engine=jax", "--set", "model.dropout=0")  # its masks depend on the devices
    there = burnish("train", spec, "--on", "cluster", "--run-folder", runs / "there", *jax, "--set", "hardware.hosts=2")
    here = burnish("train", spec, "--run-folder", runs / "here", *jax)
    assert (here.returncode, there.returncode) == (0, 0), there.stderr
    near, local = RunFolder(runs / "there"), RunFolder(runs / "here")
    assert losses(near) == pytest.approx(losses(local), rel=1e-5)
    metrics = [json.loads(done.stdout.splitlines()[-1])["metrics"] for done in (there, here)]
    assert metrics[0] == pytest.approx(metrics[1], rel=1e-5)
    assert run_folders(place / "runs")[0].host(1).exit_record()


@pytest.mark.usefixtures("cluster")
def test_run_that_was_paused_here_continues_as_a_job_and_comes_back(burnish: Burnish, runs: Path, spec: Path, until: Until) -> None:  # fmt: skip
    assert burnish("train", spec, "--run-folder", runs / "moved", "--detach", *ENDLESS).returncode == 0
    run = RunFolder(runs / "moved")
    for place in ("cluster", "local"):
        until(lambda: len(losses(run)) > 3)
        assert burnish("pause", run.path).returncode == 0
        until(lambda: run.life() != "alive")
        at = len(losses(run))
        moved = burnish("resume", run.path, "--on", place, "--detach")
        assert moved.returncode == 0, moved.stderr
        until(lambda: len(losses(run)) > at)  # noqa: B023
    assert burnish("stop", run.path).returncode == 0
    until(lambda: run.life() == "ended")
    steps = [
        line["step"] for line in map(json.loads, run.events.read_text().splitlines()) if line["event"] == "StepFinished"
    ]
    assert steps == [*range(1, len(steps) + 1)]
    assert (_state(burnish, run), run.remote_run()) == ("stopped", None)


@pytest.mark.usefixtures("cluster")
def test_job_is_cancelled(burnish: Burnish, runs: Path, spec: Path, until: Until) -> None:
    burnish("train", spec, "--on", "cluster", "--run-folder", runs / "there", "--detach", *ENDLESS)
    near = RunFolder(runs / "there")
    until(lambda: losses(near))
    assert burnish("stop", near.path, "--now").returncode == 0
    until(lambda: near.life() == "ended")
    assert _state(burnish, near) == "interrupted"


@pytest.mark.usefixtures("cluster")
def test_job_waits_for_another_and_leaves_the_queue(burnish: Burnish, runs: Path, spec: Path, until: Until) -> None:
    whole = subprocess.run(
        ["sbatch", "--parsable", "--exclusive", "--wrap", "sleep 600"], capture_output=True, cwd=spec.parent
    )
    wait_for(lambda: b" R " in subprocess.run(["squeue", "-h"], capture_output=True).stdout)
    burnish("train", spec, "--on", "cluster", "--run-folder", runs / "there", "--detach")
    near = RunFolder(runs / "there")
    until(near.waits)
    assert "no free resources yet" in json.loads(burnish("runs", "--json").stdout)[0]["message"]
    assert burnish("stop", near.path).returncode == 0
    until(lambda: near.life() == "ended")
    assert _state(burnish, near) == "stopped"
    assert whole.returncode == 0


@pytest.mark.usefixtures("cluster")
def test_partition_that_is_not_there_is_refused(burnish: Burnish) -> None:
    assert burnish("machines", "check", "cluster").returncode == 0
    burnish("machines", "add", "cluster", "--partition", "nope")
    assert "Slurm has no partition nope; it has debug" in burnish("machines", "check", "cluster").stderr
