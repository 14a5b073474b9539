"""SQuAD JSON data as rows: a row a question, both versions, and refusals of what is something else."""

import json
from pathlib import Path

import pytest

from backend.contract.errors import InputError
from backend.contract.spec import DataSection
from backend.data.rows import Rows
from backend.data.sources.source import ReadOptions
from backend.data.sources.squad import Settings, Squad

FOLDER = Path(__file__).resolve().parents[2] / "data" / "squad"


def read(tmp_path: Path, *paths: Path, max_rows: int | None = None) -> Rows:
    data = DataSection(train=[str(path) for path in paths], max_rows=max_rows)
    rows = Squad(Settings()).read("train", data, ReadOptions(tmp_path / "cache"))
    assert rows is not None
    return rows


def test_every_question_is_a_row_in_the_order_of_the_file(tmp_path):
    rows = read(tmp_path, FOLDER / "validation.json")
    articles = json.loads((FOLDER / "validation.json").read_text(encoding="utf-8"))["data"]
    questions = [one for article in articles for paragraph in article["paragraphs"] for one in paragraph["qas"]]
    assert rows.table["id"].to_pylist() == [one["id"] for one in questions]
    assert rows.table.column_names == ["id", "title", "context", "question", "answers"]
    assert rows.place(2) == "validation.json:3"


def test_answers_keep_their_texts_and_offsets(tmp_path):
    rows = read(tmp_path, FOLDER / "train.json")
    for row in rows.table.to_pylist():
        for text, start in zip(row["answers"]["text"], row["answers"]["answer_start"], strict=True):
            assert row["context"][start : start + len(text)] == text


def test_version_2_tells_impossible_questions_and_takes_no_plausible_answer(tmp_path):
    table = read(tmp_path, FOLDER / "impossible.json").table
    assert table["is_impossible"].to_pylist() == [False, True, False, False, True]
    assert table["answers"][1].as_py() == {"text": [], "answer_start": []}


def test_both_versions_are_read_together(tmp_path):
    rows = read(tmp_path, FOLDER / "train.json", FOLDER / "impossible.json")
    assert len(rows) == 35
    assert rows.table["is_impossible"].to_pylist()[:30] == [False] * 30
    assert rows.place(31) == "impossible.json:2"


def test_only_as_many_rows_as_asked_for_are_read(tmp_path):
    assert len(read(tmp_path, FOLDER / "train.json", FOLDER / "impossible.json", max_rows=31)) == 31


def test_questions_without_answers_can_be_read_to_predict(tmp_path):
    path = tmp_path / "new.json"
    question = {"id": 7, "question": "Who?"}
    path.write_text(json.dumps({"data": [{"paragraphs": [{"context": "Ada.", "qas": [question]}]}]}), encoding="utf-8")
    table = Squad(Settings()).read_file(path, DataSection(), ReadOptions(tmp_path / "cache")).table
    assert table.to_pylist() == [{"id": "7", "title": "", "context": "Ada.", "question": "Who?", "answers": None}]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ('{"data": [', r"mine\.json is not valid JSON \(input data was truncated\); download it again"),
        ("id,question\n1,Who?\n", r"mine\.json is not valid JSON"),
        ('{"rows": []}', r"not SQuAD JSON.*missing required field `data`.*data\.source: files"),
        ('[{"question": "Who?"}]', r"not SQuAD JSON.*expected `object`, got `array`"),
        (
            '{"data": [{"paragraphs": [{"qas": []}]}]}',
            r"missing required field `context`.*\$\.data\[0\]\.paragraphs",
        ),
        ('{"data": []}', r"mine\.json has no questions"),
    ],
    ids=["cut short", "a table", "another object", "a list", "without context", "no question"],
)
def test_other_content_is_refused_in_one_sentence(tmp_path, content, sentence):
    path = tmp_path / "mine.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=sentence) as caught:
        read(tmp_path, path)
    assert str(caught.value).startswith("data.train: ")
    assert "\n" not in str(caught.value)
    assert [one for one in (tmp_path / "cache").glob("*") if one.suffix != ".lock"] == []


def test_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match="nowhere"):
        read(tmp_path, tmp_path / "nowhere.json")
