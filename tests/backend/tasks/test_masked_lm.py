"""Hidden tokens: which, how many, whole words, masks of the text's own, and scores by targets."""

import json
import time

import numpy as np
import pyarrow as pa
import pytest
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from backend.contract.errors import InputError
from backend.contract.heads import IGNORE
from backend.contract.resources import resource
from backend.data.rows import Rows
from backend.tasks.masked_lm import MaskedLm, Settings

COLUMNS = {"text": "text"}
TEXT = "the quick brown fox jumps over the lazy dog and sleeps under an unbelievably large tree"


@pytest.fixture(scope="module")
def tokenizer():
    return AutoTokenizer.from_pretrained(resource("demo", "bert-tiny"))


def rows_of(texts: list[str], continuous: bool = False) -> Rows:
    count = len(texts)
    table = pa.table({"text": texts})
    return Rows(table, ("texts.txt",), np.zeros(count, np.int32), np.arange(count) + 1, "f", continuous=continuous)


def task_of(**settings: object) -> MaskedLm:
    return MaskedLm(Settings(**{"rows": "examples", **settings}))


def encode(task: MaskedLm, tokenizer, rows: Rows, length: int = 64) -> pa.Table:
    return pa.Table.from_batches(list(task.encode(rows, COLUMNS, tokenizer, {"max_length": length})))


def lists_of(features: pa.Table, number: int) -> dict[str, np.ndarray]:
    return {name: np.array(features[name][number].as_py()) for name in ("input_ids", "word")}


def drawn(task: MaskedLm, tokenizer, features: pa.Table, seed: int = 0) -> pa.Table:
    """All features as one drawing leaves them."""
    made = [task.draw(lists_of(features, n), np.random.default_rng(seed + n), tokenizer) for n in range(len(features))]
    for name in ("input_ids", "labels"):
        column = pa.array([one[name] for one in made], pa.list_(pa.int32()))
        there = features.schema.get_field_index(name)
        features = features.set_column(there, name, column) if there >= 0 else features.append_column(name, column)
    return features


def many(tokenizer, **settings: object):
    """One long feature before and after drawing."""
    task = task_of(**settings)
    before = lists_of(encode(task, tokenizer, rows_of([" ".join([TEXT] * 2000)]), 100_000), 0)
    after = task.draw(before, np.random.default_rng(1), tokenizer)
    return before, after


def test_of_the_chosen_tokens_eight_in_ten_are_masks(tokenizer):
    before, after = many(tokenizer)
    chosen = after["labels"] != IGNORE
    now = after["input_ids"][chosen]
    assert chosen.mean() == pytest.approx(0.15, abs=0.01)
    assert (now == tokenizer.mask_token_id).mean() == pytest.approx(0.8, abs=0.02)
    assert (now == before["input_ids"][chosen]).mean() == pytest.approx(0.1, abs=0.02)


def test_what_is_not_chosen_stays_as_it_was(tokenizer):
    before, after = many(tokenizer)
    chosen = after["labels"] != IGNORE
    assert after["input_ids"][~chosen].tolist() == before["input_ids"][~chosen].tolist()
    assert after["labels"][chosen].tolist() == before["input_ids"][chosen].tolist()


def test_special_tokens_are_neither_hidden_nor_put_in(tokenizer):
    task = task_of(mask_probability=0.99)
    rows = rows_of(["\u4e00\u4e01 the fox"])  # the first two are unknown to the vocabulary
    before = lists_of(encode(task, tokenizer, rows), 0)
    special = np.isin(before["input_ids"], tokenizer.all_special_ids)
    assert tokenizer.unk_token_id in before["input_ids"]
    for seed in range(50):
        after = task.draw(before, np.random.default_rng(seed), tokenizer)
        assert (after["labels"][special] == IGNORE).all()
        assert set(after["input_ids"][~special].tolist()) & set(tokenizer.all_special_ids) <= {tokenizer.mask_token_id}


def test_all_pieces_of_a_word_are_hidden_together(tokenizer):
    before, after = many(tokenizer, whole_words=True)
    begins, chosen = before["word"] == 1, after["labels"] != IGNORE
    goes_on = np.flatnonzero(before["word"] == 0)
    assert len(goes_on) > 1000
    assert (chosen[goes_on] == chosen[goes_on - 1]).all()
    assert chosen[begins].mean() == pytest.approx(0.15, abs=0.01)


def test_a_block_that_begins_inside_a_word_can_be_drawn_from(tokenizer):
    task = task_of(whole_words=True, mask_probability=0.99)
    arrays = {"input_ids": np.array([2000, 2001, 2002]), "word": np.array([0, 0, 1])}
    assert (task.draw(arrays, np.random.default_rng(0), tokenizer)["labels"] != IGNORE).all()


def test_even_a_short_text_hides_something(tokenizer):
    task = task_of(mask_probability=0.01)
    before = lists_of(encode(task, tokenizer, rows_of(["a fox"])), 0)
    counts = [
        (task.draw(before, np.random.default_rng(seed), tokenizer)["labels"] != IGNORE).sum() for seed in range(50)
    ]
    assert min(counts) == 1


def test_the_same_seed_hides_the_same(tokenizer):
    task, before = task_of(), None
    before = lists_of(encode(task, tokenizer, rows_of([TEXT])), 0)
    one, two, other = (
        task.draw(before, np.random.default_rng(seed), tokenizer)["labels"].tolist() for seed in (1, 1, 2)
    )
    assert one == two != other


