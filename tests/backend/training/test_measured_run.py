"""A run that was finished tells the parts of its time by its events."""

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from backend.contract.run.events import (
    CheckpointSaved,
    EvaluationFinished,
    ModelExported,
    ModelLoaded,
    ProgramCompiled,
    RunResumed,
    RunStarted,
    StageStarted,
)
from backend.data.order import DataOrder
from backend.training.measured_run import (
    count_programs,
    longest_batch,
    measure_events,
    next_count,
    row_seconds,
    share_of_others,
    spread_batches,
)
from backend.training.setup import RunSetup

LENGTHS = np.array([10, 20, 60])
EVENTS = [
    RunStarted(time=103.0, name="r", task="t", model="m"),
    StageStarted(time=103.0, stage="loading data"),
    StageStarted(time=103.5, stage="tokenising"),
    StageStarted(time=104.0, stage="loading model"),
    ModelLoaded(time=106.5, architecture="A", parameters=1, trainable=1),
    ProgramCompiled(time=108.0, count=1, seconds=2.0),
    ProgramCompiled(time=108.0, count=2, seconds=4.0),
    EvaluationFinished(time=120.0, step=10, epoch=1, metrics={}, rows=40, seconds=7.0),
    CheckpointSaved(time=121.0, step=10, folder="c", seconds=0.5),
    EvaluationFinished(time=130.0, step=20, epoch=2, metrics={}, rows=40, seconds=4.0),
    CheckpointSaved(time=131.0, step=20, folder="c", seconds=1.5),
    StageStarted(time=140.0, stage="saving"),
    ModelExported(time=140.75, folder="model", step=20),
]


def test_each_part_is_told():
    found = measure_events(EVENTS, 100.0, LENGTHS, steps=20, step_seconds=0.5)
    assert (found.mean_length, found.longest, found.steps, found.step_seconds) == (30.0, 60, 20, 0.5)
    assert (found.starting_seconds, found.loading_seconds) == (3.5, 2.5)
    assert (found.compile_seconds, found.programs, found.compiled) == (3.0, 2, 2)
    assert (found.evaluation_row_seconds, found.first_evaluation_seconds) == pytest.approx((0.1, 3.0))
    assert (found.checkpoint_seconds, found.saving_seconds) == (1.0, 0.75)


def test_only_the_last_attempt_counts():
    read = [StageStarted(time=503.0, stage="loading data"), StageStarted(time=503.5, stage="tokenising")]
    resumed = [*EVENTS[:9], RunResumed(time=503.0, attempt=2, from_step=10), *read, *EVENTS[9:11]]
    found = measure_events(resumed, 500.0, LENGTHS, steps=10, step_seconds=1.0)
    assert (found.starting_seconds, found.loading_seconds, found.programs) == (3.5, None, 0)
    assert (found.evaluation_row_seconds, found.checkpoint_seconds) == (0.1, 1.5)


def test_what_did_not_happen_is_not_known():
    found = measure_events(EVENTS[:5], None, LENGTHS, steps=1, step_seconds=1.0)
    assert (found.starting_seconds, found.evaluation_row_seconds, found.checkpoint_seconds) == (None, None, None)


@pytest.mark.parametrize("missing", [1, 2])
def test_a_start_without_both_of_its_stages_is_not_known(missing: int):
    events = [event for number, event in enumerate(EVENTS) if number != missing]
    assert measure_events(events, 100.0, LENGTHS, steps=1, step_seconds=1.0).starting_seconds is None


def test_programs_that_are_still_missing_are_counted():
    found = measure_events(EVENTS, 100.0, LENGTHS, 5, steps=20, step_seconds=0.5)
    assert (found.programs, found.compiled) == (5, 2)


def test_few_rows_are_of_middling_length_and_more_come_in_batches_of_similar_lengths():
    lengths = np.random.default_rng(0).permutation(100)
    assert lengths[spread_batches(lengths, 1, 10)].tolist() == [49]
    assert sorted(lengths[spread_batches(lengths, 20, 10)]) == [*range(30, 40), *range(60, 70)]
    assert len(spread_batches(lengths, 100, 10)) == 100


