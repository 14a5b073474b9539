"""Intervals of metrics: each family drawn again equals its score, and intervals cover what they should."""

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from backend.metrics.metric import Predictions, measure, metrics_of, weighted_scores
from backend.statistics import resampling
from backend.statistics.resampling import find_group_column, group_numbers, intervals, wilson

WORDS = ["the cat sat on the mat", "a dog ran home", "it rains in the north today", "who knows", "two\nlines of it"]
TAGS = ["O O B-PER I-PER", "B-LOC O O B-PER", "O O O O", "B-PER I-PER I-PER O", "I-LOC I-LOC O B-ORG"]


def drawn_words(rng, choices, rows=40):
    return [choices[place] for place in rng.integers(0, len(choices), rows)]


def losses(rng, rows=40):
    return {"loss": (rng.random(rows), rng.integers(1, 5, rows).astype(float))}


def classification(rng, labels):
    table = {"actual": drawn_words(rng, labels), "prediction": drawn_words(rng, labels)}
    return "text_classification", Predictions(pa.table(table), losses(rng)), {"labels": labels}, None


def tags(rng, scheme, *, strict=False):
    table = {"actual": drawn_words(rng, TAGS), "prediction": drawn_words(rng, TAGS)}
    facts, settings = {"scheme": scheme}, SimpleNamespace(strict_entities=strict)
    return "token_classification", Predictions(pa.table(table), losses(rng)), facts, settings


def numbers(rng):
    actual = rng.integers(0, 6, 40).astype(float)
    table = {"actual": actual, "prediction": np.round(actual + rng.normal(0, 2, 40))}
    return "text_regression", Predictions(pa.table(table), losses(rng)), {}, None


def choices(rng):
    known = np.ones(40)
    sums = {"loss": (rng.random(40), known), "accuracy": (rng.integers(0, 2, 40).astype(float), known)}
    return "multiple_choice", Predictions(pa.table({"actual": np.arange(40)}), sums), {}, None


def answers(rng):
    known, has = np.ones(40), rng.integers(0, 2, 40).astype(float)
    right, f1 = rng.integers(0, 2, 40).astype(float), rng.random(40)
    sums = {
        "exact_match": (right, known),
        "f1": (f1, known),
        "f1_HasAns": (f1 * has, has),
        "f1_NoAns": (f1 * (1 - has), 1 - has),
    }
    return "question_answering", Predictions(pa.table({"actual": ["x"] * 40}), sums), {}, None


def texts(rng):
    table = {"actual": drawn_words(rng, WORDS), "prediction": drawn_words(rng, WORDS)}
    sums = losses(rng)
    sums["accuracy"] = np.minimum(sums["loss"][1], 1), sums["loss"][1]
    return "seq2seq_lm", Predictions(pa.table(table), sums), {}, SimpleNamespace(bleu_words="auto")


CASES = {
    "two labels": lambda rng: classification(rng, ["no", "yes"]),
    "four labels, one of them unused": lambda rng: (
        (*classification(rng, ["a", "b", "c", "d"])[:2], {"labels": list("abcde")}, None)
    ),
    "entities": lambda rng: tags(rng, "BIO"),
    "entities, strict": lambda rng: tags(rng, "BIO", strict=True),
    "tags": lambda rng: tags(rng, "none"),
    "numbers": numbers,
    "choices": choices,
    "answers": answers,
    "texts": texts,
}


@pytest.mark.parametrize("case", CASES)
def test_a_drawn_score_is_the_score_of_the_drawn_rows(case):
    rng = np.random.default_rng(1)
    task, predictions, facts, settings = CASES[case](rng)
    metrics = metrics_of(task)
    counts = rng.multinomial(40, np.full(40, 1 / 40), 5)
    families = weighted_scores(metrics, predictions, facts, settings)
    found = {name: values for one in families.values() for name, values in one.scores(counts.astype(float)).items()}
    for place, rows in enumerate(counts):
        wanted = measure(metrics, predictions.take(np.repeat(np.arange(40), rows)), facts, settings)
        wanted = {name: value for name, value in wanted.items() if not name.startswith("best_")}
        assert {name: found[name][place] for name in wanted} == pytest.approx(wanted, abs=1e-9)


