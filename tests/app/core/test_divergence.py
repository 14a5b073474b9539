"""The rule that tells a training loss that has risen for good from noise, on recorded and generated curves."""

import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from app.core.runs.divergence import find_divergence
from app.core.runs.series import Series

CURVES = json.loads((Path(__file__).parents[2] / "data" / "training_losses.json").read_text())
"""Of the demo with several learning rates, batch size 16: the last one is far too high."""
TOO_HIGH = "learning rate 0.1"


def alarms(losses: Iterable[float]) -> list[int]:
    """The steps at which the run was said to diverge."""
    series, found = Series(), list[int]()
    for step, loss in enumerate(losses, start=1):
        series.append(step, float(loss))
        if find_divergence(series) is not None:
            found.append(step)
    return found


def noisy(levels: np.ndarray, shape: float, seed: int) -> np.ndarray:
    """Losses of small batches around these levels: the lower the shape, the rarer and the larger are the jumps."""
    return np.random.default_rng(seed).gamma(shape, levels / shape)


@pytest.mark.parametrize("name", [name for name in CURVES if name != TOO_HIGH])
def test_a_healthy_recorded_run_never_diverges(name: str):
    assert alarms(CURVES[name]) == []


def test_a_recorded_run_with_far_too_high_a_learning_rate_diverges():
    assert alarms(CURVES[TOO_HIGH])[0] < 150


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("levels", "shape"),
    [
        (0.12 + 0.58 * np.exp(-np.linspace(0, 5, 400)), 3.0),
        (np.full(400, 0.1), 0.7),
        (3 + np.exp(-np.linspace(0, 5, 400)), 60.0),
    ],
    ids=["a classifier that learns", "a good model trained further", "a language model"],
)
def test_the_noise_of_small_batches_is_no_divergence(levels: np.ndarray, shape: float, seed: int):
    assert alarms(noisy(levels, shape, seed)) == []


@pytest.mark.parametrize("seed", range(5))
def test_a_first_batch_that_is_easy_by_chance_is_no_divergence(seed: int):
    """Regression of scores from 0 to 5 with four rows per batch: the model learns, and the loss falls to 0.5."""
    chance = np.random.default_rng(seed)
    scores = chance.uniform(0, 5, (120, 4))
    scores[0] = 1.5  # a batch of low scores, which a new model predicts best
    learned = 1 - np.exp(-np.arange(120) / 25)[:, None]
    predicted = learned * (scores + chance.normal(0, 0.7, scores.shape))
    assert alarms(((scores - predicted) ** 2).mean(axis=1)) == []


@pytest.mark.parametrize("seed", range(3))
def test_a_run_that_diverges_at_once_is_recognized(seed: int):
    levels = 0.7 + 4.3 * (1 - np.exp(-np.arange(100) / 3))
    assert alarms(noisy(levels, 8.0, seed))[0] < 40


@pytest.mark.parametrize(
    ("after", "shape"),
    [(np.full(100, 0.72), 30.0), (np.linspace(0.3, 2.0, 100), 3.0)],
    ids=["back to chance", "climbing"],
)
def test_a_loss_that_rises_for_good_diverges_within_a_few_windows(after: np.ndarray, shape: float):
    before = noisy(0.2 + 0.5 * np.exp(-np.linspace(0, 6, 200)), 3.0, 1)
    assert 200 < alarms([*before, *noisy(after, shape, 2)])[0] < 260
