"""Tests that data reads at a glance, and that drops are put in place of the choice before."""

import pytest

from app.core.draft import data_messages, data_source
from backend.contract.rpc.data import (
    ColumnSummary,
    DataPreview,
    DataSummary,
    IgnoredFile,
    LengthSummary,
    NumberSummary,
    SplitSummary,
)

PREVIEW = DataPreview(
    columns=["text"],
    rows=[],
    row_count=2397,
    skipped_count=3,
    guessed_columns={},
    label_counts={"good": 1223, "bad": 1174},
)
SPREAD = NumberSummary(count=9, mean=12.5, std=3, min=1, p50=12, p95=26, p99=40, p99_9=60, max=62)
GLANCE = DataSummary(
    splits=[SplitSummary(split="train", rows=2157, unusable=5, repeated=1, empty={"text": 2}),
            SplitSummary(split="validation", rows=240)],
    lengths=LengthSummary(unit="tokens", rows=9, spread=SPREAD, limit=128, counts=[1, 8], width=31.0),
)  # fmt: skip


def plain(text: str) -> str:
    return text.replace("\u202f", " ")


def test_data_is_one_line_before_and_after_all_rows_were_seen():
    assert plain(data_messages.at_a_glance(PREVIEW, None)) == "2 400 rows · 2 labels (51 % / 49 %) · 3 unusable"
    assert plain(data_messages.at_a_glance(PREVIEW, GLANCE)) == (
        "2 400 rows · 2 labels (51 % / 49 %) · median 12 tokens · 5 unusable"
    )


def test_labels_count_only_rows_that_can_be_used():
    preview = DataPreview(
        columns=["text"], rows=[], row_count=292, skipped_count=0, guessed_columns={}, label_counts={"a": 150, "b": 142}
    )
    train = SplitSummary(split="train", rows=254, unusable=8, labels={"b": 130, "a": 124})
    taken_off = SplitSummary(split="validation", rows=30, labels={"a": 20, "b": 10})
    both = DataSummary(splits=[train, taken_off])
    assert data_messages.usable_labels(preview, None) == {"a": 150, "b": 142}
    assert data_messages.usable_labels(preview, both) == {"a": 144, "b": 140}
    alone = SplitSummary(split="train", rows=284, unusable=8, labels={"a": 144, "b": 140})
    assert data_messages.usable_labels(preview, DataSummary(splits=[alone, taken_off])) == {"a": 144, "b": 140}


def test_every_row_is_accounted_for():
    assert plain(data_messages.split_line(GLANCE)) == "2 157 for training, 240 for validation, 5 skipped."


def test_lengths_and_their_bars_are_said_with_the_limit():
    assert GLANCE.lengths is not None
    assert plain(data_messages.length_line(GLANCE.lengths)) == "Median 12, 95% within 26, longest 62 tokens; limit 128."
    assert data_messages.bin_words(GLANCE.lengths, 0) == "0 to 30 tokens: 1 row"
    assert data_messages.bin_words(GLANCE.lengths, 1) == "31 or more tokens: 8 rows"


def test_a_column_is_said_by_what_it_holds():
    look = ColumnSummary(name="stars", kind="whole numbers", rows=40, empty=2, distinct=5, examples=["1", "2"])
    assert data_messages.column_hint(look) == "whole numbers, 5 unique values in 40 rows, 2 empty; for example: 1 | 2"


def test_files_that_are_left_out_are_named():
    left = [IgnoredFile(f"{name}.md", "describes the data") for name in "abc"]
    assert data_messages.left_out_line(left) == (
        "Skipped: a.md (describes the data), b.md (describes the data) and 1 more."
    )
    assert data_messages.left_out_line([]) == ""


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("/a/b.csv", ["/a/b.csv"]),
        ("file:///a/with%20space.csv\n/c.csv\n", ["/a/with space.csv", "/c.csv"]),
        ("'/a;/b'", ["/a", "/b"]),
        ("C:\\data\\a.csv", ["C:\\data\\a.csv"]),
        ("https://huggingface.co/datasets/imdb", ["https://huggingface.co/datasets/imdb"]),
        ("a sentence about nothing", []),
        ("/a.csv\nand a sentence", []),
    ],
)
def test_paths_are_read_from_a_text_that_holds_nothing_else(text: str, paths: list[str]):
    assert data_source.paths_in_text(text) == paths


def test_a_drop_is_new_data_and_leaves_nothing_of_the_old():
    before = {
        "source": "conll",
        "train": "/old",
        "validation": "/old-dev",
        "test": "/old-test",
        "columns": {"tags": "ner"},
    }
    assert data_source.whole_choice(before, {"source": "files", "train": "/new"}, None) == {
        "source": "files", "train": "/new", "validation": 0.1
    }  # fmt: skip


def test_a_drop_on_one_split_leaves_the_others():
    before = {"source": "files", "train": "/old", "validation": 0.2, "format": "csv"}
    assert data_source.whole_choice(before, {"source": "files", "test": "/new"}, "test") == {**before, "test": "/new"}


def test_a_choice_is_set_rows_last_but_for_their_columns():
    data = {"source": "files", "train": "/a", "validation": 0.1, "columns": {"text": "x"}}
    assert list(data_source.data_changes(data).items()) == [
        ("data", {"source": "files", "validation": 0.1}), ("data.train", "/a"), ("data.columns", {"text": "x"})
    ]  # fmt: skip
