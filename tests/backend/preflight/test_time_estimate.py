"""How long a run will take follows from what was measured once, and from how often each part is done."""

from typing import Any

import pytest
from msgspec.structs import replace

from backend.contract.run.cost import Measurement, TimePart
from backend.contract.spec import run_spec
from backend.contract.spec_file import set_values
from backend.preflight.time_estimate import Amounts, estimate_parts, sum_parts, unknown_parts

MEASURED = Measurement(
    time=0.0, mean_length=20.0, longest=90, steps=40, step_seconds=0.5, starting_seconds=4.0, loading_seconds=2.0,
    evaluation_row_seconds=0.01, checkpoint_seconds=3.0, saving_seconds=1.0,
)  # fmt: skip


def amounts(total_steps: int = 40, tokenised: frozenset[str] = frozenset(), **changes: Any) -> Amounts:
    """Of 100 training rows in batches of ten, and 50 rows to validate."""
    values = {"task": {"type": "x"}, "model": {"name_or_path": "/m"}, "data": {"train": "/t.csv"}}
    spec = run_spec(set_values(values, {"training.batch_size": 10, **changes}))
    rows = {"train": 100, "validation": 50}
    return Amounts(spec, rows, 20.0, 10, total_steps, 0.002, tokenised)


def seconds(parts: list[TimePart]) -> dict[str, float | None]:
    return {part.name: part.seconds for part in parts}


def test_each_part_is_as_often_as_the_loop_does_it():
    found = seconds(estimate_parts(amounts(), MEASURED))
    assert found == pytest.approx(
        {
            "Startup": 4 + 2, "Tokenizing": 0.3, "Training": 20.0, "Evaluations": 4 * 50 * 0.01,
            "Checkpoints": 4 * 3.0, "Saving": 1.0, "Predictions": 0.5,
        }
    )  # fmt: skip


def test_the_last_step_is_evaluated_and_kept_even_if_it_is_no_multiple():
    found = amounts(45, **{"evaluation.every": 20, "training.checkpoint_every": 30, "evaluation.at_start": True})
    assert found.evaluations == 3 + 1
    assert found.checkpoints == (2, 2)


def test_training_rows_are_evaluated_beside_those_of_validation():
    limits = {"evaluation.train_rows": 30, "evaluation.max_rows": 20}
    assert amounts(**limits).evaluated == 30 + 20
    assert amounts(**limits | {"evaluation.train_rows": 1000}).evaluated == 100 + 20


def test_with_a_metric_each_evaluation_may_be_the_best_one():
    found = amounts(**{"training.checkpoint_every": "never", "evaluation.best_metric": "accuracy"})
    assert found.checkpoints == (0, 4)
    part = next(one for one in estimate_parts(found, MEASURED) if one.name == "Checkpoints")
    assert (part.least, part.seconds, part.words) == (0.0, 6.0, "0–4 × 3 s")


@pytest.mark.parametrize("steps", [1, 11, 12, 13, 39, 40, 10**12])
def test_steps_that_are_due_are_counted_as_the_loop_meets_them(steps: int):
    changes = {"evaluation.every": 4, "training.checkpoint_every": 6, "evaluation.best_metric": "accuracy"}
    found = amounts(steps, **changes)
    shown = min(steps, 36 + steps % 12)  # a whole number of rounds of twelve steps left out
    rounds = (steps - shown) // 12
    each, kept = ({*range(every, shown + 1, every), shown} for every in (4, 6))
    assert found.evaluations == len(each) + 3 * rounds
    assert found.checkpoints == (len(kept) + 2 * rounds, len(each | kept) + 4 * rounds)


def test_what_was_tokenised_before_takes_no_time():
    found = estimate_parts(amounts(tokenised=frozenset({"train", "validation"})), MEASURED)
    assert seconds(found)["Tokenizing"] == 0.0


def test_few_steps_tell_less_than_many():
    few, many = (
        next(part for part in estimate_parts(amounts(), replace(MEASURED, steps=steps)) if part.name == "Training")
        for steps in (4, 40)
    )
    assert (few.least, few.most, many.least, many.most) == pytest.approx((15.0, 25.0, 18.0, 22.0))


def test_early_stopping_may_end_it_sooner():
    plain, stopping = (estimate_parts(amounts(**more), MEASURED) for more in ({}, {"training.early_stopping": 1}))
    assert sum_parts(stopping)[0] == sum_parts(plain)[0]
    least = {part.name: part.least for part in stopping}
    assert least["Training"] == pytest.approx({part.name: part.least for part in plain}["Training"] / 2)


def test_what_the_first_evaluation_loads_counts_once():
    slow = replace(MEASURED, first_evaluation_seconds=3.0)
    with_some, without = (
        seconds(estimate_parts(amounts(**more), slow)) for more in ({}, {"evaluation.every": "never"})
    )
    assert (with_some["Evaluations"], with_some["Predictions"]) == pytest.approx((2.0 + 3.0, 0.5))
    assert without["Predictions"] == pytest.approx(3.5)


def test_a_busy_machine_leaves_it_open_how_fast_it_is_alone():
    busy = replace(MEASURED, others=0.5)
    quiet, found = sum_parts(estimate_parts(amounts(), MEASURED)), sum_parts(estimate_parts(amounts(), busy))
    assert (found[0], found[2]) == (quiet[0], quiet[2])
    assert found[1] == pytest.approx(quiet[1] / 2)


def test_programs_that_are_kept_are_only_read():
    compiling = replace(MEASURED, compile_seconds=10.0, programs=5, compiled=2)
    assert seconds(estimate_parts(amounts(), compiling))["Compiling"] == pytest.approx(3 * 10 + 2 * 1)


def test_a_part_that_is_not_known_leaves_the_whole_unknown():
    parts = unknown_parts(amounts())
    assert [part.name for part in parts] == ["Tokenizing", "Training", "Evaluations", "Predictions"]
    assert sum_parts(parts) == (None, None, None)


def test_another_training_tells_the_time_only_roughly():
    similar = Measurement(
        time=0.0, mean_length=20.0, longest=90, steps=0, step_seconds=0.2, evaluation_row_seconds=0.02 / 3
    )
    found, least, most = sum_parts(estimate_parts(amounts(), similar))
    assert (found, least, most) == pytest.approx((0.3 + 8 + 4 / 3 + 1 / 3, 5.058, 14.875), rel=0.01)