def test_rows_keep_their_special_tokens_inside_a_block(tokenizer):
    task = task_of(rows="blocks")
    features = encode(task, tokenizer, rows_of(["the fox", "", "a dog"], continuous=True), 5)
    joined = [token for ids in features["input_ids"].to_pylist() for token in ids]
    assert joined == [token for text in ("the fox", "", "a dog") for token in tokenizer(text)["input_ids"]]
    assert features["spans_row"].to_pylist() == [[0, 1], [1, 2]]
    assert features["spans_length"].to_pylist() == [[4, 1], [1, 4]]


def test_blocks_do_not_depend_on_how_rows_are_chunked(tokenizer):
    texts = ["the quick brown fox jumps"] * 2345  # 7 tokens each, two chunks and a bit
    features = encode(task_of(rows="blocks"), tokenizer, rows_of(texts), 512)
    lengths = [len(ids) for ids in features["input_ids"]]
    assert lengths == [512] * (2345 * 7 // 512) + [2345 * 7 % 512]


def answers(tokenizer, features: pa.Table, right: bool) -> dict[str, list[np.ndarray]]:
    """What an engine would return whose likeliest token is always the right one, or always `fox`."""
    fox = tokenizer.convert_tokens_to_ids("fox")
    labels = [np.array(one) for one in features["labels"].to_pylist()]
    likeliest = [np.where(one == IGNORE, 0, one if right else fox) for one in labels]
    return {
        "token_loss": [np.where(one == IGNORE, 0, 2.0) for one in labels],
        "top_tokens": [np.stack([one] * 5, axis=1) for one in likeliest],
        "top_probabilities": [np.where(one == IGNORE, 0, 0.5)[:, None].repeat(5, axis=1) for one in labels],
    }


def predicted(tokenizer, texts: list[str], right: bool = True, **settings: object):
    task, rows = task_of(**settings), rows_of(texts)
    features = drawn(task, tokenizer, encode(task, tokenizer, rows, 8))
    found = task.decode(answers(tokenizer, features, right), features, rows, COLUMNS, {}, tokenizer)
    return features, found, task.score(found, {})


def test_the_likeliest_tokens_stand_in_the_hidden_places(tokenizer):
    _, found, scores = predicted(tokenizer, ["the quick fox", "over the dog"])
    assert found.table["prediction"].to_pylist() == ["the quick fox", "over the dog"]
    assert scores == {"loss": 2.0, "perplexity": pytest.approx(np.exp(2.0)), "accuracy": 1.0}


@pytest.mark.parametrize("rows", ["examples", "blocks"])
def test_every_hidden_token_counts_once_for_its_own_row(tokenizer, rows):
    features, found, _ = predicted(tokenizer, [TEXT, "the quick fox", "over the dog"], rows=rows, mask_probability=0.5)
    targets = sum(label != IGNORE for one in features["labels"].to_pylist() for label in one)
    tokens = found.table["tokens"].to_pylist()
    assert sum(tokens) == targets
    assert min(tokens) >= (rows == "examples")


def test_accuracy_is_of_all_hidden_tokens_never_of_rows(tokenizer):
    features, _, scores = predicted(tokenizer, ["fox", TEXT], right=False, mask_probability=0.9)
    labels = np.array([label for one in features["labels"].to_pylist() for label in one if label != IGNORE])
    assert len(labels) > 4
    assert scores["accuracy"] == (labels == tokenizer.convert_tokens_to_ids("fox")).mean()


def test_a_text_with_masks_of_its_own_is_filled_and_only_there(tokenizer):
    _, found, _ = predicted(tokenizer, ["the [MASK] fox [MASK]", "over the dog"], right=False)
    assert found.table["prediction"][0].as_py() == "the fox fox fox"
    fills = json.loads(found.table["fills"][0].as_py())
    assert fills == [[{"token": "fox", "probability": 0.5}] * 5] * 2
    assert found.table["tokens"].to_pylist()[0] == 0
    assert found.table["loss"][0].as_py() is None
    assert found.table["fills"][1].as_py() is None


def test_nothing_is_learnt_where_a_text_holds_the_mask(tokenizer):
    task = task_of(mask_probability=0.99)
    rows = rows_of(["the [MASK] fox", "a dog"])
    encoded = task.for_training(task.encode(rows, COLUMNS, tokenizer, {"max_length": 64}), {})
    features = drawn(task, tokenizer, pa.Table.from_batches(list(encoded)))
    assert set(features["labels"][0].as_py()) == {IGNORE}
    assert set(features["labels"][1].as_py()) != {IGNORE}


def test_texts_without_masks_have_no_fills(tokenizer):
    _, found, _ = predicted(tokenizer, ["over the dog"])
    assert found.table.column_names == ["prediction", "actual", "loss", "tokens", "perplexity"]


def test_a_tokenizer_without_a_mask_is_refused(tokenizer):
    bare = PreTrainedTokenizerFast(tokenizer_object=tokenizer.backend_tokenizer)
    with pytest.raises(InputError, match=r"model\.tokenizer: this tokenizer has no mask token"):
        encode(task_of(), bare, rows_of(["a fox"]))


def test_drawing_is_quick(tokenizer):
    before, _ = many(tokenizer)
    block = {name: values[:512] for name, values in before.items()}
    task, rng = task_of(), np.random.default_rng(0)
    task.draw(block, rng, tokenizer)
    started = time.process_time()
    for _ in range(200):
        task.draw(block, rng, tokenizer)
    assert (time.process_time() - started) / 200 < 0.001  # about 30 µs here; a step has 8 to 64 of them
