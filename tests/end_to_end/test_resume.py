"""A run that was killed goes on as if nothing had happened, to the bit on a processor."""

import json
import os
import shutil
import signal
import time
from pathlib import Path

import pytest
from end_to_end.burnish_process import Burnish, events_of, wait_for
from safetensors.numpy import load_file

from backend.contract.run.events import AnyEvent, RunResumed, StepFinished, decode_all
from backend.contract.run.folder import ExitRecord, RunFolder, run_folders
from backend.training.checkpoints import Checkpoints


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


def left_of(whole: RunFolder, path: Path, step: int) -> RunFolder:
    """What a kill within the line after `step` leaves of this run: no result, and the checkpoints until then."""
    shutil.copytree(whole.path, path)
    folder = RunFolder(path)
    lines = folder.events.read_bytes().splitlines(keepends=True)
    said = next(number for number, line in enumerate(lines, 1) if steps_of(line) == [step])
    folder.events.write_bytes(b"".join(lines[:said]) + lines[said][: len(lines[said]) // 2])
    for later in Checkpoints(folder).steps():
        if later > step:
            shutil.rmtree(folder.checkpoint(later))
    shutil.rmtree(folder.model)
    folder.predictions().unlink()
    folder.write_exit_record(ExitRecord(1, -signal.SIGKILL, time.time(), "the engine process was killed (SIGKILL)"))
    return folder


def steps_of(line: bytes) -> list[int]:
    return [event.step for event in decode_all([line]) if isinstance(event, StepFinished)]


def assert_same_story(one: RunFolder, whole: RunFolder) -> None:
    assert losses(events_of(one)) == losses(events_of(whole))
    assert weights(one) == weights(whole)
    assert one.predictions().read_bytes() == whole.predictions().read_bytes()


# Dropout on, two rows per pass, so that seeds of dropout and accumulation are part of what must come back.
SLOW_ENOUGH = {
    "training": {"max_steps": 32, "batch_size": 8, "learning_rate": 3e-4, "checkpoint_every": 14},
    "hardware": {"threads": 1, "micro_batch_size": 5, "max_restarts": 0},
    "evaluation": {"every": 15, "best_metric": "loss"},
}


SHORT = {
    "training": {**SLOW_ENOUGH["training"], "max_steps": 14, "checkpoint_every": 6, "keep_checkpoints": 9},
    "hardware": SLOW_ENOUGH["hardware"],
    "evaluation": {"every": 5, "best_metric": "loss"},
}


def test_what_a_kill_leaves_resumes_to_the_bit(burnish: Burnish):
    spec = burnish.spec(**SHORT)
    assert burnish("train", str(spec), "--run-folder", str(burnish.home / "whole")).returncode == 0
    whole = RunFolder(burnish.home / "whole")
    for step, checkpoint in ((1, None), (8, 6)):
        killed = left_of(whole, burnish.runs / f"killed-{step}", step)
        assert (killed.life(), Checkpoints(killed).latest()) == ("ended", checkpoint)
        resumed = burnish("resume", killed.name)
        assert resumed.returncode == 0, resumed.stderr
        [begun] = [event for event in events_of(killed) if isinstance(event, RunResumed)]
        assert (begun.attempt, begun.from_step) == (2, checkpoint or 0)
        assert_same_story(killed, whole)


@pytest.mark.slow
@pytest.mark.parametrize(("step", "victim"), [(1, "engine"), (16, "both")])
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
    assert_same_story(killed, whole)
