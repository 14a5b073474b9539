"""The line that says how a run goes, for numbers whose story is known."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from app.core import formatting
from app.core.runs.diagnosis import diagnose
from app.core.runs.run_state import RunState
from backend.contract.catalog import MetricEntry
from backend.contract.run import events
from backend.metrics.entities import scores


def steps(
    losses: Sequence[float | None], seconds: Sequence[float] | None = None, rate: float = 1e-4
) -> list[events.Event]:
    return [
        events.StepFinished(
            time=100.0 + number, step=number, epoch=number / 100, loss=loss, learning_rate=rate, gradient_norm=1.0,
            rows=8, tokens=800, seconds=(seconds or [1.0] * len(losses))[number - 1],
        )
        for number, loss in enumerate(losses, start=1)
    ]  # fmt: skip


def falling(count: int) -> list[float]:
    return [1.0 - 0.8 * number / count for number in range(count)]


def evaluation(step: int, best: bool = False, **metrics: float | None) -> events.EvaluationFinished:
    return events.EvaluationFinished(
        time=200.0 + step, step=step, epoch=step / 100, metrics=metrics, rows=20, seconds=1.0, is_best=best
    )


def told(many: Sequence[events.Event], alive: bool = False) -> tuple[str, str]:
    state = RunState()
    state.apply_all(many)  # type: ignore[arg-type]
    found = diagnose(state, alive)
    return found.text, found.kind


def losses(*values: float) -> list[events.Event]:
    return [evaluation(100 * place, loss=value) for place, value in enumerate(values, start=1)]


def test_a_run_without_steps_has_not_begun():
    assert told([], alive=True) == ("Training has not started yet.", "info")


def test_a_loss_that_rises_while_training_goes_on_is_overfitting():
    many = [*steps(falling(700)), *losses(0.6, 0.5, 0.45, 0.4, 0.42, 0.44, 0.47)]
    assert told(many) == (
        "Evaluation loss has increased for three evaluations; best was step 400. "
        "The training loss is still falling, so the model is overfitting.",
        "warning",
    )


def test_a_loss_that_rises_with_the_training_loss_has_only_risen():
    many = [*steps([0.5] * 700), *losses(0.6, 0.5, 0.45, 0.4, 0.42, 0.44, 0.47)]
    assert told(many)[0] == "Evaluation loss has increased for three evaluations; best was step 400."


def test_a_rising_loss_beside_the_best_accuracy_is_told_as_both():
    many = [
        *steps(falling(300)),
        evaluation(100, True, loss=0.4, accuracy=0.7),
        evaluation(200, True, loss=0.5, accuracy=0.8),
        evaluation(300, True, loss=0.6, accuracy=0.9),
    ]
    rises = "Evaluation loss has increased for two evaluations (best was step 100), but Accuracy"
    assert told(many, alive=True)[0].startswith(f"{rises} is at its best so far")
    assert told(many) == (f"{rises} was best at the end.", "info")


def test_a_loss_that_jumps_about_above_its_best_is_past_it():
    assert told([*steps(falling(500)), *losses(0.6, 0.4, 0.5, 0.44, 0.48)]) == (
        "Evaluation loss is 20% above its best, 0.4000 at step 200, three evaluations ago.",
        "warning",
    )


def test_a_plateau_is_called_so():
    many = [*steps(falling(600)), *losses(0.5, 0.4, 0.401, 0.4005, 0.4015, 0.4008)]
    assert told(many)[0] == ("Evaluation loss has barely changed for five evaluations; best was 0.4000 at step 200.")


def test_the_best_evaluation_so_far_is_good_news():
    state = RunState()
    state.apply_all([*steps(falling(200)), *losses(0.5, 0.4)])  # type: ignore[arg-type]
    found = diagnose(state, alive=True)
    assert found.text.startswith("Evaluation loss is falling: 0.4000 at step 200 is the best so far")
    assert found.kind == "success"


def test_a_run_that_is_over_no_longer_falls():
    assert told([*steps(falling(200)), *losses(0.5, 0.4)]) == (
        "Evaluation loss fell until the end: 0.4000 at step 200 is the lowest.",
        "success",
    )


def test_one_worse_evaluation_is_no_alarm():
    assert told([*steps(falling(300)), *losses(0.5, 0.4, 0.41)]) == (
        "Evaluation loss is 0.4100 at step 300; best was 0.4000 at step 200.",
        "info",
    )


def test_a_metric_is_judged_where_no_loss_is_measured():
    formatting.learn_metrics([MetricEntry("bleu", "BLEU", [], greater_is_better=True)])
    many = [*steps(falling(300)), *(evaluation(100 * n, bleu=value) for n, value in ((1, 30.0), (2, 29.0), (3, 28.0)))]
    assert told(many)[0] == "BLEU has decreased for two evaluations; best was step 100."


@pytest.mark.parametrize("peak", [2.0, 0.9])
def test_a_training_loss_that_climbs_back_diverges(peak: float):
    climbing = [0.2 + (peak - 0.2) * number / 200 for number in range(200)]
    text, kind = told([*steps([*falling(400), *climbing]), *losses(0.5, 0.4, 0.5)])
    assert text.startswith("Training is diverging: the loss has risen from 0.2")
    assert kind == "error"


JUMPING = [*falling(400), *[0.3, 1.0] * 50]
"""A training loss whose last hundred steps are far above what it had reached."""


def test_a_training_loss_that_jumps_while_evaluations_improve_is_no_divergence():
    learning = [*steps(JUMPING), *losses(0.6, 0.5, 0.45, 0.42), evaluation(500, True, loss=0.4)]
    assert told(learning) == ("Evaluation loss fell until the end: 0.4000 at step 500 is the lowest.", "success")
    assert told(learning[:-1])[0].startswith("Training is diverging")  # the last evaluation is of before


def test_a_training_loss_that_jumps_while_evaluations_get_worse_diverges():
    assert told([*steps(JUMPING), *losses(0.6, 0.5, 0.45, 0.42, 0.9)])[0].startswith("Training is diverging")


def test_evaluations_are_judged_by_those_that_are_numbers():
    many = [*steps(falling(400)), evaluation(100, loss=0.5), evaluation(200, loss=None), evaluation(300, loss=0.4)]
    assert told(many) == ("Evaluation loss fell until the end: 0.4000 at step 300 is the lowest.", "success")


def test_noise_on_a_small_loss_is_no_divergence():
    noisy = [*falling(400), *([0.02, 0.03] * 20), *([0.04, 0.05] * 20)]
    assert not told(steps(noisy))[0].startswith("Training is diverging")


BROKEN = [1.1, 96.0, 140.0, 88.0, *(60.0 - number / 2 for number in range(44))]
"""A loss that jumps at the second step, as a learning rate of 5 makes it, and falls again without coming back."""


@pytest.mark.parametrize("count", [11, 12, 48])
def test_a_loss_that_ends_far_above_its_first_step_diverges_however_well_evaluations_fall(count: int):
    many = [*steps(BROKEN[:count], rate=5.0), *losses(90.0, 40.0, 31.4331)]
    text, kind = told(many)
    assert text.startswith("Training is diverging: the loss has risen from 1.1000 to ")
    assert text.endswith("since step 1; try a learning rate below 5.")
    assert kind == "error"


def test_an_evaluation_far_above_the_first_training_loss_is_no_success():
    assert told([*steps([1.1, 96.0, 60.0], rate=5.0), *losses(90.0, 31.4331)]) == (
        "Evaluation loss is 31.4331 at step 200, far above the training loss at the first step (1.1000).",
        "warning",
    )


def test_a_first_loss_that_was_small_by_luck_is_no_divergence():
    jumping = [0.05, 0.9, 0.3, 1.4, 0.6, 0.2, 1.1, 0.08, 0.7, 0.4, 1.2, 0.1]
    assert "diverging" not in told(steps(jumping))[0]


def constant(share: float, **others: float) -> dict[str, Any]:
    """Scores of a classifier that gives every row the label of this share of them."""
    f1 = 2 * share / (1 + share)
    return {"loss": 1.1, "accuracy": share, "f1_macro": f1 / 3, "f1_weighted": share * f1, "matthews": 0.0, **others}


def test_a_model_of_one_label_is_no_success_while_its_loss_falls():
    many = [*steps(falling(60)), evaluation(30, **constant(0.4)), evaluation(60, True, **constant(0.4, loss=1.0))]
    assert told(many) == (
        "The model predicts the same label for every row; try a higher learning rate or more epochs.",
        "warning",
    )


def test_a_model_of_one_label_at_a_high_rate_is_not_sent_higher():
    many = [*steps([1.1] * 60, rate=0.01), evaluation(60, **constant(0.4))]
    assert told(many)[0] == "The model predicts the same label for every row; try a learning rate other than 0.01."


def test_a_model_of_one_label_whose_loss_is_far_above_the_first_is_sent_lower():
    many = [*steps([0.7, 8.0, 0.8] * 20, rate=10.0), evaluation(60, **constant(0.4, loss=8.2))]
    assert told(many)[0] == "The model predicts the same label for every row; try a learning rate below 10."


@pytest.mark.parametrize(
    "scores", [constant(0.4, f1_weighted=0.39), constant(1.0), constant(0.4, f1_weighted=0.8 / 1.4)],
    ids=["several labels", "all right", "rows of one label"],
)  # fmt: skip
def test_what_may_come_from_several_labels_is_not_called_one_label(scores: dict[str, Any]):
    assert "same label" not in told([*steps(falling(60)), evaluation(60, **scores)])[0]


def tagged(step: int, actual: list[str], predicted: list[str]) -> list[events.Event]:
    """A tagger's evaluation with the scores that Burnish computes for these sentences."""
    table = pa.table({"actual": actual, "prediction": predicted})
    started = events.RunStarted(time=1, name="ner", task="token_classification", model="bert-tiny")
    return [started, *steps(falling(step)), evaluation(step, True, loss=0.4, **scores(table, "BIO", strict=False))]


