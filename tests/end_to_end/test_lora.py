"""A run that leaves an adapter alone is measured and resumed like any other; training rows are measured beside."""

import json

import pytest
from end_to_end.burnish_process import Burnish, events_of

from backend.contract.run.events import EvaluationFinished, ModelLoaded, RunFinished


@pytest.fixture
def adapted(burnish: Burnish) -> Burnish:
    """A home with a finished run that left an adapter alone."""
    spec = burnish.spec(
        adapter={"type": "lora", "rank": 4, "saved": "adapter"}, evaluation={"every": 3, "train_rows": 10}
    )
    done = burnish("train", str(spec))
    assert done.returncode == 0, done.stderr
    return burnish


@pytest.mark.slow
def test_an_adapter_alone_is_measured_as_the_run_did(adapted: Burnish):
    folder = adapted.run_folder()
    finished = next(event for event in events_of(folder) if isinstance(event, RunFinished))
    assert (folder.model / "adapter_model.safetensors").is_file()
    assert not (folder.model / "model.safetensors").exists()
    done = adapted("evaluate", str(folder.path), "--data", str(adapted.home / "validation.csv"), "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["metrics"]["loss"] == pytest.approx(finished.metrics["loss"], abs=1e-5)


def test_the_same_training_rows_are_measured_at_each_evaluation(adapted: Burnish):
    told = events_of(adapted.run_folder())
    measured = [event for event in told if isinstance(event, EvaluationFinished) and event.split == "train"]
    assert [(event.step, event.rows) for event in measured] == [(3, 10), (6, 10)]
    loaded = next(event for event in told if isinstance(event, ModelLoaded))
    assert loaded.trainable == 2 * 2 * 2 * 4 * 128 + 2 * 128 + 2
