"""Predicted rows are cut into slices that people would name, and the worst are found."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from backend.contract.errors import InputError
from backend.contract.run.folder import RunFolder
from backend.helper.queries.predictions import read
from backend.inspect.slices import cluster_texts, cut, name_of, open_rows, report

ROWS = 400
TOPICS = {
    "food": ["soup", "bread", "cheese", "apple", "kitchen", "dinner", "salt", "cook"],
    "ships": ["harbour", "sail", "captain", "anchor", "wave", "deck", "storm", "crew"],
    "music": ["violin", "choir", "melody", "drum", "concert", "piano", "singer", "rhythm"],
}


def texts_of_topics(rng, rows=ROWS):
    topics = rng.integers(0, 3, rows)
    words = [list(TOPICS.values())[topic] for topic in topics]
    return topics, ["the " + " ".join(rng.choice(own, rng.integers(4, 12))) for own in words]


def write_run(folder, task, columns, table, labels=("a", "b"), **facts):
    run = RunFolder(folder)
    run.model.mkdir(parents=True)
    own = {"labels": list(labels), "max_length": 8, **facts}
    note = {"task": {"type": task}, "facts": own, "columns": columns, "step": 1}
    (run.model / "burnish.json").write_text(json.dumps(note))
    parquet.write_table(pa.table(table), run.predictions("validation", "parquet"))
    return open_rows(run, "validation", read)


@pytest.fixture(scope="module")
def classified(tmp_path_factory):
    """A model that often fails on texts about ships, and on nothing else in particular."""
    rng = np.random.default_rng(1)
    topics, texts = texts_of_topics(rng)
    actual = rng.choice(["a", "b"], ROWS)
    wrong = rng.random(ROWS) < np.where(topics == 1, 0.45, 0.1)
    table = {
        "id": list(range(ROWS)), "text": texts, "label": actual, "language": [("de", "en", None)[place] for place in rng.integers(0, 3, ROWS)],
        "stars": rng.normal(3, 1, ROWS), "urgent": rng.random(ROWS) < 0.5, "name": [f"person {row}" for row in range(ROWS)],
        "prediction": np.where(wrong, np.where(actual == "a", "b", "a"), actual), "actual": actual,
    }  # fmt: skip
    return write_run(
        tmp_path_factory.mktemp("slices") / "run", "text_classification", {"text": "text", "label": "label"}, table
    )


def test_rows_are_cut_by_length_label_columns_and_similar_texts(classified):
    found = cut(classified)
    by_column = {(one.by, one.column) for one in found}
    assert by_column == {
        ("length", "text"), ("label", "actual"), ("column", "language"), ("column", "stars"), ("column", "urgent"), ("cluster", ""),
    }  # fmt: skip
    for dimension in by_column:
        rows = np.concatenate([one.rows for one in found if (one.by, one.column) == dimension])
        assert sorted(rows.tolist()) == list(range(ROWS)), dimension
    assert {one.value for one in found if one.column == "language"} == {"de", "en", None}


def test_the_worst_slice_is_found_and_named_by_its_words(classified):
    found = report(classified)
    worst = found.slices[0]
    assert (found.metric, worst.by, worst.is_worse) == ("accuracy", "cluster", True)
    assert set((worst.value or "").split(", ")) <= set(TOPICS["ships"])
    assert worst.p_holm is not None
    assert worst.p is not None
    assert worst.p_holm == pytest.approx(min(1, worst.p * found.tested))
    worse = [one for one in found.slices if one.is_worse]
    assert all(set((one.value or "").split(", ")) <= set(TOPICS["ships"]) for one in worse)
    assert found.sentence == (
        f"{found.tested} slices were each compared with the other rows, with Holm's correction for that many: "
        f"{len(worse)} {'is' if len(worse) == 1 else 'are'} worse by more than chance"
    )
    assert [one.number for one in found.slices] != list(range(len(found.slices)))
    own = cut(classified)[worst.number]
    right = (classified.table["prediction"].to_numpy() == classified.table["actual"].to_numpy())[own.rows]
    assert worst.score == pytest.approx(right.mean())


def test_another_metric_can_be_asked_for_and_labels_are_left_out_where_they_mean_nothing(classified):
    found = report(classified, "f1_macro")
    assert found.metric == "f1_macro"
    assert {one.by for one in found.slices} == {"length", "column", "cluster"}
    with pytest.raises(InputError, match="choose one of accuracy"):
        report(classified, "bleu")


def test_rows_without_answers_have_no_slices(tmp_path):
    predicted = write_run(
        tmp_path / "run", "text_classification", {"text": "text"}, {"text": ["x"] * 40, "prediction": ["a"] * 40}
    )
    with pytest.raises(InputError, match="no known answers"):
        report(predicted)


@pytest.mark.parametrize("rows", [1, 5])
def test_few_rows_are_said_to_be_few(tmp_path, rows):
    table = {"text": [f"text {row}" * row for row in range(rows)], "label": ["a"] * rows}
    table |= {"prediction": ["a"] * rows, "actual": ["a"] * rows}
    found = report(
        write_run(tmp_path / "run", "text_classification", {"text": "text", "label": "label"}, table)
    )  # fmt: skip
    assert found.tested == 0
    assert found.sentence == "no slice has 30 rows, so none can be told from the others"
    assert all(one.is_few and not one.is_worse for one in found.slices)


def test_numbers_are_cut_by_what_they_are_of(tmp_path):
    rng = np.random.default_rng(2)
    actual = rng.normal(size=ROWS)
    noise = np.where(np.arange(ROWS) % 2, 0.1, 2.0)
    table = {
        "text": [f"text {row}" for row in range(ROWS)], "score": actual, "kind": np.where(noise > 1, "odd", "even"),
        "prediction": actual + noise * rng.normal(size=ROWS), "actual": actual,
    }  # fmt: skip
    found = report(write_run(tmp_path / "run", "text_regression", {"text": "text", "label": "score"}, table))
    assert found.metric in found.metrics
    assert name_of(found.slices[0]) == "kind: odd"
    assert found.slices[0].is_worse
    assert not [one for one in found.slices if one.by == "label"]


def test_tags_are_cut_by_the_number_of_words(tmp_path):
    rng = np.random.default_rng(3)
    words = [["Anna", *["ran"] * int(count)] for count in rng.integers(1, 9, ROWS)]
    actual = [" ".join(["B-PER", *["O"] * (len(row) - 1)]) for row in words]
    table = {
        "tokens": words, "prediction": [row if len(row) < 20 else row.replace("B-PER", "O") for row in actual],
        "actual": actual, "lost_words": [0] * ROWS,
    }  # fmt: skip
    columns = {"tokens": "tokens", "tags": "tags"}
    facts = {"scheme": "BIO", "tags": ["O", "B-PER"]}
    found = report(write_run(tmp_path / "run", "token_classification", columns, table, **facts))
    assert (found.slices[0].by, found.slices[0].is_worse) == ("words", True)
    assert found.slices[0].bounds == (8, 9)


def test_texts_without_spaces_are_clustered_by_pairs_of_letters():
    rng = np.random.default_rng(4)
    words = [["喜欢", "热茶", "咖啡", "早上", "面包", "牛奶"], ["火车", "明天", "北京", "出发", "飞机", "晚上"]]
    texts = ["".join(rng.choice(own, 5)) for own in words for _ in range(80)]
    labels, names = cluster_texts(texts)
    assert len(names) >= 2
    assert set(labels[:80]).isdisjoint(labels[80:])
    assert all(len(word) == 2 for name in names for word in name.split(", "))


@pytest.mark.parametrize(
    "texts", [[], ["same"] * 500, [""] * 500, ["!?", "…"] * 100, [f"w{row}" for row in range(500)]]
)
def test_texts_that_share_no_words_are_not_clustered(texts):
    labels, names = cluster_texts(texts)
    assert len(labels) == len(texts)
    assert len(names) <= 1


def test_rows_without_one_of_the_labels_are_not_compared_by_f1(tmp_path):
    actual = np.array(["a", "b", "c"] * 80)
    column = np.where(actual == "c", "later", np.where(np.arange(240) % 4 < 2, "early", "later"))
    table = {"text": [f"text {row}" for row in range(240)], "when": column, "prediction": actual, "actual": actual}
    predicted = write_run(tmp_path / "run", "text_classification", {"text": "text"}, table, labels=("a", "b", "c"))
    by_f1, by_accuracy = report(predicted, "f1_macro").slices, report(predicted, "accuracy").slices
    early, alike = (next(one for one in found if one.value == "early") for found in (by_f1, by_accuracy))
    assert (early.is_few, early.is_worse) == (True, False)
    assert not alike.is_few
