"""Prompts with answers: templates, what is learnt from, what gives way where space is short, and scores of what is written."""

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from backend.contract.errors import InputError
from backend.contract.heads import IGNORE
from backend.contract.resources import resource
from backend.contract.spec import validate
from backend.data.rows import Rows
from backend.preflight.datasets import choose_columns
from backend.tasks._chat import ConversationTokens, fit_to_length, least_length
from backend.tasks.causal_lm import CausalLm, Settings

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
CHAT = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Who are you?"},
    {"role": "assistant", "content": "A model."},
    {"role": "user", "content": "And what do you do?"},
    {"role": "assistant", "content": "I answer."},
]
ASKED = {
    "prompt": ["What is red?", "Say hello"],
    "input": ["an apple or the sky", ""],
    "response": ["an apple", "hello"],
}


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerFast:
    """Bytes alone as GPT-2 has them, with an end of text."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=["<end>", "<|im_start|>", "<|im_end|>"], initial_alphabet=alphabet, show_progress=False
    )  # fmt: skip
    made.train_from_iterator(["Assistant: an apple", "User: hello"] * 5, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<end>", bos_token="<end>")


def rows_of(table: dict[str, Any]) -> Rows:
    made = pa.table(table)
    count = made.num_rows
    return Rows(made, ("rows.jsonl",), np.zeros(count, np.int32), np.arange(count) + 1, "f")


def prepared(table: dict[str, Any], *, to_predict: bool = False, **settings: Any):
    task: Any = CausalLm(Settings(**{"rows": "instructions", **settings}))
    rows = rows_of(table)
    columns = choose_columns(task, {}, rows, to_predict=to_predict)
    assert task.unusable(rows, columns, "predicting" if to_predict else "training") == []
    return task, rows, columns


def encode(tokenizer, table: dict[str, Any], length: int = 500, **settings: Any) -> pa.Table:
    task, rows, columns = prepared(table, **settings)
    return pa.Table.from_batches(list(task.encode(rows, columns, tokenizer, {"max_length": length})))


def learnt(tokenizer, features: pa.Table, row: int = 0) -> str:
    """The text that is target."""
    return tokenizer.decode([label for label in features["labels"][row].as_py() if label != IGNORE])


def whole(tokenizer, features: pa.Table, row: int = 0) -> str:
    return tokenizer.decode(features["input_ids"][row].as_py())


def test_a_tokenizer_without_a_template_gets_the_plain_one(tokenizer):
    features = encode(tokenizer, ASKED)
    assert whole(tokenizer, features) == "User: What is red?\n\nan apple or the sky\nAssistant: an apple<end>\n"
    assert whole(tokenizer, features, 1) == "User: Say hello\nAssistant: hello<end>\n"


def test_the_tokenizers_own_template_comes_first(tokenizer):
    tokenizer.chat_template = CHATML
    try:
        features = encode(tokenizer, {**ASKED, "system": ["Be brief.", ""]}, append_end=False)
    finally:
        tokenizer.chat_template = None
    expected = (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nWhat is red?\n\nan apple or the sky<|im_end|>\n"
    )
    assert whole(tokenizer, features) == f"{expected}<|im_start|>assistant\nan apple<|im_end|>\n"


def test_only_the_answer_is_learnt_with_the_sign_that_ends_it(tokenizer):
    features = encode(tokenizer, ASKED)
    assert learnt(tokenizer, features).strip() == "an apple<end>"
    assert encode(tokenizer, ASKED, loss_on="all")["labels"][0] == features["input_ids"][0]


def test_an_answer_whose_template_forgets_the_end_gets_it(tokenizer):
    features = encode(tokenizer, ASKED, template=CHATML)
    assert learnt(tokenizer, features) == "an apple<|im_end|>\n<end>"


def test_prompt_length_counts_what_stands_before_the_answer(tokenizer):
    features = encode(tokenizer, ASKED)
    length = features["prompt_length"][0].as_py()
    assert tokenizer.decode(features["input_ids"][0].as_py()[:length]).endswith("\nAssistant:")


def test_the_prompt_is_tokenised_as_it_is_without_an_answer(tokenizer):
    template = (
        "{% for m in messages %}{{ m.content }} {% endfor %}"  # the space goes to the next word in GPT-2's tokens
    )
    trained = encode(tokenizer, {"prompt": ["Say"], "response": ["hello"]}, template=template)
    asked = encode(tokenizer, {"prompt": ["Say"]}, template=template, to_predict=True)
    length = trained["prompt_length"][0].as_py()
    assert trained["input_ids"][0].as_py()[:length] == asked["input_ids"][0].as_py()


@pytest.mark.parametrize("as_json", [False, True])
def test_all_turns_of_the_assistant_are_learnt(tokenizer, as_json):
    table = {"messages": [json.dumps(CHAT) if as_json else CHAT]}
    features = encode(tokenizer, table, rows="chat", template=CHATML, append_end=False)
    assert learnt(tokenizer, features) == "A model.<|im_end|>\nI answer.<|im_end|>\n"


def test_the_other_way_to_write_messages_is_read_too(tokenizer):
    other = [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Hello"}]
    features = encode(tokenizer, {"conversations": [other]}, rows="chat")
    assert whole(tokenizer, features) == "User: Hi\nAssistant: Hello<end>\n"


def test_the_prompt_loses_its_beginning_and_the_answer_never(tokenizer):
    features = encode(tokenizer, {"prompt": ["x" * 300], "response": ["an apple"]}, length=60)
    assert len(features["input_ids"][0]) == 60
    assert learnt(tokenizer, features).strip() == "an apple<end>"
    assert whole(tokenizer, features).startswith("xxx")


def test_an_answer_beyond_three_quarters_loses_its_end(tokenizer):
    features = encode(tokenizer, {"prompt": ["x" * 300], "response": ["y" * 300]}, length=40)
    assert features["prompt_length"][0].as_py() == 10
    assert learnt(tokenizer, features).strip("y") in ("", " ")
    assert len(features["input_ids"][0]) == 40


def test_nothing_is_learnt_of_an_answer_that_lost_its_beginning(tokenizer):
    long = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "y" * 300}, *CHAT[3:]]
    features = encode(tokenizer, {"messages": [long]}, length=60, rows="chat")
    assert whole(tokenizer, features).startswith("yyy")
    assert learnt(tokenizer, features).strip() == "I answer.<end>"


def test_a_prompt_is_cut_alike_whether_the_answer_is_known(tokenizer):
    settings: dict[str, Any] = {"length": 60, "generate": True, "max_new_tokens": 20}
    known = encode(tokenizer, {"prompt": ["x" * 300], "response": ["an apple"]}, **settings)
    unknown = encode(tokenizer, {"prompt": ["x" * 300]}, to_predict=True, **settings)
    length = known["prompt_length"][0].as_py()
    assert length == unknown["prompt_length"][0].as_py() == 40
    assert known["input_ids"][0].as_py()[:length] == unknown["input_ids"][0].as_py()


def test_a_template_that_is_no_jinja_is_refused():
    with pytest.raises(InputError, match=r"task\.template: .*it is not a Jinja template"):
        validate(Settings, {"rows": "chat", "template": "{% for m in messages %}"}, "task")


def test_a_row_that_the_template_refuses_is_named(tokenizer):
    template = "{{ raise_exception('roles must alternate') }}"
    with pytest.raises(InputError, match=r"the chat template rejects rows\.jsonl:1 \(line 1: roles must alternate\)"):
        encode(tokenizer, ASKED, template=template)


def test_a_template_that_rewrites_the_beginning_is_refused(tokenizer):
    template = "{{ messages | length }}{% for m in messages %}{{ m.content }}{% endfor %}"
    with pytest.raises(InputError, match=r"writes the start of rows\.jsonl:1 differently"):
        encode(tokenizer, ASKED, template=template)


def test_unusable_chats_say_why():
    task = CausalLm(Settings(rows="chat"))
    cells = ["[", "", json.dumps([{"role": "user"}]), json.dumps(CHAT[:2]), json.dumps(CHAT)]
    assert task.unusable(rows_of({"messages": cells}), {"messages": "messages"}, "training") == [
        (0, "messages that are not a JSON list"),
        (1, "no messages"),
        (2, "a message without a role or content"),
        (3, "no assistant message"),
    ]


def test_answers_are_needed_to_learn_and_not_to_predict():
    task: Any = CausalLm(Settings(rows="instructions"))
    rows = rows_of({"prompt": ["a", ""], "response": ["", "b"]})
    columns = choose_columns(task, {}, rows)
    assert task.unusable(rows, columns, "training") == [(0, "no response"), (1, "no prompt")]
    assert task.unusable(rows, columns, "predicting") == [(1, "no prompt")]


def test_each_kind_of_row_has_its_own_columns():
    chat: Any = CausalLm(Settings(rows="chat"))
    asked: Any = CausalLm(Settings(rows="instructions"))
    with pytest.raises(InputError, match=r"data\.columns\.messages: specify which column contains the messages"):
        choose_columns(chat, {}, rows_of({"text": ["a"]}))
    with pytest.raises(
        InputError, match=r"data\.columns\.text: this task has no such column; its columns are prompt, input"
    ):
        choose_columns(asked, {"text": "text"}, rows_of({"text": ["a"]}))


@pytest.mark.parametrize(
    ("settings", "says"),
    [({"generate": True}, "set task.rows to one of them"), ({"packing": True}, "blocks are always full")],
)
def test_settings_that_mean_nothing_to_blocks_are_refused(settings, says):
    with pytest.raises(InputError, match=says):
        validate(Settings, settings, "task")


def predicted(tokenizer, table: dict[str, Any], written: list[str], *, to_predict: bool = False):
    task, rows, columns = prepared(table, to_predict=to_predict, generate=True)
    features = pa.Table.from_batches(list(task.encode(rows, columns, tokenizer, {"max_length": 500})))
    labels = [np.array(one) for one in features["labels"].to_pylist()]
    outputs = {
        "token_loss": [np.where(one == IGNORE, 0.0, 0.5) for one in labels],
        "token_prediction": [np.where(one == IGNORE, 0, one) for one in labels],
        "generated": [np.array(tokenizer(text)["input_ids"]) for text in written],
    }
    return task.decode(outputs, features, rows, columns, {}, tokenizer), task


def test_what_was_written_is_compared_with_the_response(tokenizer):
    found, task = predicted(tokenizer, ASKED, [" an apple", " goodbye"])
    assert found.table["prediction"].to_pylist() == ["an apple", "goodbye"]
    assert found.table["actual"].to_pylist() == ["an apple", "hello"]
    scores = task.score(found, {})
    assert (scores["exact_match"], scores["loss"], scores["accuracy"]) == (0.5, pytest.approx(0.5), 1.0)
    assert set(scores) == {metric.name for metric in task.metrics}


def test_the_table_shows_what_the_model_was_given(tokenizer):
    found, _ = predicted(tokenizer, ASKED, ["", ""])
    assert found.table["source_text"][1].as_py() == "User: Say hello\nAssistant:"


def test_prompts_without_responses_are_answered_and_not_scored(tokenizer):
    found, task = predicted(tokenizer, {"prompt": ["Say hello"]}, [" hello"], to_predict=True)
    assert found.table["prediction"].to_pylist() == ["hello"]
    assert found.table["actual"].null_count == 1
    assert task.score(found, {}) == {}


def test_beginning_of_text_stands_before_the_plain_template(tokenizer):
    bert = AutoTokenizer.from_pretrained(resource("demo", "bert-tiny"), bos_token="[CLS]", eos_token="[SEP]")
    features = encode(bert, {"prompt": ["a"], "response": ["b"]})
    assert features["input_ids"][0].as_py()[0] == bert.cls_token_id


def test_prompts_without_any_answer_are_answered_by_prediction():
    table = {"prompt": ["Say hello"]}
    task, rows, columns = prepared_task(table)
    assert task.to_predict(rows, columns).evaluates_by == "generate"


def test_prompts_of_which_some_have_answers_are_measured_as_settings_say():
    task, rows, columns = prepared_task({"prompt": ["Say hello", "Say bye"], "response": ["hello", ""]})
    assert task.to_predict(rows, columns) is task


def prepared_task(table: dict[str, Any]) -> tuple[CausalLm, Rows, dict[str, str]]:
    task, rows = CausalLm(Settings(rows="instructions")), rows_of(table)
    return task, rows, choose_columns(task, {}, rows, to_predict=True)


@pytest.mark.parametrize("room", [1, 8, 60])
def test_least_length_is_the_first_that_cuts_nothing(room: int):
    for prompt in (1, 2, 5, 17, 40):
        for answer in (0, 1, 9, 50):
            ids = np.arange(prompt + answer, dtype=np.int32)
            tokens = ConversationTokens(ids, (ids >= prompt).astype(np.int32))
            [least] = least_length(np.array([len(ids)]), np.array([prompt]), room)
            kept = fit_to_length(tokens, int(least), answered=answer > 0, room=room, on_all=False)
            assert len(kept.ids) == len(ids)
            if least > 2:
                less = fit_to_length(tokens, int(least) - 1, answered=answer > 0, room=room, on_all=False)
                assert len(less.ids) < len(ids)
