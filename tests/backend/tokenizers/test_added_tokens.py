"""A tokenizer gets more tokens: shown with what they replace, counted in texts, saved whole or not at all."""

import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoTokenizer

from backend.contract.errors import InputError
from backend.tokenizers.added_tokens import (
    Extension,
    count,
    extend,
    extends,
    first_new,
    pieces_of,
    propose,
    replaced_pieces,
    rows_needed,
)
from backend.tokenizers.loading import open_tokenizer
from backend.tokenizers.saving import check_free, save
from backend.tokenizers.token_counts import measure_compression

ADDED = {"added_tokens": ["zyzzyva"], "added_special_tokens": ["<speaker>"]}

BERT_TINY = str(Path(__file__).parents[3] / "resources" / "demo" / "bert-tiny")
TEXTS = ["A zyzzyva is a weevil.", "Zyzzyvas and a zyzzyva", ""]


def test_each_proposed_token_shows_its_pieces():
    found = propose(open_tokenizer(BERT_TINY), Extension(["zyzzyva"], ["<speaker>"]))
    assert [(one.text, one.special, one.pieces) for one in found.tokens] == [
        ("zyzzyva", False, ["z", "##y", "##zzy", "##va"]),
        ("<speaker>", True, ["<", "speaker", ">"]),
    ]


@pytest.mark.parametrize(
    ("add", "problem"),
    [
        (["the"], "a token (ID 1996)"),
        (["zyzzyva", "zyzzyva"], "occurs twice"),
        ([" "], "at least one character"),
        (["\ud83d"], "half a character"),
    ],
)
def test_what_cannot_be_added_is_said(add, problem):
    assert problem in propose(open_tokenizer(BERT_TINY), Extension(add)).tokens[-1].problem


def test_nothing_new_is_refused():
    with pytest.raises(InputError, match="already tokens; enter a new one"):
        extend(open_tokenizer(BERT_TINY), Extension(["the"]))


def test_an_unused_piece_can_become_special_without_growth():
    tokenizer = open_tokenizer(BERT_TINY)
    assert extend(tokenizer, Extension(special=["[unused5]"])) == 0
    assert tokenizer.tokenize("a [unused5]") == ["a", "[unused5]"]


@pytest.mark.parametrize(("whole_words", "pieces"), [(False, ["zyzzyva", "s"]), (True, ["z", "##y", "##zzy", "##vas"])])
def test_whole_words_stand_by_themselves(whole_words, pieces):
    tokenizer = open_tokenizer(BERT_TINY)
    extend(tokenizer, Extension(["zyzzyva"], whole_words=whole_words))
    assert tokenizer.tokenize("zyzzyvas") == pieces


def test_tokens_are_counted_where_they_would_stand():
    before, after = open_tokenizer(BERT_TINY), open_tokenizer(BERT_TINY)
    extend(after, Extension(["zyzzyva"], ["<speaker>"]))
    found = count(before, after, TEXTS, ["zyzzyva", "<speaker>"])
    assert found.counts == {"zyzzyva": 3, "<speaker>": 0}
    assert found.rows == 3
    assert (found.tokens_before, found.tokens_after) == tuple(
        sum(len(each(text, add_special_tokens=False)["input_ids"]) for text in TEXTS) for each in (before, after)
    )


@pytest.mark.parametrize("family", ["byte_level", "unigram", "word_piece"])
def test_what_is_saved_is_what_was_extended(family, request, tmp_path):
    tokenizer = open_tokenizer(str(request.getfixturevalue(family)))
    added = extend(tokenizer, Extension(["zyzzyva", "Straße"], ["<speaker>"]))
    save(tokenizer, tmp_path / "new", "--output")
    again = AutoTokenizer.from_pretrained(tmp_path / "new")
    assert added == 3
    assert len(again) == len(tokenizer)
    text = "<speaker> The zyzzyva in the Straße."
    assert again(text)["input_ids"] == tokenizer(text)["input_ids"]
    assert [path.name for path in tmp_path.iterdir()] == ["new"]


