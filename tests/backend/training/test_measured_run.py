"""A run that was finished tells the parts of its time by its events."""

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
from backend.training.measured_run import measure_events

LENGTHS = np.array([10, 20, 60])
EVENTS = [
    RunStarted(time=103.0, name="r", task="t", model="m"),
    StageStarted(time=104.0, stage="loading model"),
    ModelLoaded(time=106.5, architecture="A", parameters=1, trainable=1),
    ProgramCompiled(time=108.0, count=1, seconds=2.0),
    ProgramCompiled(time=108.0, count=2, seconds=4.0),
    EvaluationFinished(time=120.0, step=10, epoch=1, metrics={}, rows=40, seconds=2.0),
    CheckpointSaved(time=121.0, step=10, folder="c", seconds=0.5),
    EvaluationFinished(time=130.0, step=20, epoch=2, metrics={}, rows=40, seconds=4.0),
    CheckpointSaved(time=131.0, step=20, folder="c", seconds=1.5),
    StageStarted(time=140.0, stage="saving"),
    ModelExported(time=140.75, folder="model", step=20),
]


def test_each_part_is_told():
    found = measure_events(EVENTS, 100.0, 20, 10.0, LENGTHS)
    assert (found.source, found.mean_length, found.longest, found.steps) == ("run", 30.0, 60, 20)
    assert (found.step_seconds, found.starting_seconds, found.loading_seconds) == (0.5, 3.0, 2.5)
    assert (found.compile_seconds, found.programs) == (3.0, 2)
    assert found.evaluation_row_seconds == pytest.approx(6.0 / 80)
    assert (found.checkpoint_seconds, found.saving_seconds) == (1.0, 0.75)


def test_only_the_last_attempt_counts():
    resumed = [*EVENTS[:7], RunResumed(time=503.0, attempt=2, from_step=10), *EVENTS[7:9]]
    found = measure_events(resumed, 500.0, 10, 10.0, LENGTHS)
    assert (found.starting_seconds, found.loading_seconds, found.programs) == (3.0, None, 0)
    assert (found.evaluation_row_seconds, found.checkpoint_seconds) == (0.1, 1.5)


def test_what_did_not_happen_is_not_known():
    found = measure_events(EVENTS[:3], None, 1, 1.0, LENGTHS)
    assert (found.starting_seconds, found.evaluation_row_seconds, found.checkpoint_seconds) == (None, None, None)
