"""Batches against a naive loop, their denominators, and outputs put back in order."""

from itertools import chain

import numpy as np
import pyarrow as pa
import pytest

from backend.contract.heads import IGNORE, Head
from backend.data.batches import (
    FEW,
    Padding,
    collate,
    evaluated_rows,
    evaluation_batches,
    longest_sequence,
    micro_batches,
    padded_length,
    process_share,
    prompt_batches,
    restore_order,
    targets,
)
from backend.data.features import Features, features, load_into_memory

COUNT = 300
PAD = 9


def make(tmp_path, **columns) -> Features:
    rng = np.random.default_rng(3)
    lists = [rng.integers(10, 1000, rng.integers(1, 30)).tolist() for _ in range(COUNT)]
    arrays = {
        "row": pa.array(range(COUNT)),
        "part": pa.array([0] * COUNT),
        "input_ids": pa.array(lists),
        **{name: make_column(lists) for name, make_column in columns.items()},
    }
    return features(lambda: iter([pa.RecordBatch.from_pydict(arrays)]), {}, tmp_path, lambda *_: None, COUNT)


@pytest.fixture
def pairs(tmp_path) -> Features:
    return make(
        tmp_path,
        token_type_ids=lambda lists: pa.array([[number % 2 for number in one] for one in lists]),
        labels=lambda lists: pa.array([len(one) % 3 for one in lists]),
    )


@pytest.fixture
def language(tmp_path) -> Features:
    return make(tmp_path, labels=lambda lists: pa.array(lists, pa.list_(pa.int32())))


