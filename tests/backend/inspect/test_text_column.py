"""One column of texts is found and read whatever its cells are: texts, words, messages or translations."""

import json
from pathlib import Path

import pytest

from backend.contract.errors import InputError
from backend.inspect.text_column import read_text_column


def test_a_message_is_its_text_and_a_number_as_it_is_written(tmp_path: Path):
    path = tmp_path / "rows.jsonl"
    rows = [{"said": [{"role": "user", "content": "hi"}], "number": n, "ids": [1, n]} for n in range(3)]
    path.write_text("\n".join(map(json.dumps, rows)))
    assert next(read_text_column(str(path)).texts()) == "user\nhi"
    assert list(read_text_column(str(path), "number").texts()) == ["0", "1", "2"]
    with pytest.raises(InputError, match="'ids' holds no text but list"):
        read_text_column(str(path), "ids")


def test_a_translation_is_a_column_of_texts(tmp_path: Path):
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"id": "1", "translation": {"en": "a house", "es": "una casa"}}) + "\n")
    found = read_text_column(str(path))
    assert (found.name, list(found.texts())) == ("translation", ["a house\nuna casa"])
