"""A run of the JAX engine on several devices: its checkpoints are written beside training, and it is resumed from them."""

import json
import os
import shutil
import signal
import sys
from pathlib import Path

import pytest
from end_to_end.burnish_process import Burnish, events_of, wait_for
from safetensors.numpy import load_file

from backend.contract.resources import resource
from backend.contract.run.events import (
    CheckpointSaved,
    PlanMade,
    ProgramCompiled,
    RunFinished,
    RunResumed,
    StageStarted,
    StepFinished,
)
from backend.contract.run.folder import RunFolder, run_folders

FLAGS = "--xla_backend_optimization_level=0 --xla_force_host_platform_device_count=2"
HARDWARE = {
    "max_restarts": 0, "engine": "jax", "device": "cpu", "devices": [0, 1], "parallelism": "fsdp", "environment": {"XLA_FLAGS": FLAGS},
}  # fmt: skip
TRAINING = {"max_steps": 80, "batch_size": 7, "learning_rate": 3e-4, "checkpoint_every": 20}


@pytest.fixture(autouse=True)
def processes(burnish: Burnish) -> None:
    """Every command is one: what devices XLA makes is decided when a process starts."""
    burnish.in_process = False


def spec(burnish: Burnish, **training: object) -> Path:
    path = burnish.spec(training={**TRAINING, **training}, evaluation={"every": "never"}, hardware=HARDWARE)
    path.write_text(path.read_text(encoding="utf-8").replace("  threads: 1\n", ""), encoding="utf-8")
    return path


def weights(folder: RunFolder) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in load_file(folder.model / "model.safetensors").items()}


def stages(folder: RunFolder) -> list[str]:
    return [event.stage for event in events_of(folder) if isinstance(event, StageStarted)]


@pytest.mark.slow
def test_a_killed_run_on_two_devices_resumes_to_the_bit(burnish: Burnish):
    path = spec(burnish)
    assert burnish("train", str(path), "--run-folder", str(burnish.home / "whole")).returncode == 0
    whole = RunFolder(burnish.home / "whole")
    process = burnish.start("train", str(path))
    killed = wait_for(lambda: next(iter(run_folders(burnish.runs)), None), process)
    wait_for(lambda: any(isinstance(one, CheckpointSaved) and one.step >= 40 for one in events_of(killed)), process)
    record = killed.process_record()
    assert record is not None
    os.kill(record.engine_pid, signal.SIGKILL)
    process.communicate(timeout=60)
    resumed = burnish("resume", killed.name)
    assert resumed.returncode == 0, resumed.stderr
    begun = next(event for event in events_of(killed) if isinstance(event, RunResumed))
    assert begun.from_step >= 40
    assert begun.device == "cpu, cpu:1"
    assert weights(killed) == weights(whole)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_a_run_that_is_told_to_end_from_outside_saves_a_checkpoint(burnish: Burnish):
    process = burnish.start("train", str(spec(burnish, max_steps=3000, checkpoint_every="never")))
    folder = wait_for(lambda: next(iter(run_folders(burnish.runs)), None), process)
    wait_for(lambda: any(isinstance(one, StepFinished) for one in events_of(folder)), process)
    record = folder.process_record()
    assert record is not None
    for pid in (record.engine_pid, record.supervisor_pid):
        os.kill(pid, signal.SIGTERM)
    process.communicate(timeout=60)
    ended = events_of(folder)[-1]
    assert isinstance(ended, RunFinished)
    assert ended.state == "interrupted"
    assert folder.checkpoint(ended.step).is_dir()


@pytest.mark.slow
def test_a_batch_that_two_devices_cannot_share_evenly_is_filled(burnish: Burnish):
    done = burnish("train", str(spec(burnish, max_steps=3, checkpoint_every=1)))
    assert done.returncode == 0, done.stderr
    events = events_of(burnish.run_folder())
    plan = next(event for event in events if isinstance(event, PlanMade))
    assert (plan.batch_size, plan.micro_batch_size, plan.replicas, plan.accumulation) == (7, 4, 2, 1)
    assert [event.rows for event in events if isinstance(event, StepFinished)] == [7, 7, 7]
    assert [event.step for event in events if isinstance(event, CheckpointSaved)] == [1, 2, 3]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
def test_a_full_disk_is_said_and_leaves_nothing(burnish: Burnish):
    import resource as limits  # POSIX alone has it

    done = burnish.process(
        "train",
        str(spec(burnish, max_steps=4, checkpoint_every=2)),
        preexec_fn=lambda: limits.setrlimit(limits.RLIMIT_FSIZE, (1_000_000, 1_000_000)),
    )
    folder = burnish.run_folder()
    assert done.returncode == 1, done.stderr
    last = events_of(folder)[-1]
    assert isinstance(last, RunFinished)
    assert last.code == "disk_full", last.message
    assert not folder.checkpoints.exists() or list(folder.checkpoints.iterdir()) == []


@pytest.mark.slow
def test_a_stop_is_heard_while_a_program_is_compiled(burnish: Burnish):
    model = burnish.home / "deep"
    shutil.copytree(resource("demo", "austen-gpt2"), model, ignore=shutil.ignore_patterns("*.safetensors"))
    config = json.loads((model / "config.json").read_text(encoding="utf-8"))
    (model / "config.json").write_text(json.dumps(config | {"n_layer": 32}), encoding="utf-8")
    path = burnish.spec(
        task={"type": "causal_lm", "rows": "blocks", "max_length": 32},
        model={"name_or_path": str(model), "initialise": "from_config"},
        data={"columns": {"text": "text"}},
        evaluation={"every": "never"},
        hardware={"engine": "jax", "environment": {"XLA_FLAGS": "--xla_backend_optimization_level=3"}},
    )
    path.write_text(path.read_text(encoding="utf-8").replace("  threads: 1\n", ""), encoding="utf-8")
    process = burnish.start("train", str(path))
    folder = wait_for(lambda: next(iter(run_folders(burnish.runs)), None), process)
    wait_for(lambda: stages(folder)[-1:] == ["compiling"], process)
    folder.request("stop")
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    events = events_of(folder)
    assert not any(isinstance(one, ProgramCompiled | StepFinished) for one in events)
    assert isinstance(events[-1], RunFinished)
    assert events[-1].state == "stopped"