def naive(found: Features, indices, name: str, filler: int, length: int, rows: int, side: str) -> list[list[int]]:
    lists = [found.table[name][int(index)].as_py() for index in indices]
    lists += [[] for _ in range(rows - len(lists))]
    return [
        one + [filler] * (length - len(one)) if side == "right" else [filler] * (length - len(one)) + one
        for one in lists
    ]


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize(("multiple", "rows"), [(1, None), (8, None), (16, 20)])
def test_a_batch_equals_the_naive_loop(pairs, multiple, rows, side):
    indices = np.random.default_rng(5).permutation(COUNT)[:16]
    batch = collate(
        pairs, indices, pad_token_id=PAD, head=Head.SEQUENCE_CLASSIFICATION,
        length_multiple=multiple, rows=rows, pad_side=side,
    )  # fmt: skip
    longest = max(len(pairs.table["input_ids"][int(index)]) for index in indices)
    length, count = -(-longest // multiple) * multiple, rows or 16
    assert batch["input_ids"].tolist() == naive(pairs, indices, "input_ids", PAD, length, count, side)
    assert batch["token_type_ids"].tolist() == naive(pairs, indices, "token_type_ids", 0, length, count, side)
    ones = [[1] * len(pairs.table["input_ids"][int(index)]) for index in indices] + [[1]] * (count - 16)
    mask = [one + [0] * (length - len(one)) if side == "right" else [0] * (length - len(one)) + one for one in ones]
    assert batch["attention_mask"].tolist() == mask
    assert batch["labels"].tolist()[:16] == [pairs.table["labels"][int(index)].as_py() for index in indices]
    assert batch["row_valid"].tolist() == [True] * 16 + [False] * (count - 16)
    kinds = {name: array.dtype for name, array in batch.items()}
    assert kinds == dict.fromkeys(["input_ids", "attention_mask", "token_type_ids", "labels"], np.dtype(np.int64)) | {
        "row_valid": np.dtype(bool)
    }


def test_token_labels_are_padded_with_what_is_no_target(language):
    indices = np.array([3, 1, 4])
    batch = collate(language, indices, pad_token_id=PAD, head=Head.CAUSAL_LM, rows=4)
    length = batch["input_ids"].shape[1]
    assert batch["labels"].tolist() == naive(language, indices, "labels", IGNORE, length, 4, "right")


def test_rounding_up_stops_at_the_models_last_position(pairs):
    indices = np.array([int(np.argmax(pairs.lengths))])
    batch = collate(pairs, indices, pad_token_id=PAD, head=Head.CAUSAL_LM, length_multiple=64, length_limit=40)
    assert batch["input_ids"].shape == (1, 40)


def test_engines_that_compile_see_few_lengths_and_little_more_padding():
    rounded = [padded_length(length, FEW, None) for length in range(1, 2049)]
    assert all(0 <= found - length < max(8, length / 4) for length, found in enumerate(rounded, 1))
    assert len({found for found in rounded if found <= 512}) == 20
    assert len(set(rounded)) == 28


def test_a_row_without_tokens_still_sees_something(tmp_path):
    batch = pa.RecordBatch.from_pydict(
        {"row": pa.array([0]), "part": pa.array([0]), "input_ids": pa.array([[]], pa.list_(pa.int32()))}
    )
    empty = features(lambda: iter([batch]), {}, tmp_path, lambda *_: None, 1)
    found = collate(empty, np.array([0]), pad_token_id=PAD, head=Head.SEQUENCE_CLASSIFICATION, length_multiple=1)
    assert (found["input_ids"].tolist(), found["attention_mask"].tolist()) == ([[PAD]], [[1]])


def test_numbers_keep_their_kind_for_regression(tmp_path):
    scores = make(tmp_path, labels=lambda lists: pa.array([len(one) / 2 for one in lists], pa.float32()))
    batch = collate(scores, np.array([0, 1]), pad_token_id=PAD, head=Head.SEQUENCE_REGRESSION)
    assert batch["labels"].dtype == np.float32
    assert batch["labels"].tolist() == (scores.lengths[:2] / 2).tolist()


def test_batches_without_labels_have_none(tmp_path):
    batch = collate(make(tmp_path), np.array([0]), pad_token_id=PAD, head=Head.SEQUENCE_CLASSIFICATION)
    assert sorted(batch) == ["attention_mask", "input_ids", "row_valid"]


def test_thirteen_rows_are_eight_and_five(pairs):
    indices = np.arange(40, 53)
    parts = micro_batches(pairs, indices, 8, pad_token_id=PAD, head=Head.SEQUENCE_CLASSIFICATION)
    assert [len(part["labels"]) for part in parts] == [8, 5]
    assert np.concatenate([part["labels"] for part in parts]).tolist() == pairs.scalars["labels"][indices].tolist()


def test_constant_rows_fill_the_last_micro_batch(pairs):
    parts = micro_batches(pairs, np.arange(13), 8, pad_token_id=PAD, head=Head.SEQUENCE_CLASSIFICATION, rows=8)
    assert [part["input_ids"].shape[0] for part in parts] == [8, 8]
    assert [int(part["row_valid"].sum()) for part in parts] == [8, 5]


def test_evaluation_takes_the_longest_first_and_everyone_once(pairs):
    batches = list(evaluation_batches(pairs, 32, pad_token_id=PAD, head=Head.SEQUENCE_CLASSIFICATION))
    indices = np.concatenate([one for one, _ in batches])
    assert sorted(indices.tolist()) == list(range(COUNT))
    assert np.all(np.diff(pairs.lengths[indices]) <= 0)


def test_long_rows_are_evaluated_in_smaller_batches(pairs):
    padding: Padding = {"pad_token_id": PAD, "head": Head.SEQUENCE_CLASSIFICATION, "length_multiple": 1}
    parts = [one for one, _ in evaluation_batches(pairs, 32, most_tokens=100, **padding)]
    assert sorted(np.concatenate(parts).tolist()) == list(range(COUNT))
    sizes = [(len(one), int(pairs.lengths[one[0]])) for one in parts[:-1]]  # the last has what is left
    assert sizes == [(min(32, 100 // length), length) for _, length in sizes]
    assert len({rows for rows, _ in sizes}) > 3
    alone = evaluation_batches(pairs, 32, most_tokens=10, **padding)
    assert len(next(alone)[0]) == 1, "a row longer than all that may be together is still evaluated"
    assert evaluated_rows(0, 5, most_tokens=100) == 0, "a plan counts no row where none is evaluated"


def test_short_prompts_are_continued_in_larger_batches(tmp_path):
    prompts = make(tmp_path, prompt_length=lambda lists: pa.array([-(-len(one) // 2) for one in lists]))
    lengths = prompts.scalars["prompt_length"]
    padding: Padding = {"pad_token_id": PAD, "head": Head.CAUSAL_LM}
    parts = [one for one, _ in prompt_batches(prompts, 8, 5, 10_000, **padding)]
    assert sorted(np.concatenate(parts).tolist()) == list(range(COUNT))
    most = 8 * (int(lengths.max()) + 5)
    assert [len(one) for one in parts[:-1]] == [max(8, most // (lengths[one[0]] + 5)) for one in parts[:-1]]
    assert {len(one) for one, _ in prompt_batches(prompts, 10, **padding)} == {10}, "of a chosen size"


@pytest.mark.parametrize("side", ["right", "left"])
def test_outputs_come_back_in_order_without_filler_and_padding(language, side):
    batches = evaluation_batches(language, 32, pad_token_id=PAD, head=Head.CAUSAL_LM, rows=32, pad_side=side)
    answers = ((indices, {"token_loss": batch["input_ids"] * 2}) for indices, batch in batches)
    found = restore_order(answers, language, Head.CAUSAL_LM, side)["token_loss"]
    assert [(one // 2).tolist() for one in found] == language.table["input_ids"].to_pylist()


def test_processes_share_an_evaluation_and_lose_nothing(pairs):
    answers = []
    for process in range(3):
        mine = process_share(np.arange(COUNT), process, 3)
        batches = evaluation_batches(pairs, 16, mine, pad_token_id=PAD, head=Head.SEQUENCE_CLASSIFICATION)
        answers += [(indices, {"logits": batch["labels"][:, None] * np.ones(2)}) for indices, batch in batches]
    found = restore_order(answers, pairs, Head.SEQUENCE_CLASSIFICATION)["logits"]
    assert [int(one[0]) for one in found] == pairs.scalars["labels"].tolist()


@pytest.mark.parametrize("processes", [1, 2, 3, 20])
def test_shares_are_disjoint_and_complete(processes):
    parts = [process_share(np.arange(13), process, processes).tolist() for process in range(processes)]
    assert sorted(chain.from_iterable(parts)) == list(range(13))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_the_first_token_of_a_language_model_is_no_target(language):
    indices = np.array([3, 1, 4])
    batch = collate(language, indices, pad_token_id=PAD, head=Head.CAUSAL_LM, rows=8)
    expected = float((language.lengths[indices] - 1).sum())
    assert targets(Head.CAUSAL_LM, batch) == expected
    assert targets(Head.MASKED_LM, batch) == expected + 3


def test_classes_count_rows_or_their_weights():
    batch = {"labels": np.array([0, 2, IGNORE, 1, 0]), "row_valid": np.array([True, True, True, True, False])}
    assert targets(Head.SEQUENCE_CLASSIFICATION, batch) == 3
    assert targets(Head.SEQUENCE_CLASSIFICATION, batch, (0.5, 1.0, 4.0)) == 5.5


def test_scores_count_known_rows():
    batch = {"labels": np.array([0.5, np.nan, 2.0]), "row_valid": np.array([True, True, False])}
    assert targets(Head.SEQUENCE_REGRESSION, batch) == 1


@pytest.fixture
def choices(tmp_path) -> Features:
    """Two questions of three choices each."""
    arrays = {
        "row": pa.array([0, 1]),
        "part": pa.array([0, 0]),
        "input_ids": pa.array([[1, 2, 3, 4, 5, 6], [7, 8, 10]]),
        "token_type_ids": pa.array([[0, 1, 1, 0, 1, 1], [0, 1, 0]]),
        "choice_lengths": pa.array([[1, 3, 2], [1, 1, 1]]),
        "labels": pa.array([2, IGNORE]),
    }
    return features(lambda: iter([pa.RecordBatch.from_pydict(arrays)]), {}, tmp_path / "choices", lambda *_: None, 2)


def test_choices_are_rows_of_their_own_padded_to_the_longest(choices):
    batch = collate(choices, np.array([1, 0]), pad_token_id=PAD, head=Head.MULTIPLE_CHOICE, length_multiple=1)
    assert batch["input_ids"].tolist() == [
        [[7, PAD, PAD], [8, PAD, PAD], [10, PAD, PAD]],
        [[1, PAD, PAD], [2, 3, 4], [5, 6, PAD]],
    ]
    assert batch["attention_mask"].tolist() == [[[1, 0, 0]] * 3, [[1, 0, 0], [1, 1, 1], [1, 1, 0]]]
    assert batch["token_type_ids"].tolist()[1] == [[0, 0, 0], [1, 1, 0], [1, 1, 0]]
    assert batch["labels"].tolist() == [IGNORE, 2]


def test_choices_are_filled_up_to_a_constant_number_of_rows(choices):
    padding = {"pad_token_id": PAD, "head": Head.MULTIPLE_CHOICE, "rows": 3, "length_multiple": 8}
    batch = collate(choices, np.array([0, 1]), **padding)
    assert batch["input_ids"].shape == batch["attention_mask"].shape == (3, 3, 8)
    assert batch["attention_mask"][2].sum(axis=1).tolist() == [1, 1, 1]  # a softmax over nothing would be NaN
    assert batch["row_valid"].tolist() == [True, True, False]
    assert targets(Head.MULTIPLE_CHOICE, batch) == 1


def test_choices_can_be_padded_on_the_left(choices):
    batch = collate(
        choices, np.array([0]), pad_token_id=PAD, head=Head.MULTIPLE_CHOICE, length_multiple=1, pad_side="left"
    )
    assert batch["input_ids"].tolist() == [[[PAD, PAD, 1], [2, 3, 4], [PAD, 5, 6]]]


def test_a_model_sees_one_choice_at_a_time(choices, pairs):
    assert longest_sequence(choices) == 3
    assert longest_sequence(pairs) == pairs.lengths.max()


def test_a_target_may_be_the_longest_sequence():
    lists = {name: pa.array(one, pa.list_(pa.int32())) for name, one in (("input_ids", [[1]]), ("labels", [[1, 2, 3]]))}
    numbers = {name: pa.array([0], pa.int32()) for name in ("row", "part")}
    assert longest_sequence(load_into_memory(iter([pa.RecordBatch.from_pydict(numbers | lists)]))) == 3


def test_draw_sees_every_list_and_a_batch_only_its_own(tmp_path):
    found = make(tmp_path, word=lambda lists: pa.array(lists, pa.list_(pa.int16())))
    batch = collate(
        found, np.array([2]), pad_token_id=PAD, head=Head.MASKED_LM,
        draw=lambda number, lists: {**lists, "labels": lists["word"] + number},
    )  # fmt: skip
    length = found.lengths[2]
    assert batch["labels"][0, :length].tolist() == (batch["input_ids"][0, :length] + 2).tolist()
    assert "word" not in batch
