"""What an added token replaces: the pieces that stood for it, whatever kind of tokenizer, special or not."""

from pathlib import Path

import pytest

from backend.tokenizers.loading import open_tokenizer
from backend.tokenizers.replaced import extends, first_new, pieces_of, replaced

BERT_TINY = str(Path(__file__).parents[3] / "resources" / "demo" / "bert-tiny")
ADDED = {"added_tokens": ["zyzzyva"], "added_special_tokens": ["<speaker>"]}


def pieces(tokenizer, ids):
    return tokenizer.convert_ids_to_tokens(list(ids))


@pytest.mark.parametrize("knows_own", [True, False])
def test_added_tokens_stand_for_the_pieces_before(knows_own):
    own, tokenizer = open_tokenizer(BERT_TINY), open_tokenizer(BERT_TINY, options=ADDED)
    found = replaced(tokenizer, own if knows_own else None)
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
    assert replaced(tokenizer, open_tokenizer(str(byte_level))) == {}


def test_an_extended_tokenizer_extends_and_another_does_not(byte_level):
    own = open_tokenizer(BERT_TINY)
    assert extends(open_tokenizer(BERT_TINY, options=ADDED), own)
    assert not extends(open_tokenizer(str(byte_level)), own)
    assert first_new(own) == 30522