def test_a_tokenizer_is_written_beside_a_configuration(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    save(open_tokenizer(BERT_TINY), tmp_path, "--output")
    assert {"config.json", "tokenizer.json"} <= {path.name for path in tmp_path.iterdir()}


@pytest.mark.parametrize("name", ["vocab.txt", "tokenizer_config.json", "spiece.model"])
def test_no_tokenizer_is_ever_written_over(name, tmp_path):
    (tmp_path / name).write_text("mine")
    with pytest.raises(InputError, match=r"--output: .* already contains a tokenizer"):
        save(open_tokenizer(BERT_TINY), tmp_path, "--output")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(name, "mine")]


def test_half_a_tokenizer_is_never_left(tmp_path, monkeypatch):
    tokenizer = open_tokenizer(BERT_TINY)

    def breaks(folder):
        (Path(folder) / "tokenizer_config.json").write_text("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tokenizer, "save_pretrained", breaks)
    with pytest.raises(InputError, match="the disk is full"):
        save(tokenizer, tmp_path / "new", "--output")
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_no_place_for_a_tokenizer(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is a file"):
        check_free(tmp_path / "file", "--output")


def with_ids(folder: Path, ids: dict[str, int]) -> str:
    """A tokenizer of whole words with these ids."""
    tokenizer = Tokenizer(models.WordLevel(ids, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "[UNK]"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return str(folder)


def test_a_token_never_takes_anothers_id(tmp_path):
    tokenizer = open_tokenizer(with_ids(tmp_path, {"[UNK]": 0, "a": 1, "b": 3}))
    assert rows_needed(tokenizer) == 4
    with pytest.raises(InputError, match="have gaps"):
        extend(tokenizer, Extension(["c"]))


def test_bytes_get_tokens_too(tmp_path):
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "ByT5Tokenizer"}')
    own, tokenizer = open_tokenizer(str(tmp_path)), open_tokenizer(str(tmp_path))
    assert extend(tokenizer, Extension(["cat"], ["<s1>"])) == 2
    assert replaced_pieces(tokenizer, own) == {384: (102, 100, 119), 385: (63, 118, 52, 65)}
    save(tokenizer, tmp_path / "new", "--output")
    assert AutoTokenizer.from_pretrained(tmp_path / "new")("a cat")["input_ids"] == [100, 35, 384, 1]


def test_compression_counts_tokens_words_characters_and_unknown():
    found = measure_compression(open_tokenizer(BERT_TINY), "bert", ["the cat 🙂", "the mat"])
    assert (found.rows, found.tokens, found.words, found.characters, found.unknown) == (2, 5, 5, 16, 1)
    assert (found.per_word, found.per_character, found.bytes_per_token) == (1.0, 5 / 16, 19 / 5)


def pieces(tokenizer, ids):
    return tokenizer.convert_ids_to_tokens(list(ids))


@pytest.mark.parametrize("knows_own", [True, False])
def test_added_tokens_stand_for_the_pieces_before(knows_own):
    own, tokenizer = open_tokenizer(BERT_TINY), open_tokenizer(BERT_TINY, options=ADDED)
    found = replaced_pieces(tokenizer, own if knows_own else None)
    assert {tokenizer.convert_ids_to_tokens(token): pieces(own, ids) for token, ids in found.items()} == {
        "zyzzyva": own.tokenize("zyzzyva"),
        "<speaker>": ["<", "speaker", ">"],
    }
    assert sorted(found) == [30522, 30523]


def test_a_mark_for_the_space_before_a_word_is_left_out(unigram):
    tokenizer = open_tokenizer(str(unigram))
    found = pieces(tokenizer, pieces_of(tokenizer, "日本"))
    assert "".join(found).strip("▁") == "日本"
    assert "▁" not in found


def test_unknown_pieces_say_nothing_of_a_token():
    tokenizer = open_tokenizer(BERT_TINY)
    assert pieces_of(tokenizer, "🙂") == ()


def test_what_a_tokenizer_knew_before_is_not_replaced(byte_level):
    tokenizer = open_tokenizer(str(byte_level), options={"added_tokens": ["<|endoftext|>"]})
    assert replaced_pieces(tokenizer, open_tokenizer(str(byte_level))) == {}


def test_an_extended_tokenizer_extends_and_another_does_not(byte_level):
    own = open_tokenizer(BERT_TINY)
    assert extends(open_tokenizer(BERT_TINY, options=ADDED), own)
    assert not extends(open_tokenizer(str(byte_level)), own)
    assert first_new(own) == 30522
