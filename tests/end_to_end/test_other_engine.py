"""A paused run goes on with the other engine, once its person has agreed to a new optimizer."""

import re
from pathlib import Path

import pytest
from end_to_end.burnish_process import Burnish, events_of, wait_for

from backend.contract import spec_file
from backend.contract.run.events import RunFinished, RunResumed, StepFinished, Warned
from backend.contract.run.folder import RunFolder, run_folders


@pytest.fixture
def paused(burnish: Burnish) -> RunFolder:
    """A run of the torch engine with checkpoints, interrupted before its end."""
    path = burnish.spec(
        training={"max_steps": 100_000, "checkpoint_every": 2}, evaluation={"every": "never"}, hardware={"threads": 1}
    )
    process = burnish.start("train", str(path))
    folder = wait_for(lambda: next(iter(run_folders(burnish.runs)), None), process)
    wait_for(lambda: list(folder.checkpoints.glob("step-*")), process)
    folder.request("pause")
    process.communicate(timeout=60)
    ended = events_of(folder)[-1]
    assert isinstance(ended, RunFinished)
    assert ended.state == "paused"
    return folder


def last_step(folder: RunFolder) -> int:
    return max(one.step for one in events_of(folder) if isinstance(one, StepFinished))


def text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@pytest.mark.slow
def test_it_asks_first_and_then_goes_on_from_the_last_step(burnish: Burnish, paused: RunFolder):
    before, step = text(paused.spec), last_step(paused)
    for engine, words in (("abacus", "abacus"), ("jax", f"from step {step}.*--new-optimizer")):
        refused = burnish("resume", paused.name, "--engine", engine)
        assert refused.returncode == 2
        assert re.search(words, refused.stderr)
        assert text(paused.spec) == before
    values = spec_file.read(paused.spec)
    values["training"]["max_steps"] = step + 3  # the rest need not be trained here
    for path in (paused.spec, paused.started_spec):
        path.write_text(spec_file.dump(values), encoding="utf-8")
    done = burnish("resume", paused.name, "--engine", "jax", "--new-optimizer")
    assert done.returncode == 0, done.stderr
    events = events_of(paused)
    resumed = next(one for one in events if isinstance(one, RunResumed))
    assert (resumed.from_step, resumed.engine) == (step, "jax")
    assert [one.code for one in events if isinstance(one, Warned)].count("new_optimizer") == 1
    assert isinstance(events[-1], RunFinished)
    assert (events[-1].state, events[-1].step) == ("finished", step + 3)
    assert spec_file.read(paused.spec)["hardware"]["engine"] == "jax"
    assert "threads" not in spec_file.read(paused.spec)["hardware"]
    assert spec_file.read(paused.path / "spec.torch.yaml")["hardware"]["engine"] == "torch"
