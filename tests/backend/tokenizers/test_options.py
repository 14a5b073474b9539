"""Options of a tokenizer: each does something, or is refused by name; added tokens stay with what is saved."""

from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from backend.contract.errors import InputError
from backend.tokenizers.loading import fingerprint, open_tokenizer
from backend.tokenizers.options import switches

BERT_TINY = str(Path(__file__).parents[3] / "resources" / "demo" / "bert-tiny")


def test_an_unknown_option_is_refused_with_what_it_may_mean():
    with pytest.raises(InputError, match=r"do_lower_cas: .*no such option; did you mean do_lower_case"):
        open_tokenizer(BERT_TINY, options={"do_lower_cas": False})


def test_a_prefix_space_is_refused_where_no_step_knows_spaces():
    with pytest.raises(InputError, match="add_prefix_space"):
        open_tokenizer(BERT_TINY, options={"add_prefix_space": True})


def test_a_prefix_space_is_put_before_the_first_word(byte_level):
    plain, spaced = (open_tokenizer(str(byte_level), options={"add_prefix_space": each}) for each in (False, True))
    assert plain.tokenize("fox")[0][0] != "Ġ"
    assert spaced.tokenize("fox")[0][0] == "Ġ"


def test_lower_casing_reaches_a_stored_normaliser(word_piece):
    cased = open_tokenizer(str(word_piece), options={"do_lower_case": False})
    assert cased.tokenize("THE") != open_tokenizer(str(word_piece)).tokenize("THE")


def test_only_switches_that_do_something_are_offered(byte_level, word_piece):
    assert switches(open_tokenizer(str(byte_level), options={"add_prefix_space": True})) == {"add_prefix_space": True}
    assert switches(open_tokenizer(str(word_piece), options={"do_lower_case": False}))["do_lower_case"] is False


class Silent(PreTrainedTokenizerFast):
    """A tokenizer that takes a switch and does not say how it is set."""

    def __init__(self, *args: Any, do_lower_case: bool | None = None, **options: Any) -> None:
        super().__init__(*args, **options)


def test_a_switch_of_which_nothing_is_known_is_not_off(byte_level):
    assert "do_lower_case" not in switches(Silent.from_pretrained(str(byte_level)))


@pytest.mark.parametrize("side", ["left", "right"])
def test_sides_are_taken(side):
    tokenizer = open_tokenizer(BERT_TINY, options={"padding_side": side, "truncation_side": side})
    assert (tokenizer.padding_side, tokenizer.truncation_side) == (side, side)


def test_another_side_is_refused():
    with pytest.raises(InputError, match="'top' is not a side"):
        open_tokenizer(BERT_TINY, options={"padding_side": "top"})


def test_what_is_neither_true_nor_false_is_refused():
    with pytest.raises(InputError, match=r"tokenizer_options.*bool"):
        open_tokenizer(BERT_TINY, options={"do_lower_case": "nope"})


def test_a_slow_tokenizer_that_there_is_not_is_refused():
    with pytest.raises(InputError, match="use_fast"):
        open_tokenizer(BERT_TINY, options={"use_fast": False})
    assert open_tokenizer(BERT_TINY, options={"use_fast": True}).is_fast


def test_added_tokens_are_whole_words_and_saved_for_transformers(tmp_path):
    options = {"added_tokens": ["zyzzyva"], "added_special_tokens": ["<speaker>"]}
    tokenizer = open_tokenizer(BERT_TINY, options=options)
    tokenizer.save_pretrained(tmp_path)
    stored = AutoTokenizer.from_pretrained(tmp_path)
    for each in (tokenizer, stored):
        assert each.tokenize("<speaker> a zyzzyva") == ["<speaker>", "a", "zyzzyva"]
        assert len(each) == 30522 + 2
        assert "<speaker>" in each.all_special_tokens
        assert "zyzzyva" not in each.all_special_tokens


def test_tokens_that_are_there_already_are_not_added_again(tmp_path):
    options = {"added_tokens": ["zyzzyva"], "added_special_tokens": ["<speaker>"]}
    open_tokenizer(BERT_TINY, options=options).save_pretrained(tmp_path)
    again = open_tokenizer(str(tmp_path), options=options)
    assert len(again) == 30522 + 2
    assert fingerprint(again) == fingerprint(open_tokenizer(str(tmp_path)))


def test_added_tokens_must_be_a_list_of_texts():
    with pytest.raises(InputError, match="use a list of strings"):
        open_tokenizer(BERT_TINY, options={"added_tokens": "zyzzyva"})
