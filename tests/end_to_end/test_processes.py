"""A run of several processes: its results are those of one, a process that dies ends it, and any number resumes it."""

import os
import signal

import psutil
import pytest
from end_to_end.burnish_process import Burnish, events_of, wait_for

from backend.contract.run.events import CheckpointSaved, RunFinished, StepFinished
from backend.contract.run.fixes import RunFix
from backend.contract.run.folder import RunFolder, run_folders

TRAINING = {"batch_size": 8, "learning_rate": 3e-4}
ENDS_WITHIN_SECONDS = 30


def rank(folder: RunFolder, number: int) -> psutil.Process:
    """The run's process of that rank."""
    launcher = psutil.Process(folder.process_record().engine_pid)
    wanted = ["--rank", str(number)]
    return next(
        child for child in launcher.children() if wanted[1] in child.cmdline()[child.cmdline().index(wanted[0]) :][:2]
    )


def test_a_killed_process_ends_the_run_by_its_rank_and_one_process_resumes_it(burnish: Burnish):
    spec = burnish.spec(
        training={**TRAINING, "max_steps": 10**6, "checkpoint_every": 4},
        hardware={"processes": 2},
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