def test_wilson_is_the_published_interval():
    # R. G. Newcombe, Statistics in Medicine 17, 1998, table I: 81 of 263
    assert wilson(np.arange(263) < 81) == pytest.approx((0.2553, 0.3662), abs=5e-5)


def test_an_interval_is_the_one_that_scipy_draws():
    rng = np.random.default_rng(2)
    task, predictions, facts, settings = numbers(rng)
    own = intervals(weighted_scores(metrics_of(task), predictions, facts, settings).values(), 40)["pearson"]
    pair = [predictions.table[name].to_numpy() for name in ("actual", "prediction")]
    drawn = stats.bootstrap(
        pair, lambda one, other, axis: stats.pearsonr(one, other, axis=axis).statistic, paired=True, vectorized=True,
        method="percentile", n_resamples=4000, rng=3,
    )  # fmt: skip
    assert own == pytest.approx(tuple(drawn.confidence_interval), abs=0.02)


def coverage(interval_of, truth, draws, seed=4):
    rng = np.random.default_rng(seed)
    hits = [low <= truth <= high for low, high in (interval_of(rng) for _ in range(draws))]
    return np.mean(hits)


def of_labels(metric, rows):
    """Intervals of a model that finds 80 % of the label `b`, a third of the rows, and 90 % of `a`."""

    def interval(rng):
        actual = rng.random(rows) < 1 / 3
        predicted = np.where(actual, rng.random(rows) < 0.8, rng.random(rows) < 0.1)
        table = pa.table(
            {name: np.where(values, "b", "a") for name, values in (("actual", actual), ("prediction", predicted))}
        )
        families = weighted_scores(metrics_of("text_classification"), Predictions(table), {"labels": ["a", "b"]}, None)
        return intervals(families.values(), rows)[metric]

    return interval


def of_correlated_groups(grouped):
    """Intervals of the share of right rows, if the ten rows of a group are all right or all wrong."""

    def interval(rng):
        right = np.repeat(rng.random(60) < 0.7, 10)
        table = pa.table({"actual": ["a"] * 600, "prediction": np.where(right, "a", "b")})
        groups = np.repeat(np.arange(60), 10) if grouped else None
        families = weighted_scores(metrics_of("text_classification"), Predictions(table), {"labels": ["a", "b"]}, None)
        return intervals(families.values(), 600, groups)["accuracy"]

    return interval


TRUE_F1 = 2 * 0.8 / 3 / (0.8 / 3 + 0.2 / 3 + 1 / 3)


@pytest.mark.slow
@pytest.mark.parametrize(("metric", "truth"), [("accuracy", 0.8 / 3 + 0.6), ("f1", TRUE_F1), ("recall", 0.8)])
def test_intervals_of_400_rows_cover_the_truth_19_times_in_20(metric, truth, monkeypatch):
    monkeypatch.setattr(resampling, "RESAMPLES", 1000)
    assert 0.93 <= coverage(of_labels(metric, 400), truth, 2000) <= 0.97


@pytest.mark.slow
def test_intervals_of_correlations_cover_the_truth_19_times_in_20(monkeypatch):
    monkeypatch.setattr(resampling, "RESAMPLES", 1000)

    def interval(rng):
        actual = rng.normal(size=400)
        table = pa.table({"actual": actual, "prediction": 0.8 * actual + 0.6 * rng.normal(size=400)})
        return intervals(weighted_scores(metrics_of("text_regression"), Predictions(table), {}, None).values(), 400)[
            "pearson"
        ]

    assert 0.93 <= coverage(interval, 0.8, 2000) <= 0.97


def test_rows_that_depend_on_each_other_are_drawn_together(monkeypatch):
    monkeypatch.setattr(resampling, "RESAMPLES", 500)
    assert coverage(of_correlated_groups(grouped=True), 0.7, 100) >= 0.88
    assert coverage(of_correlated_groups(grouped=False), 0.7, 100) <= 0.6


def test_few_rows_have_only_intervals_of_shares():
    task, predictions, facts, settings = classification(np.random.default_rng(5), ["no", "yes"])
    few = predictions.take(np.arange(5))
    assert set(intervals(weighted_scores(metrics_of(task), few, facts, settings).values(), 5)) == {
        "accuracy",
        "precision",
        "recall",
    }


