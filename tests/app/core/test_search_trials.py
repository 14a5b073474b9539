"""A search as the window shows it: axes, rows and sentences, from a report alone."""

import pytest

from app.core.runs.search_trials import (
    axes_of,
    header_of,
    importance_words,
    rows_of,
    sentences,
    tile_of_steps,
    tile_of_time,
)
from backend.contract.rpc.search import Confirmation, Importance, Ineffective, SearchReport, TrialEntry


def entry(number: int, rate: float, rank: object, metric: float | None, state: str = "finished") -> TrialEntry:
    settings = {"training.learning_rate": rate, "adapter.rank": rank}
    return TrialEntry(trial=number, run=f"/runs/search/trials/trial-{number:03d}", state=state, settings=settings, metric=metric, steps=90, total_steps=90, seconds=9)  # fmt: skip


def report(trials: list[TrialEntry], **changes: object) -> SearchReport:
    values: dict = {
        "search": "/runs/search", "name": "search", "state": "finished", "message": "", "metric": "accuracy", "greater_is_better": True,
        "sampler": "tpe", "planned": 3, "trials": trials, "best": trials[0].trial if trials else None, "confirmed": [], "no_effect": [], "verdict": [],
        "importance": [], "steps": 120, "full_steps": 270, "seconds": 27, "seconds_left": None,
    }  # fmt: skip
    return SearchReport(**{**values, **changes})


TRIALS = [entry(2, 1e-3, 8, 0.9), entry(1, 1e-5, 4, 0.7), entry(3, 1e-4, 8, None, "failed")]


def test_wide_range_has_a_logarithmic_axis():
    rate, rank, metric = axes_of(report(TRIALS))
    assert rate.places == pytest.approx((1.0, 0.0, 0.5))
    assert rank.places == (1.0, 0.0, 1.0)
    assert metric.places == (1.0, 0.0, None)


def test_few_values_are_all_written_at_their_axis():
    _, rank, _ = axes_of(report(TRIALS))
    assert rank.ticks == ((0.0, "4"), (1.0, "8"))


def test_choices_of_any_kind_have_a_place_each():
    _, choice, _ = axes_of(report([entry(1, 0.1, True, 0.5), entry(2, 0.2, "lora", 0.5), entry(3, 0.3, None, 0.5)]))
    assert choice.places[2] is None
    assert sorted(text for _, text in choice.ticks) == ["lora", "true"]


def test_metric_that_is_the_same_everywhere_divides_nothing_by_zero():
    *_, metric = axes_of(report([entry(1, 0.1, 4, 0.5), entry(2, 0.2, 8, 0.5)]))
    assert metric.places == (0.5, 0.5)


def test_best_trial_is_marked_and_first():
    rows = rows_of(report(TRIALS))
    assert rows[0][0] == "2 ★"
    assert [len(row) for row in rows] == [len(header_of(report(TRIALS)))] * 3


def test_search_without_a_trial_is_shown():
    assert rows_of(report([])) == []
    assert len(axes_of(report([]))) == 1


@pytest.mark.parametrize(
    ("interval", "words"),
    [
        ((0.74, 1.0), "at most 0.16 of that was luck, and perhaps none: more seeds would tell."),
        ((0.86, 0.88), "0.03 of that was luck (0.02 to 0.04)."),
        ((0.91, 0.95), "if anything, that was bad luck."),
        (None, "one new seed can't say how much of that was luck."),
    ],
    ids=str,
)
def test_luck_is_said_as_far_as_the_interval_allows(interval: tuple[float, float] | None, words: str):
    luck = None if interval is None else (0.9 - interval[1], 0.9 - interval[0])
    values = {"43": 0.86, "44": 0.88}
    confirmed = [Confirmation(trial=2, searched=0.9, values=values, mean=0.87, interval=interval, luck=0.03, luck_interval=luck)]  # fmt: skip
    first = sentences(report(TRIALS, confirmed=confirmed))[0]
    assert first.startswith("Trial 2 with 2 new seeds: mean Accuracy 0.8700")
    assert first.endswith(f"The search found 0.9000; {words}")


def test_verdict_comes_first_and_what_had_no_effect_is_said():
    found = sentences(
        report(
            TRIALS,
            verdict=["your own settings and trial 2 differ by more than chance"],
            no_effect=[Ineffective(settings={"adapter.rank": [4, 8]}, trials=[1, 2], steps=90)],
        )
    )
    assert found[0] == "Your own settings and trial 2 differ by more than chance."
    assert any("had no effect: trials 1 and 2 have identical losses" in one for one in found)


def test_cost_is_told_beside_training_every_trial_through():
    assert tile_of_steps(report(TRIALS)) == ("120", "instead of 270 (44 %)")
    assert importance_words(Importance(setting="adapter.rank", share=0.8, interval=(0.5, 0.95))) == "80 % (50 to 95 %)"


def test_time_is_told_beside_a_full_grid_once_a_search_is_over():
    cost = {"full_seconds": 60.0, "grid_seconds": 120.0, "combinations": 10, "samples": 5, "confirmation_seconds": 7.0}
    found = report(TRIALS, **cost)
    assert tile_of_time(found) == ("Training time", "27 s", "full grid ≈ 2 min 00 s")
    assert sentences(found) == [
        "The trials took 20 s of training, and the runs with new seeds 7 s. Training all of these trials through would take about "
        "1 min 00 s, a full grid (10 trials, 5 values of each continuous range) about 2 min 00 s."
    ]
    running = report(TRIALS, **{**cost, "state": "running", "seconds_left": 30.0})
    assert tile_of_time(running) == ("Time left", "30 s", "27 s trained")
    assert sentences(running) == []
