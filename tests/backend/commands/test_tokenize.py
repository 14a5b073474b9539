"""`burnish tokenize` does from a terminal what the page does: texts, windows, batches, chats, steps, ids and pieces."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from backend.__main__ import main
from backend.contract.resources import resource

BERT_TINY = str(resource("demo", "bert-tiny"))
GPT2 = str(resource("demo", "austen-gpt2"))


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]):
    """What `burnish tokenize … --json` prints."""

    def call(*arguments: str) -> dict[str, Any]:
        assert main(["tokenize", *arguments, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    return call


def test_json_has_every_column_of_the_tokens(told):
    found = told(BERT_TINY, "--text", "Naïve film")
    assert found["ids"] == [101, 15743, 2143, 102]
    assert found["offsets"] == [[0, 0], [0, 5], [6, 10], [0, 0]]
    assert found["byte_offsets"] == [[0, 0], [0, 6], [7, 11], [0, 0]]
    assert found["word_ids"] == [None, 0, 1, None]
    assert found["attention_mask"] == [1, 1, 1, 1]


def test_options_of_encoding_are_taken(told):
    found = told(BERT_TINY, "--text", "a b c", "--pair", "d", "--max-length", "8", "--padding", "max_length")
    assert found["type_ids"] == [0, 0, 0, 0, 0, 1, 1, 0]
    assert found["attention_mask"] == [1] * 7 + [0]
    found = told(BERT_TINY, "--text", "a b c d", "--max-length", "4", "--windows", "--stride", "1")
    assert found["windows"] == [0] * 4 + [1] * 4 + [2] * 4
    assert told(GPT2, "--text", "house", "--option", "add_prefix_space=true")["pieces"][0].startswith("Ġ")


def test_a_text_is_read_from_stdin(told, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a film")))
    assert told(BERT_TINY, "--stdin")["ids"] == [101, 1037, 2143, 102]


def test_several_lists_of_ids_are_decoded(told):
    found = told(BERT_TINY, "--ids", "101,", "2143", "--ids", "[2143, -100, 999999]", "--skip-special")
    assert found["texts"] == ["film", "film⟨no token -100⟩⟨no token 999999⟩"]
    assert found["rows"][1]["missing"] == {"places": [1, 2], "ids": [-100, 999999]}


def test_ids_that_do_not_exist_are_named_beside_the_text(capsys: pytest.CaptureFixture[str]):
    assert main(["tokenize", BERT_TINY, "--ids", "2143", "999999"]) == 0
    said = capsys.readouterr()
    assert said.out == "film⟨no token 999999⟩\n"
    assert "no token 999999" in said.err


def test_pieces_become_text(told):
    assert told(BERT_TINY, "--pieces", "un", "##ing", "abcx")["unknown"] == [2]


def test_lines_are_a_padded_batch(told, tmp_path: Path):
    path = tmp_path / "lines.txt"
    path.write_text("a film\nfilm\n", encoding="utf-8")
    found = told(BERT_TINY, "--file", str(path), "--lines")
    assert found["ids"] == [[101, 1037, 2143, 102], [101, 2143, 102, 0]]
    assert found["attention_mask"] == [[1, 1, 1, 1], [1, 1, 1, 0]]
    assert told(BERT_TINY, "--file", str(path), "--lines", "--output", str(tmp_path / "x.arrow"))["rows"] == 2


def test_lines_end_where_those_of_a_file_do(told, tmp_path: Path):
    path = tmp_path / "lines.txt"
    path.write_text("a film\u2028of\r\n\nseven\x0cwords\n", encoding="utf-8", newline="")
    found = told(BERT_TINY, "--file", str(path), "--lines")
    written = told(BERT_TINY, "--file", str(path), "--lines", "--output", str(tmp_path / "x.arrow"))
    assert found["rows"] == written["rows"] == 3
    assert sum(map(sum, found["attention_mask"])) == written["tokens"]


def test_counts_are_those_of_all_tokens(told, tmp_path: Path):
    path = tmp_path / "text.txt"
    path.write_text("a film\r\nof 🦊\n" * 500, encoding="utf-8", newline="")
    counts, whole = told(BERT_TINY, "--file", str(path), "--counts"), told(BERT_TINY, "--file", str(path))
    assert counts["tokens"] == len(whole["ids"]) == 2002
    assert (counts["unknown"], counts["words"]) == (500, 2000)


@pytest.mark.parametrize(
    "option", [("--max-length", "8"), ("--pair", "of"), ("--padding", "longest"), ("--pre-split",)]
)
def test_a_file_that_is_counted_as_a_text_is_read(told, tmp_path: Path, option: tuple[str, ...]):
    path = tmp_path / "text.txt"
    path.write_text("a film of seven words and more", encoding="utf-8")
    counts, whole = (
        told(BERT_TINY, "--file", str(path), "--counts", *option),
        told(BERT_TINY, "--file", str(path), *option),
    )
    assert counts["tokens"] == len(whole["ids"]) > 4


def test_a_chat_is_written_out(told):
    messages = '[{"role": "user", "content": "Hello"}]'
    found = told(GPT2, "--messages", messages, "--generation-prompt")
    assert found["sources"] == ["User: Hello\nAssistant:"]


def test_steps_are_printed_for_people(capsys: pytest.CaptureFixture[str]):
    assert main(["tokenize", GPT2, "--text", "unbelievable", "--steps"]) == 0
    printed = capsys.readouterr().out
    assert "unbelievable → un belie v able" in printed
    assert "merge 36: l + e" in printed


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--ids", "12", "film"], "'film' is not an ID"),
        (["--text", "a", "--option", "add_prefix_space"], "give NAME=VALUE"),
        (["--text", "a", "--option", "do_lower_cas=true"], "did you mean do_lower_case"),
        (["--messages", "[1]"], "this is not a chat"),
        (["--text", "a", "--output", "x.arrow"], "give --lines and --file too"),
        (["--text", "a", "--windows"], "windows require a max_length"),
        (["--file", "nowhere.txt"], "No such file"),
    ],
)
def test_what_cannot_be_used_is_one_sentence(capsys: pytest.CaptureFixture[str], arguments: list[str], words: str):
    assert main(["tokenize", BERT_TINY, *arguments]) == 2
    said = capsys.readouterr()
    assert words in said.err
    assert said.err.count("\n") == 1
