"""Labels as words, whatever the table holds them as."""

import numpy as np
import pyarrow as pa

from backend.data.rows import Rows
from backend.tasks._labels import as_words
from backend.tasks.text_classification import Settings, TextClassification

NUMBERS = pa.chunked_array([pa.array([0.0, float("nan")], from_pandas=False), pa.array([None, 1.0])])


def test_whole_numbers_lose_their_point_and_nan_is_no_label() -> None:
    assert as_words(NUMBERS).to_pylist() == ["0", "", "", "1"]


def test_fractions_stay() -> None:
    assert as_words(pa.chunked_array([pa.array([0.5, 1.0])])).to_pylist() == ["0.5", "1"]


def test_rows_whose_label_is_nan_are_left_out() -> None:
    table = pa.table({"text": ["a", "b", "c", "d"], "label": NUMBERS})
    rows = Rows(table, ("a.parquet",), np.zeros(4, np.int32), np.arange(4), "f")
    found = TextClassification(Settings()).unusable(rows, {"text": "text", "label": "label"}, "training")
    assert found == [(1, "no label"), (2, "no label")]
