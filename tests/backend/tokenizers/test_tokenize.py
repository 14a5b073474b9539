"""What people see of a tokenizer: every token with its place in the text, whatever the script."""

from pathlib import Path
from typing import NamedTuple

import pytest

from backend.contract.resources import resource
from backend.contract.tokens.options import TokenOptions
from backend.tokenizers.decoding import decode
from backend.tokenizers.loading import open_tokenizer
from backend.tokenizers.tokenize import as_json
from backend.tokenizers.tokenize import tokenize as table_of

BERT_TINY = str(resource("demo", "bert-tiny"))


class Token(NamedTuple):
    """One token, put together from the columns."""

    id: int
    piece: str
    text: str
    start: int
    end: int
    special: bool


def tokenize(tokenizer, text: str, special_tokens: bool = True) -> list[Token]:
    told = as_json(table_of(tokenizer, text, TokenOptions(special_tokens=special_tokens)))
    return [
        Token(number, piece, one, *offsets, special)
        for number, piece, one, offsets, special in zip(
            *(told[name] for name in ("ids", "pieces", "texts", "offsets", "special")), strict=True
        )
    ]


TEXTS = ["Naïve café 😀 👩‍👩‍👧 ends here.", "සිංහල භාෂාව", "東京は日本", "tabs\tand\n\nlines", ""]


def test_special_tokens_are_added_and_marked():
    tokens = tokenize(open_tokenizer(BERT_TINY), "Not bad!")
    assert [token.piece for token in tokens] == ["[CLS]", "not", "bad", "!", "[SEP]"]
    assert [token.special for token in tokens] == [True, False, False, False, True]


def test_special_tokens_can_be_left_out():
    tokens = tokenize(open_tokenizer(BERT_TINY), "Not bad!", special_tokens=False)
    assert [token.piece for token in tokens] == ["not", "bad", "!"]


def test_offsets_point_into_the_original_text():
    tokens = tokenize(open_tokenizer(BERT_TINY), "A Naïve 😀 FILM")
    assert [token.text for token in tokens] == ["", "A", "Naïve", "😀", "FILM", ""]
    assert table_of(open_tokenizer(BERT_TINY), "A Naïve 😀 FILM").rest.unknown == 1


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("family", ["byte_level", "unigram", "word_piece"])
def test_every_visible_character_lies_in_a_token(family: str, text: str, request: pytest.FixtureRequest):
    tokens = tokenize(open_tokenizer(str(request.getfixturevalue(family))), text)
    covered = {place for token in tokens for place in range(token.start, token.end)}
    assert {place for place, character in enumerate(text) if character.isprintable() and character != " "} <= covered
    assert all(token.text == text[token.start : token.end] for token in tokens)


@pytest.mark.parametrize("text", TEXTS)
def test_byte_level_text_comes_back_unchanged(byte_level: Path, text: str):
    tokenizer = open_tokenizer(str(byte_level))
    tokens = tokenize(tokenizer, text, special_tokens=False)
    assert decode(tokenizer, [token.id for token in tokens]) == text


def test_tokens_that_share_one_character_all_point_at_it(byte_level: Path):
    tokens = tokenize(open_tokenizer(str(byte_level)), "🦊")
    assert len(tokens) > 1
    assert {(token.start, token.end) for token in tokens} == {(0, 1)}


def test_nothing_is_cut_and_the_models_limit_is_told(byte_level: Path):
    tokenizer = open_tokenizer(str(byte_level))
    told = as_json(table_of(tokenizer, "zebra " * 30))
    assert len(told["ids"]) > 16
    assert told["truncated_at"] == 16
    assert as_json(table_of(tokenizer, "fox"))["truncated_at"] is None


def test_windows_that_fit_are_not_cut_by_the_model(byte_level: Path):
    options = TokenOptions(max_length=12, windows=True, stride=2)
    told = as_json(table_of(open_tokenizer(str(byte_level)), "zebra " * 30, options))
    assert told["tokens"] > 16
    assert told["truncated_at"] is None


def test_ids_that_do_not_exist_are_marked():
    assert decode(open_tokenizer(BERT_TINY), [2143, 30522, -100, 10**14, 2143]) == (
        "film⟨no token 30522⟩⟨no token -100⟩⟨no token 100000000000000⟩film"
    )


def test_special_tokens_can_be_skipped_in_decoding():
    tokenizer = open_tokenizer(BERT_TINY)
    assert decode(tokenizer, [101, 2143, 102]) == "[CLS] film [SEP]"
    assert decode(tokenizer, [101, 2143, 102], skip_special=True) == "film"


def test_json_has_the_promised_keys():
    values = as_json(table_of(open_tokenizer(BERT_TINY), "a film"))
    assert values["ids"] == [101, 1037, 2143, 102]
    assert values["pieces"] == ["[CLS]", "a", "film", "[SEP]"]
    assert values["offsets"] == [[0, 0], [0, 1], [2, 6], [0, 0]]


def test_bytes_of_a_tokenizer_without_offsets_are_counted(tmp_path: Path):
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "ByT5Tokenizer"}')
    tokenizer = open_tokenizer(str(tmp_path))
    assert not tokenizer.is_fast
    tokens = tokenize(tokenizer, "a fox")
    assert [token.text for token in tokens if token.text] == ["a", " ", "f", "o", "x"]
    assert decode(tokenizer, [token.id for token in tokens], skip_special=True) == "a fox"
