"""Chats as their template writes them, and what is wrong with a template."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from backend.contract.errors import InputError
from backend.contract.tokens.tokens import Message, TokenizeQuestion
from backend.data.rows import Rows
from backend.tasks.causal_lm import CausalLm
from backend.tasks.causal_lm import Settings as TaskSettings
from backend.tokenizers import answers
from backend.tokenizers.loading import open_tokenizer
from backend.tokenizers.token_table import Table
from backend.tokenizers.tokenize import describe


def table_of(tokenizer, **question) -> Table:
    table = answers.tokenize_short(tokenizer, TokenizeQuestion(tokenizer="", **question))
    assert table is not None
    return table


def ids(table: Table) -> list[int]:
    return [table.rest.pieces[place].id for place in table.columns["piece"].tolist()]


def test_a_chat_without_messages_is_refused(byte_level: Path):
    with pytest.raises(InputError, match="the chat has no messages; add one"):
        table_of(open_tokenizer(str(byte_level)), messages=[])


def test_a_chat_is_written_by_its_template_and_its_turns_are_told(byte_level: Path):
    tokenizer = open_tokenizer(str(byte_level))
    template = "{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
    messages = [Message("user", "fox?"), Message("assistant", "dog")]
    table = table_of(tokenizer, messages=messages, chat_template=template, generation_prompt=True)
    text = "<user>fox?\n<assistant>dog\n<assistant>"
    assert table.rest.sources == [text]
    assert ids(table) == tokenizer(text, add_special_tokens=False)["input_ids"]
    assert [text[turn.start : turn.end] for turn in table.rest.turns] == ["<user>fox?\n", "<assistant>dog\n"]


def test_a_tokenizer_without_template_takes_the_one_of_training(byte_level: Path):
    table = table_of(open_tokenizer(str(byte_level)), messages=[Message("user", "fox?")], generation_prompt=True)
    assert table.rest.sources == ["User: fox?\nAssistant:"]
    assert "no chat template" in table.rest.notes[0]


@pytest.mark.parametrize(
    ("template", "line", "said"),
    [
        ("\n{{ raise_exception('roles must alternate') }}", 2, "rejects these messages (line 2: roles must alternate)"),
        (
            "{% for m in messages %}\n{% endfo %}",
            2,
            "is not valid Jinja (line 2: encountered unknown tag 'endfo'; Jinja was",
        ),
        ("a\n\n{{ 1 / 0 }}", 3, "(line 3: division by zero)"),
        ("{{ messages[0].content.name.first }}", 1, "(line 1: 'str object' has no attribute 'name')"),
        ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", 1, "recursion"),
        ("{% include 'other' %}", 1, "no loader"),
    ],
)
def test_a_mistake_in_a_template_is_one_sentence_with_its_line(byte_level: Path, template: str, line: int, said: str):
    with pytest.raises(InputError) as raised:
        table_of(open_tokenizer(str(byte_level)), messages=[Message("user", "fox?")], chat_template=template)
    assert said in str(raised.value)
    assert (raised.value.field, raised.value.line) == ("task.template", line)


def test_a_tokenizer_with_several_templates_takes_the_one_for_plain_chats(byte_level: Path):
    tokenizer = open_tokenizer(str(byte_level))
    tokenizer.chat_template = {"default": "{{ messages[0].content }}!", "tool_use": "no"}
    assert table_of(tokenizer, messages=[Message("user", "fox")]).rest.sources == ["fox!"]
    assert describe(tokenizer, "").chat_template == "{{ messages[0].content }}!"


def test_what_is_no_template_counts_as_none(byte_level: Path):
    tokenizer = open_tokenizer(str(byte_level))
    tokenizer.chat_template = 5
    assert describe(tokenizer, "").chat_template_is_plain
    assert table_of(tokenizer, messages=[Message("user", "fox")]).rest.sources == ["User: fox\n"]


def test_a_run_is_taught_by_a_template_as_the_page_shows_it(byte_level: Path):
    tokenizer = open_tokenizer(str(byte_level))
    template = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{{ eos_token }}\n{% endfor %}"
    said = [{"role": "user", "content": "fox?"}, {"role": "assistant", "content": "dog"}]
    table = pa.table({"messages": [json.dumps(said)]})
    rows = Rows(table, ("rows.jsonl",), np.zeros(1, np.int32), np.ones(1, np.int32), "f")
    task = CausalLm(TaskSettings(rows="chat", template=template))
    (taught,) = task.encode(rows, {"messages": "messages"}, tokenizer, {"max_length": 64})
    shown = table_of(tokenizer, messages=[Message(**one) for one in said], chat_template=template)
    assert taught["input_ids"][0].as_py() == ids(shown)
