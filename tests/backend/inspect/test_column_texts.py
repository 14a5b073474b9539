"""The texts of any column: words, messages and translations too; held-out rows are spread and never learnt from."""

import json
from pathlib import Path

import pytest

from backend.contract.errors import InputError
from backend.inspect.column_texts import read_column_texts, read_text_column, text_of


@pytest.fixture
def lines(tmp_path):
    """Forty numbered lines of JSON with several kinds of columns."""
    rows = [
        {"text": f"row {n}", "words": ["a", f"b{n}"], "said": [{"role": "user", "content": "hi"}], "number": n}
        for n in range(40)
    ]
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def read(path, columns=None):
    return read_column_texts({"train": str(path)}, columns, path.parent)


def test_every_column_with_text_is_read_without_a_choice(lines):
    assert set(read(lines).columns) == {"text", "words", "said"}


def test_words_are_joined_and_messages_follow_each_other(lines):
    assert next(iter(read(lines, ["words"]))) == "a b0"
    assert (
        text_of([{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}])
        == "user\nhi\nassistant\nho"
    )


def test_held_out_rows_are_spread_and_not_learnt_from(lines):
    texts = read(lines, ["text"]).hold_out(0.1)
    measured = list(texts.held_out_texts())
    assert measured == ["row 0", "row 10", "row 20", "row 30"]
    assert not set(measured) & set(texts)
    assert len(list(texts)) == len(texts) == 36


def test_without_held_out_rows_the_first_are_measured(lines):
    texts = read(lines, ["text"])
    assert list(texts.held_out_texts()) == list(texts)


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [(["none"], "no column 'none'; the columns are"), (["number"], "'number' does not contain text")],
)
def test_a_wrong_column_is_refused_by_name(columns, sentence, lines):
    with pytest.raises(InputError, match=sentence):
        read(lines, columns)


def test_a_message_is_its_text_and_a_number_as_it_is_written(tmp_path: Path):
    path = tmp_path / "rows.jsonl"
    rows = [{"said": [{"role": "user", "content": "hi"}], "number": n, "ids": [1, n]} for n in range(3)]
    path.write_text("\n".join(map(json.dumps, rows)))
    assert next(read_text_column(str(path)).texts()) == "user\nhi"
    assert list(read_text_column(str(path), "number").texts()) == ["0", "1", "2"]
    with pytest.raises(InputError, match="'ids' does not contain text but list"):
        read_text_column(str(path), "ids")


def test_a_translation_is_a_column_of_texts(tmp_path: Path):
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"id": "1", "translation": {"en": "a house", "es": "una casa"}}) + "\n")
    found = read_text_column(str(path))
    assert (found.name, list(found.texts())) == ("translation", ["a house\nuna casa"])
