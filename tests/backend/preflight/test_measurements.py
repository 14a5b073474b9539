"""What was measured is found again by every training whose steps take as long, and by no other."""

from pathlib import Path
from typing import Any

import pytest

from backend.contract.resources import resource
from backend.contract.run.cost import Measurement
from backend.contract.spec import run_spec
from backend.contract.spec_file import set_values
from backend.preflight import measurements

MODEL = resource("demo", "bert-tiny")


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A cache of its own, which is not there yet."""
    monkeypatch.setenv("BURNISH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def key(device: str = "cpu", **changes: Any) -> str:
    values = {"task": {"type": "x"}, "model": {"name_or_path": str(MODEL)}, "data": {"train": "/t.csv"}}
    return measurements.key_of(run_spec(set_values(values, changes)), MODEL, device, "float32")


def measured(time: float = 1.0, **values: Any) -> Measurement:
    return Measurement(**{"time": time, "mean_length": 20.0, "longest": 90, "steps": 9, "step_seconds": 0.5, **values})


@pytest.mark.parametrize(
    "change",
    [
        {"training.epochs": 9},
        {"training.learning_rate": 1e-3},
        {"training.checkpoint_every": 50},
        {"evaluation.every": 100},
        {"evaluation.best_metric": "accuracy"},
        {"name": "another"},
        {"data.train": "/other.csv"},
        {"hardware.device": "cpu"},
    ],
)
def test_what_only_scales_keeps_it(change):
    assert key(**change) == key()


@pytest.mark.parametrize(
    "change",
    [
        {"training.batch_size": 8},
        {"training.optimizer": "sgd"},
        {"training.gradient_checkpointing": True},
        {"task.max_length": 32},
        {"model.config": {"intermediate_size": 64}},
        {"adapter": {"type": "lora"}},
        {"hardware.micro_batch_size": 4},
        {"hardware.engine": "jax"},
        {"evaluation.batch_size": 8},
        {"device": "cuda:0"},
    ],
)
def test_what_changes_a_step_needs_another_measurement(change):
    assert key(**change) != key()


def test_nothing_is_known_of_lengths_that_are_not_alike():
    measurements.remember("key", measured())
    assert measurements.recall("key", 40.0, 90) is None
    assert measurements.recall("key", 20.0, 512) is None
    assert measurements.recall("other", 20.0, 90) is None


def test_a_step_is_scaled_to_the_lengths():
    measurements.remember("key", measured(evaluation_row_seconds=0.1))
    found = measurements.recall("key", 21.0, 91)
    assert found is not None
    assert (found.step_seconds, found.evaluation_row_seconds) == pytest.approx((0.525, 0.105))


def test_the_newest_takes_the_place_of_one_alike_and_leaves_the_others():
    for one in (measured(1.0), measured(2.0, longest=512), measured(3.0, step_seconds=0.7)):
        measurements.remember("key", one)
    short, long = measurements.recall("key", 20.0, 90), measurements.recall("key", 20.0, 512)
    assert short is not None
    assert long is not None
    assert (short.time, short.step_seconds, long.time) == (3.0, 0.7, 2.0)


def test_a_damaged_file_is_no_measurement(cache: Path):
    measurements.remember("key", measured())
    (cache / "measurements.json").write_text("{half")
    assert measurements.recall("key", 20.0, 90) is None
    measurements.remember("key", measured())
    assert measurements.recall("key", 20.0, 90) is not None


def test_a_training_of_the_same_shape_tells_its_speed():
    for batch_size, seconds in ((8, 0.5), (64, 1.0)):
        measurements.remember(key(**{"training.batch_size": batch_size}), measured(step_seconds=seconds))
    values = {"task": {"type": "y"}, "model": {"name_or_path": str(MODEL)}, "data": {"train": "/t.csv"}}
    spec = run_spec({**values, "training": {"batch_size": 32}})
    found = measurements.recall_similar(spec, MODEL, "cpu", "float32", 640.0, 20.0)
    assert found is not None
    assert (found.steps, found.step_seconds, found.evaluation_row_seconds) == pytest.approx((0, 2.0, 20 / 320 / 3))
    assert measurements.recall_similar(spec, MODEL, "cuda:0", "float32", 640.0, 20.0) is None
