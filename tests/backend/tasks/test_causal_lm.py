"""Blocks, examples and perplexity of language modelling."""

import numpy as np
import pyarrow as pa
import pytest
from transformers import AutoTokenizer

from backend.contract.resources import resource
from backend.data.rows import Rows
from backend.tasks.causal_lm import CausalLm, Settings

COLUMNS = {"text": "text"}


@pytest.fixture(scope="module")
def tokenizer():
    return AutoTokenizer.from_pretrained(resource("demo", "bert-tiny"))


def rows_of(texts: list[str], continuous: bool = True) -> Rows:
    count = len(texts)
    table = pa.table({"text": texts})
    return Rows(table, ("novel.txt",), np.zeros(count, np.int32), np.arange(count) + 1, "f", continuous=continuous)


def encode(tokenizer, source: Rows, length: int, **settings: object) -> pa.Table:
    task = CausalLm(Settings(**settings))
    return pa.Table.from_batches(list(task.encode(source, COLUMNS, tokenizer, {"max_length": length})))


def test_blocks_run_across_rows_and_the_short_last_one_is_kept(tokenizer):
    features = encode(tokenizer, rows_of(["one two three", "four five six seven"]), 3)
    assert [len(ids) for ids in features["input_ids"]] == [3, 3]  # the seventh word alone would have no target
    assert features["spans_row"].to_pylist() == [[0], [1]]


def test_no_token_is_lost_or_doubled(tokenizer):
    texts = ["the quick brown fox", "", "jumps over the lazy dog", "again"] * 700
    features = encode(tokenizer, rows_of(texts), 7)
    ids = [one for feature in features["input_ids"].to_pylist() for one in feature]
    expected = tokenizer(" ".join(texts), add_special_tokens=False)["input_ids"]
    assert ids == expected[: len(ids)]
    assert len(expected) - len(ids) <= 1


def test_examples_end_with_the_end_of_text_where_there_is_one(tokenizer):
    features = encode(tokenizer, rows_of(["one two"], continuous=False), 10, rows="examples")
    assert features["input_ids"].to_pylist() == [tokenizer("one two")["input_ids"]]


def decoded(tokenizer, texts: list[str], length: int, loss_of_token: float):
    task, rows = CausalLm(Settings()), rows_of(texts)
    features = encode(tokenizer, rows, length)
    lengths = [len(ids) for ids in features["input_ids"]]
    outputs = {
        "token_loss": [np.full(count, loss_of_token, np.float32) for count in lengths],
        "token_prediction": [np.asarray(ids.values) for ids in features["input_ids"]],
    }
    predictions = task.decode(outputs, features, rows, COLUMNS, {}, tokenizer)
    return predictions, task.score(predictions, {})


def test_perplexity_is_the_exponential_of_the_token_mean(tokenizer):
    _, scores = decoded(tokenizer, ["one two three", "four"], 2, loss_of_token=0.5)
    assert scores["perplexity"] == pytest.approx(np.exp(0.5))
    assert scores["accuracy"] == 1.0


def test_every_row_gets_its_own_tokens_and_text_back(tokenizer):
    predictions, _ = decoded(tokenizer, ["one two three", "", "four five"], 100, loss_of_token=1.0)
    assert predictions.table["tokens"].to_pylist() == [2, 0, 2]  # nothing predicts the very first token
    assert predictions.table["prediction"].to_pylist() == ["two three", "", "four five"]
    assert predictions.table["perplexity"][1].as_py() is None


def test_running_text_is_split_at_its_end_and_examples_at_random():
    assert CausalLm(Settings()).split_by == "contiguous"
    assert CausalLm(Settings(rows="examples")).split_by == "random"
