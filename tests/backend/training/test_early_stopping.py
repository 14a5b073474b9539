"""Which evaluation was best, and when training ends early."""

from typing import Any

import pytest

from backend.contract.run.events import EvaluationFinished, RunResumed
from backend.contract.spec import RunSpec, run_spec
from backend.preflight.metrics import MetricDirections
from backend.training.early_stopping import BestEvaluation, evaluations


def spec(metric: str | None, **training: Any) -> RunSpec:
    return run_spec(
        {
            "task": {"type": "text_classification"},
            "model": {"name_or_path": "model"},
            "data": {},
            "training": training,
            "evaluation": {"best_metric": metric},
        }
    )


def feed(best: BestEvaluation, name: str, values: list[float]) -> None:
    for step, value in enumerate(values, start=1):
        best.apply({name: value}, step)


@pytest.mark.parametrize(("metric", "step"), [("accuracy", 2), ("loss", 3)])
def test_best_follows_the_direction_of_its_metric(metric: str, step: int):
    best = BestEvaluation(spec(metric))
    feed(best, metric, [0.6, 0.9, 0.5])
    assert best.step == step


def test_losses_fall_and_scores_rise():
    directions = MetricDirections.of(spec(None))
    found = [directions.greater_is_better(name) for name in ("loss", "dev/loss", "accuracy", "f1_macro", "beauty")]
    assert found == [False, False, True, True, None]


def test_stops_after_as_many_worse_evaluations_as_asked():
    best = BestEvaluation(spec("accuracy", early_stopping=2))
    feed(best, "accuracy", [0.8, 0.7])
    assert not best.should_stop()
    feed(best, "accuracy", [0.75])
    assert best.should_stop()


def test_an_improvement_within_the_threshold_is_none_for_stopping_but_still_the_best():
    best = BestEvaluation(spec("accuracy", early_stopping=1, early_stopping_threshold=0.1))
    feed(best, "accuracy", [0.80, 0.85])
    assert best.should_stop()
    assert best.step == 2


def test_an_evaluation_that_is_not_a_number_is_never_best():
    best = BestEvaluation(spec("loss"))
    feed(best, "loss", [float("nan"), 0.5])
    assert best.step == 2


def test_a_resume_voids_later_evaluations():
    def finished(step: int) -> EvaluationFinished:
        return EvaluationFinished(time=0, step=step, epoch=1, metrics={}, rows=1, seconds=1)

    events = [finished(10), finished(20), RunResumed(time=0, attempt=2, from_step=10), finished(20)]
    assert [one.step for one in evaluations(events)] == [10, 20]
