"""Slices of rows against the others: Fisher's test and a bootstrap, corrected for having looked at many."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from backend.statistics.paired import holm
from backend.statistics.resampling import WeightedScores, divide, ratios
from backend.statistics.slices import FEWEST_ROWS, score_slices


def share_of(right):
    """A family that gives the share of right rows."""
    return lambda rows: WeightedScores(
        ratios({"accuracy": (right[rows].astype(float), np.ones(len(rows)))}), {"accuracy": right[rows]}
    )


def mean_of(values):
    return lambda rows: WeightedScores(ratios({"loss": (values[rows], np.ones(len(rows)))}))


def test_a_slice_is_tested_as_fisher_would_and_corrected_as_holm_would():
    rng = np.random.default_rng(1)
    right = rng.random(400) < 0.8
    slices = [np.arange(start, start + 100) for start in (0, 100, 200, 300)]
    right[:40] = False
    found = score_slices(share_of(right), "accuracy", slices, 400)
    others = [np.delete(right, own) for own in slices]
    tables: Any = [
        [[right[own].sum(), (~right[own]).sum()], [other.sum(), (~other).sum()]]
        for own, other in zip(slices, others, strict=True)
    ]
    expected = [float(stats.fisher_exact(table)[1]) for table in tables]  # pyright: ignore[reportArgumentType]
    assert [one.p for one in found] == pytest.approx(expected)
    assert [one.p_holm for one in found] == pytest.approx(holm(expected))
    assert found[0].value == right[:100].mean()
    assert found[0].others == right[100:].mean()


def test_a_slice_of_few_rows_is_shown_but_neither_tested_nor_counted():
    right = np.arange(200) >= 10
    few, many = np.arange(FEWEST_ROWS - 1), np.arange(100)
    found = score_slices(share_of(right), "accuracy", [few, many], 200)
    assert found[0].p_holm is None
    assert found[0].interval is not None
    assert found[1].p_holm == found[1].p
    everything = score_slices(share_of(right), "accuracy", [np.arange(200)], 200)[0]
    assert (everything.p, everything.others) == (None, None)


def test_a_mean_is_tested_as_welch_would():
    rng = np.random.default_rng(2)
    values = rng.normal(1, 1, 600)
    values[:150] += 0.3
    found = score_slices(mean_of(values), "loss", [np.arange(150)], 600)[0]
    oracle: Any = stats.ttest_ind(values[:150], values[150:], equal_var=False)
    assert np.log(found.p or 0) == pytest.approx(np.log(oracle.pvalue), rel=0.15)
    assert found.interval == pytest.approx(
        tuple(stats.t.interval(0.95, 149, values[:150].mean(), stats.sem(values[:150]))), abs=0.03
    )


def test_rows_that_depend_on_each_other_prove_less_of_a_slice():
    right = np.repeat(np.random.default_rng(3).random(60) < 0.7, 10)
    groups, own = np.repeat(np.arange(60), 10), np.arange(200)
    alone = score_slices(share_of(right), "accuracy", [own], 600)[0]
    together = score_slices(share_of(right), "accuracy", [own], 600, groups)[0]
    assert alone.p is not None
    assert together.p is not None
    assert together.p > 3 * alone.p


def test_a_slice_whose_rows_are_all_alike_is_not_certain():
    """Ten groups that are all wrong, where half of the others are, would be found by chance in 1 of 500 such slices."""
    right = np.repeat(np.arange(100) % 2 == 0, 4)
    right[:40] = False
    found = score_slices(share_of(right), "accuracy", [np.arange(40)], 400, np.arange(400) // 4)[0]
    assert found.p is not None
    assert 1e-4 < found.p < 0.01


def f1_of(actual, predicted):
    def family(rows):
        hits, there, found = (
            (values[rows]).astype(float) for values in (actual & predicted, actual, predicted)
        )  # fmt: skip
        return WeightedScores(lambda counts: {"f1": divide(2 * (counts @ hits), counts @ there + counts @ found)})

    return family


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["accuracy", "f1"])
def test_a_slice_is_called_worse_by_chance_in_one_search_of_twenty(monkeypatch, metric):
    from backend.statistics import slices

    monkeypatch.setattr(slices, "_DRAWS", 300)
    rng, alarms = np.random.default_rng(4), []
    for _ in range(400):
        actual, right = rng.random(400) < 0.4, rng.random(400) < 0.8
        parts = [np.flatnonzero(rng.integers(0, 5, 400) == 0) for _ in range(10)]
        family = share_of(right) if metric == "accuracy" else f1_of(actual, actual == right)
        alarms.append(min(one.p_holm or 1 for one in score_slices(family, metric, parts, 400)) < 0.05)
    assert np.mean(alarms) <= 0.075
