"""The fold over a run's events."""

import math

import msgspec
import pytest

from app.core.runs.run_state import RunState
from app.core.runs.series import SeriesCursor
from backend.contract.run import events


def step(number: int, loss: float | None = 0.5, at: float = 0.0, seconds: float = 0.1) -> events.StepFinished:
    return events.StepFinished(
        time=at or 100.0 + number,
        step=number,
        epoch=number / 10,
        loss=loss,
        learning_rate=1e-4,
        gradient_norm=1.0,
        rows=8,
        tokens=64,
        seconds=seconds,
    )


def evaluation(number: int, accuracy: float, best: bool = False) -> events.EvaluationFinished:
    return events.EvaluationFinished(
        time=100.0 + number,
        step=number,
        epoch=number / 10,
        metrics={"loss": 0.4, "accuracy": accuracy},
        rows=20,
        seconds=1.0,
        is_best=best,
    )


def plan(total: int = 100) -> events.PlanMade:
    return events.PlanMade(
        time=100.0,
        total_steps=total,
        steps_per_epoch=10,
        batch_size=8,
        micro_batch_size=8,
        accumulation=1,
        epochs=10,
        best_metric="accuracy",
    )


def folded(*many: events.AnyEvent) -> RunState:
    state = RunState()
    state.apply_all(many)
    return state


def test_steps_become_curves():
    state = folded(plan(), step(1, 0.9), step(2, 0.7))
    assert list(state.series["loss"].xs) == [1, 2]
    assert list(state.series["loss"].ys) == [0.9, 0.7]
    assert state.series["rows_per_second"].last == pytest.approx(80)
    assert state.series["tokens_per_second"].last == pytest.approx(640)


def test_a_step_without_a_loss_leaves_no_point():
    state = folded(plan(), step(1, 0.9), step(2, None))
    assert list(state.series["loss"].xs) == [1]
    assert state.step == 2


def test_progress_and_eta_follow_recent_steps_and_evaluations():
    state = folded(plan(100), *[step(number, seconds=0.5) for number in range(1, 11)], evaluation(10, 0.6))
    assert state.fraction == pytest.approx(0.1)
    assert state.eta_seconds == pytest.approx(90 * (0.5 + 1.0 / 10))


def test_a_resumed_run_forgets_everything_after_its_step():
    state = folded(
        plan(), *[step(number) for number in range(1, 8)], evaluation(3, 0.6, best=True), evaluation(7, 0.9, best=True)
    )
    state.apply(events.RunResumed(time=200.0, attempt=2, from_step=5))
    assert list(state.series["loss"].xs) == [1, 2, 3, 4, 5]
    assert [one.step for one in state.evaluations] == [3]
    assert list(state.metric_series["accuracy"].xs) == [3]
    assert state.best is not None
    assert state.best.step == 3
    assert state.step == 5
    assert [(resume.attempt, resume.from_step) for resume in state.resumes] == [(2, 5)]


def test_a_run_that_goes_on_with_another_engine_is_one_of_that_engine():
    begun = events.RunStarted(time=99, name="n", task="t", model="m", engine="torch")
    state = folded(begun, plan(), step(1))
    state.apply(events.RunResumed(time=102, attempt=2, from_step=1))
    assert (state.engine, state.journal[-1].text) == ("torch", "Attempt 2: resumed after step 1")
    state.apply(events.RunResumed(time=103, attempt=3, from_step=1, engine="jax"))
    assert (state.engine, state.journal[-1].text) == ("jax", "Attempt 3: resumed after step 1 with the jax engine")


def test_a_resumed_run_is_no_longer_over():
    state = folded(plan(), step(1), events.RunFinished(time=101, state="paused", step=1))
    state.apply(events.RunResumed(time=102, attempt=2, from_step=1))
    assert state.finished is None
    assert state.state == "running"


def test_a_reader_gets_only_new_points():
    state, cursor = folded(plan(), step(1), step(2)), SeriesCursor()
    assert list(state.series["loss"].fresh(cursor).xs) == [1, 2]
    state.apply(step(3))
    assert list(state.series["loss"].fresh(cursor).xs) == [3]
    assert not state.series["loss"].fresh(cursor)


