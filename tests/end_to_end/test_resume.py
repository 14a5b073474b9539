"""A run that was killed goes on as if nothing had happened, to the bit on a processor."""

import json
import os
import signal
from pathlib import Path

import pytest
from end_to_end.burnish_process import Burnish, events_of, wait_for
from safetensors.numpy import load_file

from backend.contract.run.events import AnyEvent, RunResumed, StepFinished
from backend.contract.run.folder import RunFolder, run_folders


def losses(events: list[AnyEvent]) -> dict[int, tuple[float | None, float | None]]:
    """Step → loss and gradient norm, steps that a resume made void taken out."""
    kept: dict[int, tuple[float | None, float | None]] = {}
    for event in events:
        if isinstance(event, StepFinished):
            kept[event.step] = event.loss, event.gradient_norm
        elif isinstance(event, RunResumed):
            kept = {step: numbers for step, numbers in kept.items() if step <= event.from_step}
    return kept


def weights(folder: RunFolder) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in load_file(folder.model / "model.safetensors").items()}


def killed_at(burnish: Burnish, spec: Path, step: int, victim: str) -> tuple[RunFolder, int, str, str]:
    """Start a run and kill its engine (or supervisor and engine) without warning once it has said `step`.

    With the exit code of the command that followed it, and what that printed.
    """
    process = burnish.start("train", str(spec), "--json")
    folder = wait_for(lambda: next(iter(run_folders(burnish.runs)), None), process)
    wait_for(lambda: any(isinstance(one, StepFinished) and one.step >= step for one in events_of(folder)), process)
    record = folder.process_record()
    if victim == "both":
        os.kill(record.supervisor_pid, signal.SIGKILL)
    os.kill(record.engine_pid, signal.SIGKILL)
    printed, said = process.communicate(timeout=60)
    return folder, process.returncode, printed, said


# Dropout on, two rows per pass, so that seeds of dropout and accumulation are part of what must come back.
SLOW_ENOUGH = {
    "training": {"max_steps": 32, "batch_size": 8, "learning_rate": 3e-4, "checkpoint_every": 14},
    "hardware": {"threads": 1, "micro_batch_size": 5},
    "evaluation": {"every": 15, "best_metric": "loss"},
}


@pytest.mark.parametrize(("step", "victim"), [(1, "engine"), pytest.param(16, "both", marks=pytest.mark.slow)])
def test_a_killed_run_resumes_to_the_bit(burnish: Burnish, step: int, victim: str):
    spec = burnish.spec(**SLOW_ENOUGH)
    assert burnish("train", str(spec), "--run-folder", str(burnish.home / "whole")).returncode == 0
    whole = RunFolder(burnish.home / "whole")

    killed, code, printed, said = killed_at(burnish, spec, step, victim)
    assert killed.life() == ("lost" if victim == "both" else "ended")
    assert (code, json.loads(printed)["state"]) == (1, "lost" if victim == "both" else "failed")
    assert ("was killed" if victim == "both" else "killed (SIGKILL)") in said.splitlines()[-1]
    assert "Traceback" not in said
    resumed = burnish("resume", killed.name)

    assert resumed.returncode == 0, resumed.stderr
    assert losses(events_of(killed)) == losses(events_of(whole))
    assert weights(killed) == weights(whole)
    assert killed.predictions().read_bytes() == whole.predictions().read_bytes()
