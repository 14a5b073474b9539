"""A run of several processes: its results are those of one, a process that dies ends it, and any number resumes it."""

import os
import signal
import subprocess

import psutil
import pytest
from end_to_end.burnish_process import Burnish, events_of, wait_for

from backend.contract.resources import resource
from backend.contract.run.events import CheckpointSaved, RunFinished, StepFinished
from backend.contract.run.fixes import RunFix
from backend.contract.run.folder import RunFolder, run_folders
from backend.training.checkpoints import Checkpoints

TRAINING = {"batch_size": 8, "learning_rate": 3e-4}
ENDS_WITHIN_SECONDS = 30


def rank(folder: RunFolder, number: int) -> psutil.Process:
    """The run's process of that rank."""
    launcher = psutil.Process(folder.process_record().engine_pid)
    wanted = ["--rank", str(number)]
    return next(
        child for child in launcher.children() if wanted[1] in child.cmdline()[child.cmdline().index(wanted[0]) :][:2]
    )


@pytest.mark.slow
def test_a_killed_process_ends_the_run_by_its_rank_and_one_process_resumes_it(burnish: Burnish):
    spec = burnish.spec(
        training={**TRAINING, "max_steps": 10**6, "checkpoint_every": 4},
        hardware={"processes": 2, "max_restarts": 0},
        evaluation={"every": "never"},
    )
    process = burnish.start("train", str(spec))
    folder = wait_for(lambda: next(iter(run_folders(burnish.runs)), None), process)
    wait_for(lambda: any(isinstance(event, CheckpointSaved) for event in events_of(folder)), process)
    os.kill(rank(folder, 1).pid, signal.SIGKILL)
    _, said = process.communicate(timeout=ENDS_WITHIN_SECONDS)
    assert process.returncode == 1
    assert "rank 1: the engine process was killed (SIGKILL)" in said.splitlines()[-1]
    last = events_of(folder)[-1]
    assert isinstance(last, RunFinished)
    assert (last.state, last.code, folder.life()) == ("failed", "process_lost", "ended")
    assert last.mend == RunFix(resume=True)

    stop_at = max(event.step for event in events_of(folder) if isinstance(event, StepFinished)) + 5
    text = folder.spec.read_text().replace("max_steps: 1000000", f"max_steps: {stop_at}")
    for path in (folder.spec, folder.started_spec):
        path.write_text(text)
    resumed = burnish("resume", folder.name, "--set", "hardware.processes=1")
    assert resumed.returncode == 0, resumed.stderr
    assert events_of(folder)[-1].state == "finished"


@pytest.mark.slow
def test_all_processes_end_with_a_checkpoint_when_the_run_is_interrupted(burnish: Burnish):
    process, folder = start_sharded(burnish)
    os.kill(rank(folder, 1).pid, signal.SIGUSR1)
    _, said = process.communicate(timeout=ENDS_WITHIN_SECONDS)
    last = events_of(folder)[-1]
    assert (process.returncode, last.state) == (75, "interrupted"), said
    assert (record := folder.exit_record()) is not None
    assert record.returncode == 75
    assert Checkpoints(folder).latest() == last.step


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
def test_three_processes_predict_what_one_predicts(burnish: Burnish, strategy: str):
    spec = burnish.spec(
        model={"dropout": 0.0}, training={**TRAINING, "max_steps": 12, "checkpoint_every": 5}, evaluation={"every": 5}
    )
    for count in (1, 3):
        wanted = [
            "--set",
            f"hardware.processes={count}",
            "--set",
            f"hardware.strategy={strategy if count > 1 else 'ddp'}",
        ]
        done = burnish("train", str(spec), *wanted, "--run-folder", str(burnish.home / str(count)))
        assert done.returncode == 0, done.stderr
    one, three = (RunFolder(burnish.home / str(count)) for count in (1, 3))
    losses = [[event.loss for event in events_of(folder) if isinstance(event, StepFinished)] for folder in (one, three)]
    assert losses[0] == pytest.approx(losses[1], abs=1e-5)
    predictions = [folder.predictions().read_text().splitlines() for folder in (one, three)]
    assert [line.split(",")[:-2] for line in predictions[0]] == [line.split(",")[:-2] for line in predictions[1]]
    assert events_of(one)[-1].metrics == pytest.approx(events_of(three)[-1].metrics, abs=1e-4)
    names = [{path.name for path in (folder.path / "model").iterdir()} for folder in (one, three)]
    assert names[0] == names[1]