SENTENCES = ["B-PER I-PER O O O O", "O O B-LOC O O O"]


def test_a_tagger_that_finds_no_entity_is_no_success_while_its_loss_falls():
    assert told(tagged(60, SENTENCES, ["O O O O O O"] * 2)) == (
        "The model finds no entities; try a higher learning rate or more epochs.",
        "warning",
    )


@pytest.mark.parametrize(
    ("actual", "predicted"),
    [(SENTENCES, ["B-PER I-PER O O O O", "O O O O O O"]), (["O O O"], ["O O O"])],
    ids=["one entity is found", "there is none to find"],
)
def test_a_tagger_that_found_what_it_could_is_not_blamed(actual: list[str], predicted: list[str]):
    assert "entities" not in told(tagged(60, actual, predicted))[0]


def test_an_untrained_model_is_not_blamed_for_its_one_label():
    many = [evaluation(0, **constant(0.4)), *steps(falling(60))]
    assert "same label" not in told(many)[0]


def test_a_loss_that_is_no_number_comes_first():
    ended = events.RunFinished(time=999, state="failed", step=31, code="nan_loss", message="…")
    assert told([*steps(falling(31)), ended]) == (
        "The training loss became NaN at step 31: try a lower learning rate.",
        "error",
    )
    assert told([*steps(falling(100)), evaluation(100, loss=None)])[0] == "The evaluation loss is NaN at step 100."


