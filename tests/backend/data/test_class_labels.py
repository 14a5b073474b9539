"""Labels that a data set numbers: their names, and the order of these."""

from pathlib import Path

import datasets
import numpy as np
import pytest

from backend.data.formats.class_labels import names_in_order
from backend.data.rows import Rows

NAMES = ["not_equivalent", "equivalent"]


@pytest.fixture
def rows(desk, tmp_path: Path) -> Rows:
    """Two labelled rows and a hidden one, as the hub has them."""
    features = datasets.Features(text=datasets.Value("string"), label=datasets.ClassLabel(names=NAMES))
    table = datasets.Dataset.from_dict({"text": ["a", "b", "c"], "label": [1, 0, -1]}, features=features)
    table.to_parquet(tmp_path / "mrpc.parquet")
    return desk.read(tmp_path / "mrpc.parquet")


def test_numbers_become_names_and_the_hidden_label_nothing(rows: Rows):
    assert rows.table["label"].to_pylist() == ["equivalent", "not_equivalent", None]


def test_names_keep_the_order_of_their_numbers(rows: Rows):
    assert names_in_order(rows.table.schema.field("label")) == NAMES


def test_some_of_the_rows_know_the_order_as_well(rows: Rows):
    some = rows.take(np.array([2, 0]), "some")
    assert names_in_order(some.table.schema.field("label")) == NAMES


def test_a_column_that_had_no_numbers_has_no_order(rows: Rows):
    assert names_in_order(rows.table.schema.field("text")) == []