@pytest.mark.slow
def test_with_dropout_any_number_of_processes_learns_as_much(burnish: Burnish):
    """Each draws other numbers, so only what was learned can be compared."""
    demo = {split: str(resource("demo", "sentiment", f"{split}.csv")) for split in ("train", "validation")}
    training = {**TRAINING, "batch_size": 16, "max_steps": 300}
    spec = burnish.spec(data=demo, training=training, evaluation={"every": "never"})
    accuracies = []
    for count in (1, 2, 3):
        folder = RunFolder(burnish.home / str(count))
        done = burnish("train", str(spec), "--set", f"hardware.processes={count}", "--run-folder", str(folder.path))
        assert done.returncode == 0, done.stderr
        accuracies.append(events_of(folder)[-1].metrics["accuracy"])
    assert min(accuracies) > 0.75
    assert max(accuracies) - min(accuracies) < 0.03


def start_sharded(burnish: Burnish) -> tuple[subprocess.Popen[str], RunFolder]:
    """A run of two processes with FSDP that saves a checkpoint at every step, once the first one is saved."""
    spec = burnish.spec(
        training={**TRAINING, "max_steps": 10**6, "checkpoint_every": 1, "keep_checkpoints": 2},
        hardware={"processes": 2, "strategy": "fsdp", "max_restarts": 0},
        evaluation={"every": "never"},
    )
    process = burnish.start("train", str(spec))
    folder = wait_for(lambda: next(iter(run_folders(burnish.runs)), None), process)
    wait_for(lambda: any(isinstance(event, CheckpointSaved) for event in events_of(folder)), process)
    return process, folder


def resume_for_one_step(burnish: Burnish, folder: RunFolder) -> int:
    """Resume it in one process; returns the step that it continues from."""
    start = Checkpoints(folder).latest()
    assert start is not None
    text = folder.spec.read_text().replace("max_steps: 1000000", f"max_steps: {start + 1}")
    for path in (folder.spec, folder.started_spec):
        path.write_text(text)
    resumed = burnish("resume", folder.name, "--set", "hardware.processes=1", "--set", "hardware.strategy=ddp")
    assert resumed.returncode == 0, resumed.stderr
    return start


@pytest.mark.slow
def test_a_process_that_dies_while_shards_are_saved_leaves_the_last_checkpoint(burnish: Burnish):
    process, folder = start_sharded(burnish)
    second = rank(folder, 1)
    while True:
        wait_for(lambda: [*folder.checkpoints.glob(".step-*")], process)
        second.suspend()
        if [*folder.checkpoints.glob(".step-*")]:
            break
        second.resume()
    second.kill()
    _, said = process.communicate(timeout=ENDS_WITHIN_SECONDS)
    assert "rank 1: the engine process was killed (SIGKILL)" in said.splitlines()[-1]
    resume_for_one_step(burnish, folder)
    assert not [*folder.checkpoints.glob(".*")]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(psutil.Process, "rlimit"), reason="limits of other processes are Linux's alone")
def test_a_process_whose_shards_the_disk_refuses_ends_the_run_with_the_reason(burnish: Burnish):
    process, folder = start_sharded(burnish)
    rank(folder, 1).rlimit(psutil.RLIMIT_FSIZE, (4096, 4096))
    _, said = process.communicate(timeout=ENDS_WITHIN_SECONDS)
    assert process.returncode == 1
    assert (
        "the disk is full, so nothing more could be saved; earlier checkpoints are untouched" in said.splitlines()[-1]
    )
    assert not [*folder.checkpoints.glob(".*")]
    resume_for_one_step(burnish, folder)
