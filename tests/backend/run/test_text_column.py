"""One column of texts is found and read whatever its cells are: texts, words, messages or translations."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from backend.contract.errors import InputError
from backend.run.text_column import read_text_column


def test_a_message_is_its_text_and_a_number_as_it_is_written(tmp_path: Path):
    path = tmp_path / "rows.jsonl"
    rows = [{"said": [{"role": "user", "content": "hi"}], "number": n, "ids": [1, n]} for n in range(3)]
    path.write_text("\n".join(map(json.dumps, rows)))
    assert next(read_text_column(str(path)).texts()) == "user\nhi"
    assert list(read_text_column(str(path), "number").texts()) == ["0", "1", "2"]
    with pytest.raises(InputError, match="'ids' holds no text but list"):
        read_text_column(str(path), "ids")


@pytest.mark.parametrize(
    "kind", [pa.large_string(), pa.large_list(pa.string()), pa.dictionary(pa.int32(), pa.string())]
)
def test_the_longest_texts_are_found_in_any_type(kind: pa.DataType, tmp_path: Path):
    long = ["a long sentence", "another one"] if not pa.types.is_large_list(kind) else [["a", "long"], ["list"]]
    table = pa.table({"id": ["1", "2"], "sentence": pa.array(long, kind)})
    pq.write_table(table, tmp_path / "rows.parquet")
    assert read_text_column(str(tmp_path / "rows.parquet")).name == "sentence"