def test_a_reader_learns_of_a_cut_and_gets_what_came_after():
    state, cursor = folded(plan(), *[step(number) for number in range(1, 8)]), SeriesCursor()
    state.series["loss"].fresh(cursor)
    state.apply(events.RunResumed(time=200.0, attempt=2, from_step=5))
    state.apply_all([step(6), step(7), step(8)])
    fresh = state.series["loss"].fresh(cursor)
    assert fresh.cut == 5
    assert list(fresh.xs) == [6, 7, 8]


def test_two_cuts_between_two_looks_count_as_the_lower_one():
    state, cursor = folded(plan(), *[step(number) for number in range(1, 8)]), SeriesCursor()
    state.series["loss"].fresh(cursor)
    state.apply(events.RunResumed(time=200.0, attempt=2, from_step=2))
    state.apply_all([step(3), step(4)])
    state.apply(events.RunResumed(time=201.0, attempt=3, from_step=3))
    fresh = state.series["loss"].fresh(cursor)
    assert (fresh.cut, list(fresh.xs)) == (2, [3])


def test_a_slow_reader_takes_a_long_curve_in_portions():
    state, cursor = folded(plan(), *[step(number) for number in range(1, 11)]), SeriesCursor()
    assert len(state.series["loss"].fresh(cursor, limit=7).xs) == 7
    assert list(state.series["loss"].fresh(cursor, limit=7).xs) == [8, 9, 10]


def test_metrics_of_other_splits_have_their_own_curves():
    state = folded(
        plan(),
        events.EvaluationFinished(
            time=1, step=4, epoch=1, metrics={"accuracy": 0.9}, rows=5, seconds=0.1, split="train"
        ),
    )
    assert "train/accuracy" in state.metric_series
    assert "accuracy" not in state.metric_series


def test_warnings_skipped_rows_checkpoints_and_predictions_are_kept():
    state = folded(
        events.Warned(time=1, code="new_head", message="A new head was made"),
        events.RowsSkipped(time=1, split="train", reason="empty text", count=2, places=["a.csv:3", "a.csv:9"]),
        events.CheckpointSaved(time=2, step=10, folder="checkpoints/step-000010"),
        events.CheckpointSaved(time=3, step=20, folder="checkpoints/step-000020"),
        events.CheckpointRemoved(time=3, step=10, folder="checkpoints/step-000010"),
        events.PredictionsWritten(
            time=4, split="validation", csv="predictions.csv", parquet="predictions.parquet", rows=3, seconds=0.1
        ),
    )
    assert [warning.code for warning in state.warnings] == ["new_head"]
    assert state.skipped[0].count == 2
    assert list(state.checkpoints) == [20]
    assert state.predictions["validation"].rows == 3


def test_an_evaluation_before_the_first_step_is_not_expected_again():
    state = folded(plan(100), evaluation(0, 0.5), *[step(number, seconds=0.5) for number in range(1, 3)])
    assert state.eta_seconds == pytest.approx(98 * 0.5)


def test_speed_is_that_of_the_recent_steps_together():
    state = folded(plan(), step(1, seconds=0.1), step(2, seconds=0.9))
    assert state.pace.rows_per_second == pytest.approx(16)
    assert state.pace.tokens_per_second == pytest.approx(128)


def test_the_time_between_two_attempts_is_not_spent():
    state = folded(
        events.RunStarted(time=100.0, name="n", task="t", model="m"),
        step(1, at=110.0),
        events.RunFinished(time=111.0, state="paused", step=1),
        events.RunResumed(time=9000.0, attempt=2, from_step=1),
        step(2, at=9004.0),
    )
    assert state.seconds_spent == pytest.approx(15)


def test_a_run_that_ended_early_shows_how_far_its_steps_came():
    state = folded(plan(100), *[step(number) for number in range(1, 26)])
    state.apply(events.StageStarted(time=200.0, stage="predicting", total=10, unit="rows"))
    state.apply(events.StageProgress(time=201.0, stage="predicting", done=10, total=10))
    assert state.fraction == 1.0
    state.apply(events.RunFinished(time=202.0, state="stopped", step=25))
    assert state.fraction == pytest.approx(0.25)


