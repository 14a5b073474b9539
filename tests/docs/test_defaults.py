"""How the results of untouched defaults are scored and written down: known intervals, rules, and rows kept apart."""

from typing import Any

import numpy as np
import pytest

from docs.results import defaults
from docs.results.defaults import ACCURACY, PEARSON, PERPLEXITY, SUBJECTS, TAGS, TRIPLES


def figures(score: float, low: float, high: float, rule: float) -> dict[str, Any]:
    found = {"score": score, "low": low, "high": high, "rule": rule}
    return {**found, "rows": 9, "learning_rate": 1e-4, "epochs": 3.0, "batch_size": 8}


def test_the_interval_of_an_accuracy_is_that_of_a_binomial():
    rows = [{"prediction": "a", "actual": "a" if number < 240 else "b"} for number in range(300)]
    found = ACCURACY.of(rows)
    half = 1.96 * (0.8 * 0.2 / 300) ** 0.5
    assert found["score"] == pytest.approx(0.8)
    assert (found["low"], found["high"]) == pytest.approx((0.8 - half, 0.8 + half), abs=0.01)


def test_a_correlation_from_sums_is_the_usual_one():
    rng = np.random.default_rng(1)
    x = rng.normal(size=50)
    y = x + rng.normal(size=50)
    rows = [{"prediction": float(one), "actual": float(other)} for one, other in zip(x, y, strict=True)]
    assert PEARSON.of(rows)["score"] == pytest.approx(np.corrcoef(x, y)[0, 1])


def test_a_perplexity_weighs_rows_by_their_tokens():
    rows = [{"loss": 1.0, "tokens": 3}, {"loss": 5.0, "tokens": 1}, {"loss": None, "tokens": 0}]
    assert PERPLEXITY.of(rows)["score"] == pytest.approx(np.exp(2.0))


def test_names_are_counted_whole():
    rows = [{"prediction": "B-PER I-PER O B-LOC", "actual": "B-PER I-PER O O"}, {"prediction": "O", "actual": "B-LOC"}]
    assert TAGS.of(rows)["score"] == pytest.approx(0.5)  # one of two found, one of two right


@pytest.mark.parametrize(
    ("subject", "low", "high", "rule", "better"),
    [
        ("sentiment", 0.55, 0.65, 0.5, "yes"),
        ("sentiment", 0.45, 0.65, 0.5, "**no**"),
        ("verses", 80.0, 90.0, 95.0, "yes"),
        ("verses", 80.0, 96.0, 95.0, "**no**"),
    ],
)
def test_better_means_the_whole_interval(subject: str, low: float, high: float, rule: float, better: str):
    triple = next(triple for triple in TRIPLES if triple.subject == subject)
    lines = defaults.section({triple.key: figures((low + high) / 2, low, high, rule)})
    [line] = [line for line in lines if "bert-tiny |" in line or "austen-gpt2 |" in line]
    assert f"| {better} |" in line


@pytest.mark.parametrize("name", SUBJECTS)
def test_what_is_measured_on_is_not_trained_on(name: str):
    train, test = SUBJECTS[name].splits(1000)
    assert len(train) > 500
    assert len(test) >= 40
    assert not {str(row) for row in train if any(row.values())} & {str(row) for row in test if any(row.values())}