def test_a_loss_that_never_was_a_number_is_not_blamed_on_the_learning_rate():
    ended = events.RunFinished(time=999, state="failed", step=1, code="nan_loss", message="…")
    assert told([*steps([None], rate=0.0), ended]) == (
        "The training loss was NaN at step 1, before any weight update: check the model's weights and the data.",
        "error",
    )


def test_a_machine_that_slows_down_is_noticed_only_while_the_run_lives():
    slow = steps(falling(300), [1.0] * 240 + [2.0] * 60)
    text, kind = told(slow, alive=True)
    assert text.startswith(
        "Training has slowed to 50% of its usual 800 tokens/s; is another program using this machine?"
    )
    assert kind == "warning"
    assert not told(slow)[0].startswith("Training has slowed")


def test_the_time_left_is_said_of_a_living_run():
    plan = events.PlanMade(
        time=90, total_steps=220, steps_per_epoch=100, batch_size=8, micro_batch_size=8, accumulation=1, epochs=2.2
    )
    text, _ = told([plan, *steps(falling(100))], alive=True)
    assert text == "Training loss has fallen from 0.9640 to 0.2440; about 2 min 00 s left."


def test_too_few_steps_are_no_trend():
    assert told(steps([0.7, 0.6]))[0] == "Only 2 steps so far, too early to see a trend."


def test_a_training_loss_that_stands_still_is_told():
    assert told(steps([0.7] * 100)) == ("Training loss has barely changed: from 0.7000 to 0.7000.", "warning")
    text, _ = told(steps([*falling(100), *([0.2] * 900)]))
    assert text == "Training loss has barely changed since step 500: 0.2000."


def at_chance(accuracy: float, matthews: float = 0.0, kappa: float = 0.0) -> list[events.Event]:
    plan = events.PlanMade(
        time=1.0, total_steps=40, steps_per_epoch=20, batch_size=8, micro_batch_size=8, accumulation=1, epochs=2,
        best_metric="accuracy", metrics={"accuracy": True, "matthews": True},
        trivial={"accuracy": 0.5, "matthews": 0.0},
    )  # fmt: skip
    return [plan, *steps(falling(40)), evaluation(40, best=True, accuracy=accuracy, matthews=matthews, loss=0.7)]


@pytest.mark.parametrize("accuracy", [0.5, 0.45])
def test_a_result_that_needs_no_model_is_a_warning_and_never_the_best(accuracy: float):
    text, kind = told(at_chance(accuracy, -0.01))
    assert text == (
        f"Accuracy is {formatting.number(accuracy)}, no better than without a model (0.5000); "
        "try a higher learning rate or more epochs."
    )
    assert kind == "warning"
    state = RunState()
    state.apply_all(at_chance(accuracy, -0.01))  # type: ignore[arg-type]
    assert state.best is None
    assert not any("best" in entry.text for entry in state.journal)


def test_a_last_result_at_chance_says_nothing_of_a_model_that_was_saved_before():
    later = [*at_chance(0.9, 0.8), *steps(falling(80))[40:], evaluation(80, accuracy=0.5, matthews=-0.01, loss=0.7)]
    assert "without a model" not in told(later)[0]
    assert "without a model" in told(later, alive=True)[0]


def test_one_measure_above_the_trivial_rule_is_enough():
    text, _ = told(at_chance(0.5, 0.2))
    assert "without a model" not in text