def test_an_evaluation_that_is_no_number_leaves_a_gap_in_its_curve():
    state = folded(plan(), evaluation(10, 0.5), evaluation(20, float("nan")))
    assert list(state.metric_series["accuracy"].xs) == [10, 20]
    assert state.last_metric("accuracy") is None
    state.apply(evaluation(30, 0.75))
    assert math.isnan(state.metric_series["accuracy"].ys[1])
    assert state.last_metric("accuracy") == 0.75


@pytest.mark.parametrize("has_start", [True, False])
def test_a_run_whose_first_events_are_gone_shows_the_rest_and_what_is_missing(has_start: bool):
    lacks = events.Warned(
        time=101, code="missing_events", message="steps 1 to 40 and their evaluations are missing from the curves"
    )
    start = [events.RunStarted(time=100, name="n", task="t", model="m")] if has_start else []
    state = folded(*start, events.RunResumed(time=100, attempt=2, from_step=40), lacks, plan(), step(41), step(42))
    assert (state.state, state.step, state.attempt, list(state.series["loss"].xs)) == ("running", 42, 2, [41, 42])
    assert [warning.message for warning in state.warnings] == [lacks.message]
    assert any(lacks.message in line.text for line in state.journal)


def undecided(total: int = 100) -> events.PlanMade:
    """The plan of a run that keeps the last weights, so only its loss marks an evaluation as best."""
    return msgspec.structs.replace(
        plan(total), best_metric=None, metrics={"accuracy": True, "loss": False, "odd": None}
    )


def test_metrics_of_the_task_are_named_in_its_order_without_those_of_a_label():
    known = {"loss": False, "f1": True, "accuracy": True}
    measured = {"accuracy": 0.9, "f1_PER": 0.2, "loss": 0.4, "f1": 0.3, "a.conll/loss": 0.4, "a.conll/f1": 0.3}
    scored = msgspec.structs.replace(evaluation(3, 0.9), metrics=measured)
    state = folded(msgspec.structs.replace(undecided(), metrics=known), scored)
    assert state.metric_names == ["f1", "a.conll/f1", "accuracy"]
    assert state.main_metric == "f1"


def test_the_best_of_a_metric_is_its_own_best_where_the_loss_decides():
    state = folded(undecided(), evaluation(1, 0.85, best=True), evaluation(2, 0.91), evaluation(3, 0.86))
    assert state.main_metric == "accuracy"
    assert state.best_of("accuracy") == (2, 0.91)
    assert state.best_of("loss") == (1, 0.4)
    assert state.best_of("odd") is None
    assert folded(undecided()).best_of("accuracy") is None


@pytest.mark.parametrize(
    ("decides", "saved", "words"),
    [
        ("accuracy", 3, "from step 3 (best accuracy)"),
        ("loss", 3, "from step 3 (lowest evaluation loss)"),
        (None, 7, "from step 7 (last step)"),
        ("accuracy", 7, "from step 7 (last step; the best was step 3)"),
        ("accuracy", 5, "from step 5"),
    ],
)
def test_saved_model_says_its_step_and_why_that_one(decides: str | None, saved: int, words: str):
    made = msgspec.structs.replace(plan(), best_metric=decides)
    export = events.ModelExported(time=120.0, folder="model", step=saved)
    state = folded(made, step(3), evaluation(3, 0.9, best=True), step(7), evaluation(7, 0.8), export)
    assert state.model_origin == words
    assert state.journal[-1].text == f"Saved model to model, {words}"


def test_model_without_skill_is_not_called_the_best():
    made = msgspec.structs.replace(plan(), trivial={"accuracy": 0.9})
    export = events.ModelExported(time=120.0, folder="model", step=3)
    state = folded(made, step(3), evaluation(3, 0.5, best=True), step(7), export)
    assert state.model_origin == "from step 3"


def test_request_is_said_in_words():
    state = folded(plan(), step(1), events.RequestAnswered(time=102.0, request="pause", step=1))
    assert state.journal[-1].text == "Pause requested at step 1"
