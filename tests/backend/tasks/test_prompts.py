"""A model that learnt from prompts is asked as it was trained; any other goes on with the text."""

from typing import Any

import pytest
from transformers import AutoTokenizer

from backend.contract.resources import resource
from backend.tasks.causal_lm import CausalLm, Settings

TEMPLATE = (
    "{% for m in messages %}{% if m.role == 'assistant' %}: {{ m.content }} {% else %}[{{ m.role }}] {{ m.content }} "
    "{% endif %}{% endfor %}{% if add_generation_prompt %}:{% endif %}"
)


@pytest.fixture(scope="module")
def tokenizer():
    return AutoTokenizer.from_pretrained(resource("demo", "bert-tiny"))


def asked(rows: Any, cells: dict[str, Any], tokenizer) -> str:
    ids = CausalLm(Settings(rows=rows, template=TEMPLATE)).prompt_ids(cells, tokenizer)
    return tokenizer.decode(ids)


def test_an_instruction_stands_in_its_template(tokenizer) -> None:
    cells = {"prompt": "what is red?", "input": "an apple", "system": "be brief"}
    assert asked("instructions", cells, tokenizer) == "[ system ] be brief [ user ] what is red? an apple :"


def test_a_plain_text_is_what_the_user_of_a_chat_says(tokenizer) -> None:
    assert asked("chat", {"messages": "hello"}, tokenizer) == "[ user ] hello :"


def test_a_chat_goes_on_where_it_ended(tokenizer) -> None:
    said = [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": "hi"},
        {"role": "user", "content": "well"},
    ]
    assert asked("chat", {"messages": said}, tokenizer) == "[ user ] hello : hi [ user ] well :"


@pytest.mark.parametrize("rows", ["blocks", "examples"])
def test_running_text_is_continued_as_it_stands(rows: Any, tokenizer) -> None:
    assert CausalLm(Settings(rows=rows)).prompt_ids({"text": "the film"}, tokenizer) is None
