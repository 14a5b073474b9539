"""What a search will cost, estimated from the plans of some of its trials."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from backend.contract.rpc.plan import DiskPart, DiskPlan
from backend.search.plan import MOST_SAMPLES, estimate, make_plan
from tests.backend.search.test_driver import SPACE, base

DISK = DiskPlan(parts=[DiskPart("Checkpoints", 90.0), DiskPart("Predictions, log", 10.0)], volumes=[])
TRIAL: Any = SimpleNamespace(total_steps=90, seconds=10.0, disk=DISK)


def plan(**search: Any):
    return make_plan(base(), {"space": SPACE, "metric": "accuracy", "trials": 9, "sampler": "random", **search}, Path())


def test_every_trial_is_trained_through_without_halving():
    found = estimate(plan(), [TRIAL])
    assert (found.trials, found.confirmations, found.steps, found.seconds) == (9, 0, 9 * 90, 90.0)


def test_halving_trains_a_share_of_each_trial():
    found = estimate(plan(halving={"factor": 3, "rungs": 2}), [TRIAL])
    # 9 trials to 10 steps, 3 from there to 30, 1 from there to 90
    assert found.steps == 9 * 10 + 3 * 20 + 1 * 60


def test_runs_with_new_seeds_come_on_top():
    found = estimate(plan(confirm={"best": 2, "seeds": 3, "baseline": True}), [TRIAL])
    assert (found.confirmations, found.steps) == (9, (9 + 9) * 90)


def test_no_more_trials_are_confirmed_than_are_trained_through():
    found = estimate(plan(trials=3, halving={"factor": 3, "rungs": 1}, confirm={"best": 5, "seeds": 2}), [TRIAL])
    assert found.confirmations == 2


def test_grid_takes_some_values_of_a_range():
    found = estimate(plan(), [TRIAL])
    assert (found.combinations, found.samples, found.grid_steps) == (5 * 2, 5, 10 * 90)
    listed = estimate(plan(space={"training.batch_size": [8, 16, 32]}), [TRIAL])
    assert (listed.combinations, listed.samples) == (3, 0)


def test_grid_takes_every_whole_number_of_a_range():
    space = {"training.batch_size": {"int": [4, 64]}, "training.weight_decay": [0.0, 0.1]}
    found = estimate(plan(space=space), [TRIAL])
    assert (found.combinations, found.samples) == (61 * 2, 0)


def test_cost_is_the_mean_of_what_trials_cost_all_over_the_space():
    cheap: Any = SimpleNamespace(total_steps=30, seconds=2.0, disk=None)
    found = estimate(plan(confirm={"best": 1, "seeds": 2}), [TRIAL, cheap])
    assert (found.steps, found.confirmation_steps, found.seconds, found.disk_mb) == ((9 + 2) * 60, 120, 66.0, None)
    assert (found.grid_steps, found.grid_seconds, found.planned_trials) == (10 * 60, 60.0, 2)


@pytest.mark.parametrize(
    ("space", "others"),
    [
        ({"training.learning_rate": {"log": [1e-5, 1e-3]}}, []),
        ({"training.batch_size": [8, 16, 32], "training.weight_decay": [0.0, 0.1]}, [(8, 9), (32, 9)]),
        ({"training.epochs": {"int": [1, 3]}, "training.batch_size": [8, 16]}, [(8, 1), (8, 2), (8, 3), (16, 1), (16, 3)]),
        ({"training.schedule": ["linear", "polynomial"], "training.max_steps": [5, 10]}, [(16, 9)]),
    ],
    ids=str,
)  # fmt: skip
def test_only_settings_that_change_the_cost_are_tried_for_it(space: dict[str, Any], others: list[tuple[int, int]]):
    own = [(spec.training.batch_size, spec.training.epochs) for spec in plan(space=space).others()]
    assert sorted(own) == others


def test_of_a_large_space_some_trials_are_drawn():
    space = {
        "training.batch_size": {"log_int": [4, 512]},
        "training.epochs": {"int": [1, 9]},
        "task.max_length": [64, 128],
    }
    own = [(spec.training.batch_size, spec.training.epochs) for spec in plan(space=space).others()]
    assert len(set(own)) == MOST_SAMPLES


def test_time_that_is_not_known_stays_unknown():
    found = estimate(plan(), [SimpleNamespace(total_steps=90, seconds=None, disk=None)])  # type: ignore[arg-type]
    assert (found.seconds, found.grid_seconds, found.disk_mb) == (None, None, None)


@pytest.mark.parametrize(
    ("search", "megabytes"),
    [({}, 900), ({"keep": 2}, 2 * 100 + 7 * 10), ({"keep": 2, "confirm": {"best": 1, "seeds": 3, "baseline": True}}, 5 * 100 + 10 * 10)],
    ids=str,
)  # fmt: skip
def test_models_that_are_not_kept_need_no_disk(search: dict[str, Any], megabytes: float):
    assert estimate(plan(**search), [TRIAL]).disk_mb == megabytes


@pytest.mark.parametrize(
    ("space", "middle"),
    [({"training.batch_size": {"int": [4, 64]}}, 34), ({"training.batch_size": {"log_int": [4, 64]}}, 16), ({"training.batch_size": [8, 16, 32]}, 16)],
    ids=str,
)  # fmt: skip
def test_estimate_is_about_a_trial_from_the_middle(space: dict[str, Any], middle: int):
    assert plan(space=space).middle().training.batch_size == middle
