"""A tokenizer with options is one text, so that every question about it is about the same."""

import pytest

from backend.contract.tokens import options
from backend.contract.tokens.options import TokenizerName


def test_a_name_alone_is_itself():
    assert options.format_name("gpt2", "main", {"use_fast": None}) == "gpt2"


def test_options_come_back_and_their_order_makes_no_difference():
    one = options.format_name("gpt2", "abc", {"b": 1, "a": ["<x>"]})
    assert one == options.format_name("gpt2", "abc", {"a": ["<x>"], "b": 1})
    assert options.parse_name(one) == TokenizerName("gpt2", "abc", {"a": ["<x>"], "b": 1})


@pytest.mark.parametrize("text", ["{folder}", '{"tokenizer": 3}', '{"tokenizer": "a", "else": 1}', "\ud800", "{\ud800"])
def test_any_other_text_is_a_name(text: str):
    assert options.parse_name(text) == TokenizerName(text)
