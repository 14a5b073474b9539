"""The learning rate as a pure function of the step."""

import pytest

from backend.contract.spec import TrainingSection
from backend.run.schedule import learning_rate, warmup_steps


def rates(total: int, **settings: object) -> list[float]:
    training = TrainingSection(learning_rate=1.0, **settings)
    return [learning_rate(step, total, training) for step in range(1, total + 1)]


def test_first_step_with_warmup_has_rate_zero_and_the_peak_comes_right_after_it():
    assert rates(10, warmup=4)[:5] == [0.0, 0.25, 0.5, 0.75, 1.0]


def test_linear_schedule_would_reach_zero_just_after_the_last_step():
    assert rates(4) == [1.0, 0.75, 0.5, 0.25]


def test_cosine_is_half_way_down_in_the_middle():
    assert rates(8, schedule="cosine")[4] == pytest.approx(0.5)


def test_constant_stays_up_after_the_warmup():
    assert rates(5, schedule="constant", warmup=2) == [0.0, 0.5, 1.0, 1.0, 1.0]


def test_warmup_below_one_is_a_fraction_rounded_up():
    assert warmup_steps(TrainingSection(warmup=0.06), 150) == 9
    assert warmup_steps(TrainingSection(warmup=0.1), 101) == 11


@pytest.mark.parametrize("schedule", ["linear", "cosine"])
def test_agrees_with_the_schedules_of_transformers(schedule: str):
    import torch
    from transformers import get_scheduler

    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    reference = get_scheduler(schedule, optimizer, num_warmup_steps=3, num_training_steps=20)
    expected = []
    for _ in range(20):
        expected.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        reference.step()
    assert rates(20, schedule=schedule, warmup=3) == pytest.approx(expected)
