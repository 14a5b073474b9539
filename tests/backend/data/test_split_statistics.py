"""What the report on data counts: lengths as pandas describes them, labels, repeated rows, rows in both splits."""

import os
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from backend.contract.rpc.data import SplitReport
from backend.data.rows import Rows
from backend.data.split_statistics import SplitMeasure, summarise_counts, summarise_sorted


def rows_of(**columns: list) -> Rows:
    count = len(next(iter(columns.values())))
    return Rows(pa.table(columns), ("train.tsv",), np.zeros(count, np.int32), np.arange(count) + 2, "fingerprint")


@pytest.fixture
def measure(tmp_path: Path):
    """The report on one split's rows."""

    def call(rows: Rows, inputs: list[str] | None = None, targets: tuple[str, ...] = (), **options) -> SplitReport:
        one = SplitMeasure(
            rows,
            inputs or rows.table.column_names,
            options.get("count_tokens"),
            tmp_path,
            options.get("report", lambda done, total, unit: None),
        )
        try:
            return one.build_report({}, one.kinds(set(targets)), options.get("unusable", []), None)
        finally:
            one.close()

    return call


def test_spread_is_that_of_numpy_with_the_samples_deviation():
    lengths = np.random.default_rng(0).integers(1, 240, 1001)
    found = summarise_counts(Counter(lengths.tolist()))
    assert found is not None
    assert (found.mean, found.std) == pytest.approx((lengths.mean(), lengths.std(ddof=1)))
    assert [found.min, found.p50, found.p95, found.p99, found.p99_9, found.max] == pytest.approx(
        np.percentile(lengths, [0, 50, 95, 99, 99.9, 100])
    )


def test_sorted_numbers_and_counted_ones_are_spread_alike():
    lengths = [3, 1, 4, 1, 5, 9, 2, 6]
    assert summarise_sorted(np.sort(np.array(lengths, float))) == summarise_counts(Counter(lengths))


def test_single_number_has_no_deviation():
    found = summarise_counts(Counter([7]))
    assert found is not None
    assert (found.std, found.p99_9) == (None, 7)


def test_words_are_apart_by_white_space(measure):
    found = measure(rows_of(text=["one two  three", "four\nfive"])).columns["text"].words
    assert (found.min, found.max, found.mean) == (2, 3, 2.5)


def test_empty_cells_are_counted_and_have_no_length(measure):
    column = measure(rows_of(text=["one two", " ", None, ""])).columns["text"]
    assert (column.empty, column.words.count) == (3, 1)


def test_labels_have_counts_and_ratios_the_most_frequent_first(measure):
    column = measure(rows_of(label=["no", "yes", "yes", "yes"])).columns["label"]
    assert [(one.label, one.count, one.ratio) for one in column.labels] == [("yes", 3, 0.75), ("no", 1, 0.25)]


def test_column_of_labels_is_one_in_few_rows_too(measure):
    rows = rows_of(text=["a", "b"], label=["no", "yes"])
    assert measure(rows, targets=("label",)).columns["label"].kind == "label"
    assert measure(rows).columns["text"].kind == "text"


def test_tags_are_counted_in_lists_and_in_text(measure):
    tags = [["O", "O", "B-PER"]] * 10
    for column in (tags, [" ".join(one) for one in tags]):
        found = measure(rows_of(tags=column, number=list(range(10)))).columns["tags"]
        assert found.kind == "label"
        assert sum(one.count for one in found.labels) in (10, 30)  # equal cells are labels themselves


def test_different_sentences_of_few_tags_are_tags(measure):
    choice = np.random.default_rng(0)
    cells = [" ".join(choice.choice(["O", "B-PER", "I-PER"], 12)) for _ in range(300)]
    found = measure(rows_of(slot=cells)).columns["slot"]
    assert {one.label for one in found.labels} == {"O", "B-PER", "I-PER"}


def test_scores_are_numbers(measure):
    scores = np.linspace(0, 5, 300).tolist()
    column = measure(rows_of(score=scores)).columns["score"]
    assert column.kind == "number"
    assert column.numbers.p50 == pytest.approx(2.5)


def test_repeated_rows_are_counted_by_their_inputs(measure):
    rows = rows_of(text=["a", "b", "a", "a"], label=["1", "1", "2", "1"])
    by_text, by_both = measure(rows, ["text"]), measure(rows, ["text", "label"])
    assert (by_text.duplicates, by_both.duplicates) == (2, 1)
    assert by_text.first_duplicates == [["train.tsv:2", "train.tsv:4", "train.tsv:5"]]


def test_cells_do_not_run_into_each_other(measure):
    assert measure(rows_of(a=["x", "xy"], b=["yz", "z"])).duplicates == 0


def test_rows_of_the_training_data_are_found_in_another_split(tmp_path: Path):
    quiet = (None, tmp_path, lambda done, total, unit: None)
    train = SplitMeasure(rows_of(text=["a", "b", "c"]), ["text"], *quiet)
    other = SplitMeasure(rows_of(text=["c", "x", "a", "a"]), ["text"], *quiet)
    assert other.count_in(train) == 3
    train.close()
    other.close()


def test_tokens_are_counted_by_the_tokenizer_that_is_given(measure):
    column = measure(rows_of(text=["ab", "abcd", ""]), count_tokens=lambda texts: [len(text) for text in texts])
    assert (column.columns["text"].tokens.count, column.columns["text"].tokens.max) == (2, 4)


def test_reasons_of_unusable_rows_are_counted(measure):
    found = measure(
        rows_of(text=["a"]), unusable=[("x.csv:3", "no text"), ("x.csv:9", "no text"), ("x.csv:4", "no label")]
    )
    assert found.unusable_reasons == {"no text": 2, "no label": 1}
    assert found.first_unusable[0] == "x.csv:3: no text"


def test_nothing_is_left_on_the_disk(measure, tmp_path: Path):
    measure(rows_of(text=["a", "b"]))
    assert list(tmp_path.iterdir()) == []


def test_report_can_be_stopped(measure):
    def stop(done: int, total: int, unit: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure(rows_of(text=["a"]), report=stop)


@pytest.mark.skipif(os.name == "nt", reason="Windows counts open files otherwise")
def test_more_columns_than_files_may_be_open_are_measured(measure) -> None:
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    columns = {f"c{number}": [float(number), 1.5, 0.5] for number in range(400)}
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 300), hard))
    try:
        found = measure(rows_of(**columns))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert [column.numbers.max for column in found.columns.values()] == [max(values) for values in columns.values()]
