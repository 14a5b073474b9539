"""Answers about one text: short ones in one value, long ones and files in blocks, chats as their template writes them."""

import json
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import msgspec
import pytest

from app.services.backend_client import ArrowAnswer
from app.services.token_answers import token_table
from backend.contract.errors import InputError
from backend.contract.resources import resource
from backend.contract.tokens.options import TokenOptions
from backend.contract.tokens.tokens import TokenizeQuestion, Tokens
from backend.tokenizers import answers, long_text, tokenize, tokenize_file
from backend.tokenizers.loading import open_tokenizer
from backend.tokenizers.tokenize import describe

BERT_TINY = str(resource("demo", "bert-tiny"))
NOVEL = resource("demo", "austen") / "emma.txt"


@pytest.fixture(scope="module")
def bert_tiny():
    """The embedded model's, which answers leave as it is."""
    return open_tokenizer(BERT_TINY)


def silent(*_: object) -> None:
    """Nobody listens."""


def asked(tokenizer, **question) -> Tokens | dict[str, str]:
    return answers.answer_tokenize(tokenizer, TokenizeQuestion(tokenizer="", **question), silent)


def table_of(tokenizer, **question):
    answer = asked(tokenizer, **question)
    return token_table(ArrowAnswer(answer["arrow"]) if isinstance(answer, dict) else answer)


def test_many_tokens_come_as_a_file_that_says_the_same(bert_tiny):
    tokenizer = bert_tiny
    text = "good 🦊 morning " * 2000
    table = table_of(tokenizer, text=text)
    whole = tokenize.as_json(tokenize.tokenize(tokenizer, text))
    assert table.ids.tolist() == whole["ids"]
    assert [table.text(token) for token in range(len(table))] == whole["texts"]
    assert table.answer.tokens == len(table)


def test_a_file_is_tokenised_as_it_is_with_progress(bert_tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(long_text, "BLOCK", 20_000)
    path, tokenizer, told = tmp_path / "text.txt", bert_tiny, []
    text = "Zeile eins\r\nZeile zwei\r\n" * 3000
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    answer = answers.answer_tokenize(
        tokenizer, TokenizeQuestion(tokenizer="", file=str(path)), lambda *progress: told.append(progress)
    )
    assert isinstance(answer, dict)
    table = token_table(ArrowAnswer(answer["arrow"]))
    assert table.ids.tolist() == tokenizer(text, verbose=False)["input_ids"]
    assert table.answer.characters == len(text)
    assert table.answer.file_skip == 3
    assert len(told) > 1
    assert told[-1] == (path.stat().st_size, path.stat().st_size, "bytes")


def test_what_a_killed_writer_left_is_cleared_away(bert_tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    ended = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    left, own = tmp_path / f"burnish-{int(ended.stdout)}-x.part", tmp_path / f"burnish-{os.getpid()}-x.part"
    for path in (left, own):
        path.touch()
    table_of(bert_tiny, text="a " * 5000)
    assert [path.name for path in tmp_path.iterdir()] == [own.name]


@pytest.mark.parametrize(("content", "match"), [(b"a\xff", "not UTF-8"), (None, "no such file")])
def test_a_file_that_is_no_text_is_one_sentence(bert_tiny, tmp_path: Path, content: bytes | None, match: str):
    path = tmp_path / "text.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=match):
        asked(bert_tiny, file=str(path))


def test_a_long_text_takes_no_more_memory_than_a_short_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Python's own memory; that of the library is measured by tests/benchmarks/tokenizer_speed.py."""
    monkeypatch.setattr(long_text, "BLOCK", 20_000)
    tokenizer, peaks = open_tokenizer(BERT_TINY), []
    table_of(tokenizer, text="a " * 5000)  # what is loaded with the first question is no part of the text
    for times in (1, 4):
        path = tmp_path / f"{times}.txt"
        path.write_text(NOVEL.read_text(encoding="utf-8")[:40_000] * times, encoding="utf-8")
        tracemalloc.start()
        table_of(tokenizer, file=str(path))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.3 * peaks[0]


@pytest.mark.parametrize("text", ["a\0b", "\ud83d alone \udc00", "x" * 450_001, " " * 300_000, "́" * 5000])
def test_odd_texts_are_answered(byte_level: Path, text: str):
    for folder in (BERT_TINY, str(byte_level)):
        table = table_of(open_tokenizer(folder), text=text)
        assert table.answer.characters == len(text)
        assert len(table) >= 2 or folder != BERT_TINY


def test_lone_surrogates_are_replaced_and_told(bert_tiny):
    table = table_of(bert_tiny, text="\ud83d alone")
    assert table.answer.sources == ["\ufffd alone"]
    assert "lone surrogate" in table.answer.notes[0]


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"max_length": 2, "windows": True}, "stride: 0 must be less than the 0 tokens"),
        ({"max_length": 1}, "2 special tokens are added"),
        ({"max_length": 0}, "too small"),
        ({"max_length": 10**12, "padding": "max_length"}, "too long to pad to"),
        ({"pad_to_multiple_of": 10**12, "padding": "longest"}, "too long to pad to"),
        ({"windows": True}, "require a max_length"),
        ({"max_length": 8, "truncation": "only_second"}, "there is none"),
        ({"max_length": 8, "windows": True, "stride": 6}, "stride: 6"),
        (
            {"max_length": 9, "windows": True, "stride": 3, "truncation": "only_first", "pair": "a b c d"},
            "less than the 2",
        ),
        ({"max_length": 7, "padding": "max_length", "pad_to_multiple_of": 4}, "not a multiple of 4"),
        ({"max_length": 6, "truncation": "only_first", "pair": "many " * 9}, "only_first cannot truncate enough"),
    ],
)
def test_options_that_cannot_be_are_one_sentence(bert_tiny, options: dict, match: str):
    with pytest.raises(InputError, match=match):
        asked(bert_tiny, text="a film of note", **options)