def drawn_intervals(table, labels, rows):
    families = weighted_scores(
        metrics_of("text_classification"), Predictions(pa.table(table)), {"labels": labels}, None
    )
    return intervals(families.values(), rows)


def test_a_rare_label_that_a_draw_misses_is_no_mistake():
    labels = [f"label {number}" for number in range(40)]
    actual = labels * 2
    low, high = drawn_intervals({"actual": actual, "prediction": ["label 1", *actual[1:]]}, labels, 80)["f1_macro"]
    assert low > 0.9
    assert high > 0.97


def test_a_rare_tag_that_a_draw_misses_is_no_mistake():
    actual = [f"tag{number} rest" for number in range(20)]
    table = pa.table({"actual": actual, "prediction": ["rest rest", *actual[1:]]})
    families = weighted_scores(metrics_of("token_classification"), Predictions(table), {"scheme": "none"}, None)
    assert intervals(families.values(), 20)["f1"][0] > 0.75


def test_a_metric_that_is_the_same_in_every_draw_has_only_the_interval_of_a_share():
    found = drawn_intervals({"actual": ["a", "b"] * 6, "prediction": ["a", "b"] * 6}, ["a", "b"], 12)
    assert set(found) == {"accuracy", "precision", "recall"}


def test_a_loss_that_is_no_number_has_no_interval():
    loss = {"loss": (np.array([np.nan, *[1.0] * 19]), np.ones(20))}
    table = pa.table({"actual": ["a", "b"] * 10, "prediction": ["a"] * 20})
    families = weighted_scores(
        metrics_of("text_classification"), Predictions(table, loss), {"labels": ["a", "b"]}, None
    )
    assert "loss" not in intervals(families.values(), 20)


def test_all_families_are_computed_from_one_draw(monkeypatch):
    monkeypatch.setattr(resampling, "_MOST", 1_000_000)
    monkeypatch.setattr(resampling, "_MOST_SLOW", 400_000)
    monkeypatch.setattr(resampling, "_DRAWN", 300_000)
    drawn, counts_of = [], lambda name: lambda counts: drawn.append((name, counts.sum())) or {name: counts[:, 0]}
    slow = resampling.WeightedScores(counts_of("slow"), is_sum=False)
    found = resampling.bootstrap([resampling.WeightedScores(counts_of("quick")), slow], 100)
    assert {name: len(values) for name, values in found.items()} == {"quick": 10_000, "slow": 4_000}
    assert np.array_equal(found["quick"][:4_000], found["slow"])
    assert drawn[:2] == [("quick", drawn[0][1]), ("slow", drawn[0][1])]


def test_drawing_ends_when_a_check_raises(monkeypatch):
    monkeypatch.setattr(resampling, "_DRAWN", 20_000)
    checks = iter([None, None])
    ones = np.ones(20)
    with pytest.raises(StopIteration):
        intervals(
            [resampling.WeightedScores(resampling.ratios({"loss": (ones, ones)}))], 20, None, lambda: next(checks)
        )


def test_a_group_column_is_the_context_or_one_named_so():
    rows = {"text": [str(number) for number in range(40)], "Doc_ID": [number // 2 for number in range(40)]}
    assert find_group_column(pa.table(rows), None) == "Doc_ID"
    assert (
        find_group_column(pa.table(rows | {"context": [number // 4 for number in range(40)]}), "context") == "context"
    )
    assert find_group_column(pa.table(rows | {"Doc_ID": list(range(40))}), None) is None
    assert find_group_column(pa.table(rows | {"Doc_ID": [1] * 40}), None) is None


def test_lists_and_tables_are_groups_too():
    each = [number // 2 for number in range(40)]
    for values in (
        [[one] for one in each],
        [{"id": one} for one in each],
        pa.array(map(str, each)).dictionary_encode(),
    ):
        assert find_group_column(pa.table({"document": values}), None) == "document"
        assert group_numbers(pa.chunked_array([values])).tolist() == group_numbers(pa.chunked_array([each])).tolist()


def test_a_missing_group_is_a_group_of_its_own():
    numbers = group_numbers(pa.chunked_array([["b", None, "a"], ["b", None]]))
    assert len(set(numbers.tolist())) == 3
    assert numbers[0] == numbers[3]
    assert numbers[1] == numbers[4]
