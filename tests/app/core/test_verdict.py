"""The line that says how a run goes, for numbers whose story is known."""

from collections.abc import Sequence

import pytest

from app.core.run_state import RunState
from app.core.verdict import verdict
from backend.contract import events


def steps(losses: Sequence[float | None], seconds: Sequence[float] | None = None) -> list[events.Event]:
    return [
        events.StepFinished(
            time=100.0 + number, step=number, epoch=number / 100, loss=loss, learning_rate=1e-4, gradient_norm=1.0,
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
    found = verdict(state, alive)
    return found.text, found.kind


def losses(*values: float) -> list[events.Event]:
    return [evaluation(100 * place, loss=value) for place, value in enumerate(values, start=1)]


def test_a_run_without_steps_has_not_begun():
    assert told([], alive=True) == ("Training has not begun yet.", "info")


def test_a_loss_that_rises_while_training_goes_on_is_overfitting():
    many = [*steps(falling(700)), *losses(0.6, 0.5, 0.45, 0.4, 0.42, 0.44, 0.47)]
    assert told(many) == (
        "Evaluation loss has risen for three evaluations while training loss falls, which is overfitting; "
        "best was step 400.",
        "warning",
    )


def test_a_loss_that_rises_with_the_training_loss_has_only_risen():
    many = [*steps([0.5] * 700), *losses(0.6, 0.5, 0.45, 0.4, 0.42, 0.44, 0.47)]
    assert told(many)[0] == "Evaluation loss has risen for three evaluations; best was step 400."


def test_a_rising_loss_beside_the_best_accuracy_is_told_as_both():
    many = [
        *steps(falling(300)),
        evaluation(100, True, loss=0.4, accuracy=0.7),
        evaluation(200, True, loss=0.5, accuracy=0.8),
        evaluation(300, True, loss=0.6, accuracy=0.9),
    ]
    assert told(many) == (
        "Evaluation loss has risen for two evaluations (best was step 100), but Accuracy is the best yet.",
        "info",
    )


def test_a_loss_that_jumps_about_above_its_best_is_past_it():
    assert told([*steps(falling(500)), *losses(0.6, 0.4, 0.5, 0.44, 0.48)]) == (
        "Evaluation loss is 20% above its best, 0.4000 at step 200, three evaluations ago.",
        "warning",
    )


def test_a_plateau_is_called_so():
    many = [*steps(falling(600)), *losses(0.5, 0.4, 0.401, 0.4005, 0.4015, 0.4008)]
    assert told(many)[0] == ("Evaluation loss has hardly changed for five evaluations; best was 0.4000 at step 200.")


def test_the_best_evaluation_so_far_is_good_news():
    assert told([*steps(falling(200)), *losses(0.5, 0.4)]) == (
        "Evaluation loss falls: 0.4000 at step 200 is the best yet.",
        "success",
    )


def test_one_worse_evaluation_is_no_alarm():
    assert told([*steps(falling(300)), *losses(0.5, 0.4, 0.41)]) == (
        "Evaluation loss is 0.4100 at step 300; best was 0.4000 at step 200.",
        "info",
    )


def test_a_metric_is_judged_where_no_loss_is_measured():
    many = [*steps(falling(300)), *(evaluation(100 * n, bleu=value) for n, value in ((1, 30.0), (2, 29.0), (3, 28.0)))]
    assert told(many)[0] == "Bleu has fallen for two evaluations; best was step 100."


@pytest.mark.parametrize("peak", [2.0, 0.9])
def test_a_training_loss_that_climbs_back_diverges(peak: float):
    climbing = [0.2 + (peak - 0.2) * number / 200 for number in range(200)]
    text, kind = told([*steps([*falling(400), *climbing]), *losses(0.5, 0.4, 0.5)])
    assert text.startswith("Training diverges: its loss has risen from 0.2")
    assert kind == "error"


def test_noise_on_a_small_loss_is_no_divergence():
    noisy = [*falling(400), *([0.02, 0.03] * 20), *([0.04, 0.05] * 20)]
    assert not told(steps(noisy))[0].startswith("Training diverges")


def test_a_loss_that_is_no_number_comes_first():
    ended = events.RunFinished(time=999, state="failed", step=31, code="nan_loss", message="…")
    assert told([*steps(falling(31)), ended]) == (
        "The training loss became NaN after step 31: a lower learning rate often helps.",
        "error",
    )
    assert told([*steps(falling(100)), evaluation(100, loss=None)])[0] == "The evaluation loss is NaN at step 100."


def test_a_machine_that_slows_down_is_noticed_only_while_the_run_lives():
    slow = steps(falling(300), [1.0] * 240 + [2.0] * 60)
    text, kind = told(slow, alive=True)
    assert text.startswith("Speed has dropped to 50% of the usual 800 tokens / s; does something else use the machine?")
    assert kind == "warning"
    assert not told(slow)[0].startswith("Speed")


def test_the_time_left_is_said_of_a_living_run():
    plan = events.PlanMade(
        time=90, total_steps=220, steps_per_epoch=100, batch_size=8, micro_batch_size=8, accumulation=1, epochs=2.2
    )
    text, _ = told([plan, *steps(falling(100))], alive=True)
    assert text == "Training loss has fallen from 0.9640 to 0.2440; about 2 min 00 s left."


def test_too_few_steps_are_no_trend():
    assert told(steps([0.7, 0.6]))[0] == "2 steps made, too few for a trend."


def test_a_training_loss_that_stands_still_is_told():
    assert told(steps([0.7] * 100)) == ("Training loss has hardly changed: from 0.7000 to 0.7000.", "warning")
    text, _ = told(steps([*falling(100), *([0.2] * 900)]))
    assert text == "Training loss has hardly changed since step 500: 0.2000."
