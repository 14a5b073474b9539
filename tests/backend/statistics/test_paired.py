"""Tests of two models on the same rows, against published numbers and sacreBLEU's own test."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.significance import PairedTest
from scipy import stats

from backend.metrics.metric import Predictions, metrics_of, weighted_scores
from backend.statistics import resampling
from backend.statistics.paired import differences, group_differences, holm, mcnemar, resample

SIMULATIONS = 2000


def measure_difference(task, tables, facts, groups=None):
    def resample_one(table):
        families = weighted_scores(metrics_of(task), Predictions(pa.table(table)), facts, None)
        return resample(list(families.values()), len(table["actual"]), groups)

    return differences(*map(resample_one, tables))


def test_mcnemars_test_is_the_sum_of_binomial_chances():
    # 6 rows that one alone has right and 16 of the other: 2 · Σ C(22, k) / 2²² for k ≤ 6
    first = np.array([True] * 6 + [False] * 16 + [True] * 50)
    second = np.array([False] * 6 + [True] * 16 + [True] * 50)
    assert mcnemar(first, second) == pytest.approx(0.05248, abs=1e-5)
    assert mcnemar(first, first) == 1.0


def test_holm_raises_each_p_by_the_tests_that_are_left():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_the_paired_bootstrap_of_bleu_is_that_of_sacrebleu():
    rng = np.random.default_rng(1)
    words = [f"w{number}" for number in range(30)]
    references = [" ".join(rng.choice(words, 12)) for _ in range(60)]

    def spoil(share):
        return [
            " ".join(rng.choice(words) if rng.random() < share else word for word in text.split())
            for text in references
        ]

    systems = [spoil(0.3), spoil(0.37)]
    own = measure_difference("seq2seq_lm", [{"actual": references, "prediction": texts} for texts in systems], {})[
        "bleu"
    ]
    oracle: Any = PairedTest(
        [("a", systems[0]), ("b", systems[1])], {"BLEU": BLEU()}, [references], test_type="bs", n_samples=2000
    )()[1]["BLEU"]
    assert own.values == pytest.approx([one.score for one in oracle])
    assert own.p == pytest.approx(oracle[1].p_value, abs=0.04)
    assert own.test == "paired_bootstrap"


def labels(rng, rows, better):
    """Predictions of two models of which the second is right in `better` more of the rows."""
    actual = rng.random(rows) < 0.5
    easy, lucky = rng.random(rows) < 0.6, [rng.random(rows) < share for share in (0.5, 0.5 + better / 0.4)]
    right = [easy | one for one in lucky]
    return [
        {"actual": np.where(actual, "a", "b").tolist(), "prediction": np.where(actual == one, "a", "b").tolist()}
        for one in right
    ]


def test_a_difference_has_its_sign_its_size_and_what_rows_would_show_it():
    found = measure_difference(
        "text_classification", labels(np.random.default_rng(2), 2000, 0.08), {"labels": ["a", "b"]}
    )
    accuracy = found["accuracy"]
    assert accuracy.test == "mcnemar_exact"
    assert accuracy.p < 0.001
    assert accuracy.interval[0] < 0.08 < accuracy.interval[1]
    assert (accuracy.rows_needed(2000) or 2000) < 2000
    assert found["f1"].test == "paired_bootstrap"


def test_rows_that_depend_on_each_other_prove_less():
    tables = labels(np.random.default_rng(3), 60, 0.2)
    tables = [{name: np.repeat(values, 10).tolist() for name, values in table.items()} for table in tables]
    facts, groups = {"labels": ["a", "b"]}, np.repeat(np.arange(60), 10)
    alone, together = (
        measure_difference("text_classification", tables, facts, groups=each)["accuracy"] for each in (None, groups)
    )
    assert together.test == "paired_bootstrap"
    assert together.p > 10 * alone.p
    assert together.error == pytest.approx(10**0.5 * alone.error, rel=0.15)


def test_a_model_without_numbers_differs_from_none():
    actual = np.arange(40.0)
    tables = [{"actual": actual, "prediction": np.where(actual < place, np.nan, actual)} for place in (0, 1)]
    sums = [{"loss": (table["prediction"], np.ones(40))} for table in tables]

    def resample_one(table, loss):
        families = weighted_scores(metrics_of("text_regression"), Predictions(pa.table(table), loss), {}, None)
        return resample(list(families.values()), 40)

    assert "loss" not in differences(*map(resample_one, tables, sums))


@pytest.mark.slow
def test_models_that_do_not_differ_are_told_apart_in_one_case_of_twenty(monkeypatch):
    monkeypatch.setattr(resampling, "RESAMPLES", 500)
    rng = np.random.default_rng(4)
    found = [
        measure_difference("text_classification", labels(rng, 400, 0.0), {"labels": ["a", "b"]}) for _ in range(1000)
    ]
    assert 0.01 <= np.mean([one["accuracy"].p < 0.05 for one in found]) <= 0.06  # the exact test is cautious
    assert 0.03 <= np.mean([one["f1"].p < 0.05 for one in found]) <= 0.07


# Groups


def models_of(right):
    """(seeds, rows) → one model for each seed, as a share of right rows."""
    ones = np.ones(right.shape[1])
    return [
        resample([resampling.WeightedScores(resampling.ratios({"accuracy": (one, ones)}))], right.shape[1])
        for one in right
    ]


def group_difference(first, second):
    return group_differences(models_of(first), models_of(second))["accuracy"]


def additive(rng, rows=300):
    """Scores of rows and seeds that add up: what depends on both is nothing."""
    difficulty, gain = rng.normal(0, 1, rows), rng.normal(0.1, 0.5, rows)
    first = difficulty + rng.normal(0, 0.08, 5)[:, None]
    return first, difficulty + gain + rng.normal(0, 0.03, 3)[:, None]


def test_the_error_of_groups_is_that_of_a_two_level_bootstrap():
    rng = np.random.default_rng(1)
    first, second = additive(rng)
    drawn = []
    for _ in range(10_000):
        rows = rng.integers(0, first.shape[1], first.shape[1])
        # one seed fewer than there are: the variance of so many drawn ones is that of the mean
        a, b = (rng.integers(0, len(own), len(own) - 1) for own in (first, second))
        drawn.append(second[b][:, rows].mean() - first[a][:, rows].mean())
    found = group_difference(first, second)
    assert found.value == pytest.approx(second.mean() - first.mean())
    assert found.error == pytest.approx(np.std(drawn), rel=0.03)
    assert found.test == "bootstrap_seeds_rows"


def test_groups_have_students_interval():
    first, second = additive(np.random.default_rng(2))
    # rows differ by a constant: nothing but seeds is left, and Welch's test of their means is the oracle
    second = (
        first.mean(axis=0)
        + (second - second.mean(axis=0)).mean(axis=1, keepdims=True)
        + second.mean(axis=1, keepdims=True)
    )
    found = group_difference(first, second)
    oracle: Any = stats.ttest_ind(second.mean(axis=1), first.mean(axis=1), equal_var=False)
    assert found.p == pytest.approx(oracle.pvalue, rel=1e-6)
    assert found.interval == pytest.approx(tuple(oracle.confidence_interval()), rel=1e-6)


def test_two_groups_of_one_are_the_paired_bootstrap():
    first, second = additive(np.random.default_rng(3))
    alone = differences(models_of(first)[0], models_of(second)[0])["accuracy"]
    found = group_difference(first[:1], second[:1])
    assert found.error == pytest.approx(alone.error, rel=1e-3)
    assert found.seeds_needed() is None


def test_the_same_group_does_not_differ():
    first, _ = additive(np.random.default_rng(4))
    found = group_difference(first, first)
    assert found.value == 0
    assert found.p == 1


def test_seeds_that_differ_much_ask_for_more_seeds():
    rng = np.random.default_rng(5)
    rows = rng.normal(0, 0.1, 1000)
    first, second = (rows + rng.normal(mean, 0.1, 3)[:, None] for mean in (0, 0.1))
    found = group_difference(first, second)
    assert found.rows_needed(1000) is None
    wanted = found.seeds_needed()
    assert wanted is not None
    assert wanted > 3
    error = np.sqrt(sum(found.seed_variances) / wanted)
    assert abs(found.value) / error == pytest.approx(2.8, rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize(("of_seed", "of_both"), [(0.0, 1.0), (0.1, 0.5), (0.5, 0.5)])
@pytest.mark.parametrize("seeds", [(2, 2), (3, 5), (5, 5)])
def test_intervals_of_groups_hold_the_truth(monkeypatch, of_seed, of_both, seeds):
    monkeypatch.setattr(resampling, "RESAMPLES", 300)
    rng, rows, shift = np.random.default_rng(6), 400, 0.2
    wide = np.sqrt(1 + of_seed**2 + of_both**2)
    truth = stats.norm.cdf(shift / wide) - 0.5
    hits = 0
    for _ in range(SIMULATIONS):
        difficulty = rng.normal(0, 1, rows)
        first, second = (
            (mean + difficulty + rng.normal(0, of_seed, (count, 1)) + rng.normal(0, of_both, (count, rows)) > 0).astype(
                float
            )
            for mean, count in zip((0, shift), seeds, strict=True)
        )
        low, high = group_difference(first, second).interval
        hits += low <= truth <= high
    most = 0.99 if min(seeds) == 2 else 0.97  # of two seeds the degrees of freedom are a guess on the safe side
    assert 0.93 <= hits / SIMULATIONS <= most
