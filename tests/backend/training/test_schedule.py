"""The learning rate as a pure function of the step."""

import pytest
from pydantic import ValidationError

from backend.contract.spec import TrainingSection
from backend.preflight.steps import steps_per_epoch, total_steps
from backend.training.schedule import learning_rate, warmup_steps


def rates(total: int, **settings: object) -> list[float]:
    training = TrainingSection(learning_rate=1.0, **{"warmup": 0.0, **settings})
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


def reference(make, steps: int) -> list[float]:
    """What a scheduler of torch or transformers gives for each step, from a highest rate of 1."""
    import torch

    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    scheduler = make(optimizer)
    found = []
    for _ in range(steps):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return found


@pytest.mark.parametrize("warmup", [0, 3])
@pytest.mark.parametrize(
    ("schedule", "ours", "theirs"),
    [
        ("linear", {}, {}),
        ("cosine", {}, {}),
        ("cosine_with_restarts", {}, {}),
        ("cosine_with_restarts", {"schedule_cycles": 3}, {"num_cycles": 3}),
        ("polynomial", {}, {}),
        ("polynomial", {"schedule_power": 2.0, "schedule_end": 0.1}, {"power": 2.0, "lr_end": 0.1}),
        ("constant_with_warmup", {}, {}),
        ("inverse_sqrt", {}, {}),
        ("inverse_sqrt", {"schedule_timescale": 7}, {"timescale": 7}),
    ],
)
def test_agrees_with_the_schedules_of_transformers_at_every_step(schedule, ours, theirs, warmup):
    from transformers import get_scheduler

    expected = reference(lambda optimizer: get_scheduler(schedule, optimizer, warmup, 20, theirs), 20)
    assert rates(20, schedule=schedule, warmup=warmup, **ours) == pytest.approx(expected, rel=1e-12, abs=1e-15)


def test_constant_without_warmup_is_that_of_transformers():
    from transformers import get_scheduler

    assert rates(5, schedule="constant") == reference(lambda optimizer: get_scheduler("constant", optimizer), 5)


@pytest.mark.parametrize("fraction", [0.06, 0.3])
def test_one_cycle_agrees_with_that_of_torch_at_every_step(fraction: float):
    from torch.optim.lr_scheduler import OneCycleLR

    def make(optimizer):
        return OneCycleLR(
            optimizer, 1.0, 100, pct_start=fraction, anneal_strategy="linear", div_factor=1e7, final_div_factor=1e10,
            cycle_momentum=False,
        )  # fmt: skip

    assert rates(99, schedule="one_cycle", warmup=fraction, schedule_steps=100) == pytest.approx(
        reference(make, 99), rel=1e-9, abs=1e-18
    )


def test_one_cycle_with_a_single_warmup_step_starts_at_the_peak():
    found = rates(10, schedule="one_cycle", warmup=1)
    assert found[0] == 1.0
    assert found == sorted(found, reverse=True)


def test_one_cycle_is_what_pymarlin_logged_for_rte():
    """780 updates, scheduled as 790; the peak lies at 46.4, between two steps (reference part 2)."""
    training = TrainingSection(learning_rate=2e-5, schedule="one_cycle", warmup=0.06, schedule_steps=790)
    for step in range(20, 781, 20):
        done = step - 1
        expected = 2e-5 * done / 46.4 if done < 46.4 else 2e-5 * (1 - (done - 46.4) / 742.6)
        assert learning_rate(step, 780, training) == pytest.approx(expected, abs=2e-12)  # it begins at 2e-12


def test_three_epochs_of_124_records_in_whole_batches_of_16_are_21_steps():
    training = TrainingSection(epochs=3, batch_size=16, drop_last=True)
    assert total_steps(training, steps_per_epoch(training, 124)) == 21


def test_300_batches_are_300_steps():
    assert total_steps(TrainingSection(max_steps=300), 8) == 300


def test_3000_records_in_batches_of_16_are_187_steps():
    training = TrainingSection(max_records=3000, batch_size=16)
    assert total_steps(training, 8) == 187


def test_without_dropping_the_last_batch_of_an_epoch_is_a_step():
    training = TrainingSection(epochs=3, batch_size=16)
    assert total_steps(training, steps_per_epoch(training, 124)) == 24


def test_a_polynomial_that_would_rise_is_refused():
    with pytest.raises(ValidationError, match=r"below training\.learning_rate"):
        TrainingSection(schedule="polynomial", learning_rate=1e-5, schedule_end=1e-3)