def test_ranks_are_of_the_merges_and_probabilities_of_the_model(byte_level: Path, unigram: Path):
    table = table_of(open_tokenizer(str(byte_level)), text="the quick")
    stored = json.loads((byte_level / "tokenizer.json").read_text())["model"]["merges"]
    merged = [table.piece(number) for number in range(len(table)) if len(table.piece(number).piece) > 1]
    assert merged
    assert all("".join(stored[one.rank]) == one.piece for one in merged)
    vocabulary = json.loads((unigram / "tokenizer.json").read_text())["model"]["vocab"]
    table = table_of(open_tokenizer(str(unigram)), text="lazy dog")
    for number in range(len(table)):
        piece = table.piece(number)
        assert [piece.piece, piece.log_probability] == vocabulary[piece.id]


def test_what_does_not_come_back_is_shown_where_it_differs(bert_tiny):
    trip = table_of(bert_tiny, text="a Film").answer.round_trip
    assert not trip.same
    assert (trip.place, trip.text_part, trip.decoded_part) == (2, "a Film", "a film")


@pytest.mark.parametrize("place", [5, 12_000, 40_000])
def test_the_first_difference_of_a_long_text_is_found_wherever_it_is(unigram: Path, place: int):
    text = ("fox " * 10_001).strip()
    trip = table_of(open_tokenizer(str(unigram)), text=text[:place] + "⚙" + text[place:]).answer.round_trip
    assert (trip.same, trip.place) == (False, place)
    assert trip.text_part[trip.place - trip.part_place] == "⚙"
    assert table_of(open_tokenizer(str(unigram)), text=text).answer.round_trip.same


def test_an_unknown_word_is_counted_and_a_written_unknown_token_is_not(bert_tiny):
    answer = table_of(bert_tiny, text="🦊 [UNK] fox").answer
    assert answer.unknown == 1


def test_stride_windows_share_tokens_and_count_the_text_once(bert_tiny):
    table = table_of(bert_tiny, text="a b c d e f g", max_length=5, windows=True, stride=1)
    assert table.columns["window"].tolist() == [0] * 5 + [1] * 5 + [2] * 5
    assert (table.answer.windows, table.answer.text_tokens, table.answer.left_out) == (3, 7, 0)
    assert table_of(bert_tiny, text="a b c d e f g", max_length=5).answer.left_out == 4


def test_rows_in_bulk_are_those_of_the_library(byte_level: Path, tmp_path: Path):
    import pyarrow as pa

    lines = NOVEL.read_text(encoding="utf-8").splitlines()[:3000]
    source, target, tokenizer = tmp_path / "rows.txt", tmp_path / "rows.arrow", open_tokenizer(str(byte_level))
    source.write_text("\n".join(lines), encoding="utf-8")
    assert tokenize_file.write(tokenizer, source, target, TokenOptions(), silent)[0] == len(lines)
    with pa.memory_map(str(target)) as file:
        found = pa.ipc.open_file(file).read_all().to_pydict()
    own = tokenizer.backend_tokenizer.encode_batch(lines)
    assert found["ids"] == [one.ids for one in own]
    assert found["attention_mask"] == [one.attention_mask for one in own]
    assert found["offsets"] == [[place for pair in one.offsets for place in pair] for one in own]


def test_bulk_takes_options_and_slow_tokenizers(bert_tiny, tmp_path: Path):
    options = TokenOptions(max_length=4, padding="max_length")
    (rows,) = tokenize_file.encode_blocks(bert_tiny, ["a long film this is", "a"], options)
    assert rows.begins.tolist() == [0, 4, 8]
    assert rows.mask.tolist() == [1, 1, 1, 1, 1, 1, 1, 0]
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "ByT5Tokenizer"}')
    (rows,) = tokenize_file.encode_blocks(open_tokenizer(str(tmp_path)), ["fox", "é"])
    assert rows.offsets[rows.begins[1] :].tolist() == [[0, 1], [0, 1], [0, 0]]


def test_a_description_names_what_the_tokenizer_takes(bert_tiny):
    told = describe(bert_tiny, "")
    assert (told.model, told.vocabulary, told.limit, told.fast) == ("WordPiece", 30522, 512, True)
    assert told.switches == {"do_lower_case": True}
    assert "truncation to 128" in told.stored_truncation
    assert msgspec.json.decode(msgspec.json.encode(told), type=type(told)) == told