@pytest.mark.parametrize(
    ("timed", "batch", "expected"),
    [
        ([(1, 0.5), (4, 0.6), (16, 2.0)], 16, 2.0 / 16),  # a whole batch tells by itself
        ([(1, 2.0), (4, 2.6)], 64, (2.0 + 63 * 0.2) / 64),  # generated together, more rows cost little more
        ([(1, 2.0), (4, 1.6)], 8, 1.6 / 8),  # more rows that took less are chance
        ([(1, 0.1), (4, 4.0)], 8, 1.0),  # no row costs more than the average
        ([(1, 3.0)], 64, 3.0),
    ],
)
def test_a_batch_is_extrapolated_from_the_last_two_evaluations(
    timed: list[tuple[int, float]], batch: int, expected: float
):
    assert row_seconds(timed, batch) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("timed", "expected"),
    [
        ([(1, 0.1)], 4),
        ([(1, 0.1), (4, 0.2)], 16),
        ([(1, 0.1), (16, 0.9)], 64),  # a batch, but too short to tell
        ([(1, 0.1), (16, 1.1)], None),
        ([(1, 0.1), (64, 0.2)], 100),  # no more rows than there are
        ([(1, 0.1), (100, 0.2)], None),
        ([(1, 2.0), (4, 3.1)], None),  # the next would take too long
        ([(1, 5.0)], 2),  # one row alone does not tell what a batch takes
    ],
)
def test_evaluations_grow_until_they_tell_enough(timed: list[tuple[int, float]], expected: int | None):
    assert next_count(timed, rows=100, batch=16) == expected


@pytest.mark.parametrize(
    ("everyone", "own", "expected"), [(50.0, 200.0, 0.0), (75.0, 100.0, 0.5), (40.0, 0.0, 0.4), (20.0, 100.0, 0.0)]
)
def test_a_process_that_uses_a_core_uses_its_part_of_all(everyone: float, own: float, expected: float):
    assert share_of_others(everyone, own, cores=4) == pytest.approx(expected)


def opened_run(train: np.ndarray, held_out: np.ndarray) -> RunSetup:
    """What counts lengths needs of a run with steps of 4 rows, 2 a pass."""
    opened = SimpleNamespace(
        session=SimpleNamespace(length_multiple=16, facts={"max_length": None}, micro_batches=cut_lengths),
        order=DataOrder(train, batch_size=4, seed=0, fingerprint="", length_buckets=False),
        features={"train": SimpleNamespace(lengths=train), "validation": SimpleNamespace(lengths=held_out)},
        rows_per_pass=2,
        evaluation_batch_size=4,
        held_out="validation",
    )
    return cast(RunSetup, opened)


def cut_lengths(features: Any, indices: np.ndarray, size: int, epoch: int) -> list[Any]:
    """The lengths of each micro-batch, in place of its arrays."""
    return np.array_split(features.lengths[indices], range(size, len(indices), size))


class ShapedByTokens:
    """Compiles a step for the tokens of its micro-batches."""

    def step_shapes(self, micro_batches: Any) -> tuple[int, ...]:
        return tuple(int(lengths.sum()) for lengths in micro_batches)


def test_each_shape_of_a_step_and_each_length_of_an_evaluation_needs_a_program():
    # Steps of 16 + 16 and of 16 tokens, evaluations padded to 48 and to 16 tokens.
    opened = opened_run(np.full(10, 8), np.array([8, 40, 8, 40, 8, 40]))
    assert count_programs(opened, cast(Any, ShapedByTokens())) == 4


@pytest.mark.parametrize("longest", range(8))
def test_a_trial_starts_with_the_longest_batch(longest: int):
    train = np.full(8, 10)
    train[longest] = 50
    assert longest in longest_batch(opened_run(train, train))
