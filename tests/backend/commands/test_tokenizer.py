"""`burnish tokenizer vocab` and `compare` print what the window shows, and refuse what cannot be."""

import csv
import json
from pathlib import Path

import pytest

from backend.__main__ import main
from backend.contract.resources import resource

BERT, AUSTEN = (str(resource("demo", name)) for name in ("bert-tiny", "austen-gpt2"))


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict:
    assert main(["tokenizer", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out.splitlines()[-1])


@pytest.fixture
def reviews(tmp_path: Path) -> str:
    path = tmp_path / "reviews.csv"
    path.write_text("text,lang\nunbelievable film,en\nla casa,es\na film,en\n", encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("search", "expected"),
    [
        (["unbelievabl"], ["unbelievable"]),
        (["^un.*able$", "--regex"], 12),
        (["101-103", "--id"], ["[CLS]", "[SEP]", "[MASK]"]),
        (["sinhala", "--script"], 12),
        (["101-104", "--id", "--non-special"], ["[unused99]"]),
        (["101-104", "--id", "--type", "unused"], ["[unused99]"]),
    ],
)
def test_pieces_are_found(search: list[str], expected: list[str] | int, capsys):
    found = told(capsys, "vocab", BERT, "--search", *search)
    pieces = [one["piece"] for one in found["pieces"]]
    assert (len(pieces) if isinstance(expected, int) else pieces) == expected
    assert found["found"] == len(pieces)


def test_merges_are_shown_by_rank(capsys):
    merges = told(capsys, "vocab", AUSTEN, "--merges", "--limit", "2")["merges"]
    assert [(merge["rank"], merge["result"]) for merge in merges] == [(0, "he"), (1, "Ġt")]


def test_frequencies_are_counted_in_data(reviews: str, capsys):
    found = told(capsys, "vocab", BERT, "--data", reviews, "--sort", "frequency", "--descending", "--limit", "1")
    assert [(one["piece"], one["frequency"]) for one in found["pieces"]] == [("film", 2)]


def test_a_table_is_written(tmp_path: Path, capsys):
    output = tmp_path / "pieces.csv"
    assert main(["tokenizer", "vocab", BERT, "--search", "=", "--defuse", "--output", str(output)]) == 0
    with output.open(encoding="utf-8", newline="") as file:
        assert "'=" in [row["piece"] for row in csv.DictReader(file)]


def test_a_screen_shows_columns_and_how_many_there_are(capsys):
    assert main(["tokenizer", "vocab", BERT, "--search", "unbelievabl"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["id", "piece", "text", "length", "type", "script"]
    assert lines[-1] == "1 of 30,522 pieces (WordPiece)"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["vocab", BERT, "--merges"], "only a BPE has merges"),
        (["vocab", BERT, "--search", "(", "--regex"], "is not a valid regular expression"),
        (["vocab", BERT, "--search", "x", "--id"], "'x' is not an ID"),
        (["vocab", BERT, "--regex"], "give --search too"),
        (["vocab", BERT, "--sort", "frequency"], "'frequency' is not a column"),
        (["vocab", BERT, "--limit", "-1"], "-1 is not a number of rows"),
        (["compare", BERT, "--text", "a"], "2 to 4 can be compared"),
        (["compare", BERT, AUSTEN, "--text", "a", "--column", "b"], "give --data instead"),
    ],
)
def test_mistakes_are_told(arguments: list[str], sentence: str, capsys):
    assert main(["tokenizer", *arguments]) == 2
    assert sentence in capsys.readouterr().err


def test_a_text_is_compared_line_by_line(capsys):
    found = told(capsys, "compare", BERT, AUSTEN, "--text", "unbelievable\nold", "--no-special-tokens")
    first, second = found["tokenizers"]
    assert [token["piece"] for token in first["lines"][0]] == ["unbelievable"]
    assert [token["differs"] for token in second["lines"][1]] == [False]
    assert found["places"] == 1


def test_data_is_compared_by_language(reviews: str, capsys):
    found = told(capsys, "compare", BERT, AUSTEN, "--data", reviews, "--column", "text")
    assert found["total"]["rows"] == 3
    assert [(one["language"], one["rows"]) for one in found["languages"]] == [("en", 2), ("es", 1)]
    assert found["total"]["tokens_per_row"][0] == pytest.approx(found["total"]["tokens"][0] / 3, abs=1e-6)


def test_a_screen_shows_a_line_for_each_tokenizer(reviews: str, capsys):
    assert main(["tokenizer", "compare", BERT, AUSTEN, "--data", reviews]) == 0
    out = capsys.readouterr().out
    assert "en: 2 rows" in out
    assert "all: 3 rows" in out
