"""Choices from lists and columns, how labels call them, features choice by choice, and scores."""

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from transformers import AutoTokenizer

from backend.contract.errors import InputError
from backend.contract.resources import resource
from backend.data.rows import Rows
from backend.preflight.datasets import choose_columns
from backend.tasks.multiple_choice import MultipleChoice, Settings

SWAG = {
    "video-id": ["1", "2"],
    "sent1": ["A man sits on a chair.", "The dog runs."],
    "sent2": ["He", "It"],
    "ending0": ["sleeps.", "flies."],
    "ending1": ["eats a chair.", "barks."],
    "ending2": ["stands up.", "sings a song."],
    "ending3": ["is a dog.", "reads."],
    "label": ["2", "0"],
}
LIST = {"text": ["one", "two"], "choices": [["red", "blue"], ["hot", "cold"]]}


@pytest.fixture(scope="module")
def tokenizer():
    return AutoTokenizer.from_pretrained(resource("demo", "bert-tiny"))


def rows_of(table: dict) -> Rows:
    made = pa.table(table)
    count = made.num_rows
    return Rows(made, ("swag.csv",), np.zeros(count, np.int32), np.arange(count) + 2, "f")


def prepared(table: dict, **settings: Any):
    """Task, rows, columns and facts as preparation makes them."""
    task, rows = MultipleChoice(Settings(**settings)), rows_of(table)
    columns = choose_columns(task, {}, rows)
    assert task.unusable(rows, columns, "training") == []
    return task, rows, columns, task.fit(rows, columns) | {"max_length": 64}


def encoded(task, rows, columns, facts, tokenizer) -> pa.Table:
    return pa.Table.from_batches(list(task.encode(rows, columns, tokenizer, facts)))


def test_the_columns_of_swag_are_found():
    _, _, columns, _ = prepared(SWAG)
    assert columns == {
        "text": "sent1", "text_pair": "sent2", "label": "label",
        "choice_0": "ending0", "choice_1": "ending1", "choice_2": "ending2", "choice_3": "ending3",
    }  # fmt: skip


def test_columns_that_count_from_1_are_found():
    _, _, columns, _ = prepared({"premise": ["a"], "choice1": ["x"], "choice2": ["y"], "label": ["0"]})
    assert (columns["choice_0"], columns["choice_1"]) == ("choice1", "choice2")


def test_every_choice_is_encoded_as_a_pair_with_the_text(tokenizer):
    task, rows, columns, facts = prepared(SWAG)
    features = encoded(task, rows, columns, facts, tokenizer)
    pairs = [
        ("A man sits on a chair.", f"He {ending}") for ending in ("sleeps.", "eats a chair.", "stands up.", "is a dog.")
    ]
    expected = tokenizer([one for one, _ in pairs], [two for _, two in pairs])
    assert features["input_ids"][0].as_py() == [token for one in expected["input_ids"] for token in one]
    assert features["token_type_ids"][0].as_py() == [kind for one in expected["token_type_ids"] for kind in one]
    assert features["choice_lengths"][0].as_py() == [len(one) for one in expected["input_ids"]]
    assert features["labels"].to_pylist() == [2, 0]


@pytest.mark.parametrize("as_json", [False, True])
def test_choices_may_be_lists_or_their_json(tokenizer, as_json):
    table = {**LIST, "label": ["1", "0"]}
    if as_json:
        table["choices"] = [json.dumps(one) for one in LIST["choices"]]
    task, rows, columns, facts = prepared(table)
    assert columns["choices"] == "choices"
    assert [len(one) for one in encoded(task, rows, columns, facts, tokenizer)["choice_lengths"].to_pylist()] == [2, 2]


@pytest.mark.parametrize(
    ("labels", "numbers"),
    [
        (["0", "1"], [0, 1]),
        (["1", "2"], [0, 1]),
        ([1.0, 2.0], [0, 1]),
        (["A", "B"], [0, 1]),
        (["b", "a"], [1, 0]),
        (["blue", "hot"], [1, 0]),
    ],
)
def test_labels_are_understood_as_they_are_written(tokenizer, labels, numbers):
    task, rows, columns, facts = prepared({**LIST, "label": labels})
    assert encoded(task, rows, columns, facts, tokenizer)["labels"].to_pylist() == numbers


def test_labels_may_be_the_names_that_choices_bear(tokenizer):
    choices = [{"text": ["red", "blue"], "label": ["1", "2"]}, {"text": ["hot", "cold"], "label": ["A", "B"]}]
    task, rows, columns, facts = prepared({"question": ["a", "b"], "choices": choices, "answerKey": ["2", "A"]})
    assert encoded(task, rows, columns, facts, tokenizer)["labels"].to_pylist() == [1, 0]


def test_numbers_that_may_count_from_0_or_1_are_refused():
    with pytest.raises(
        InputError, match=r"may number the 4 choices from 0 or from 1.*set task\.first_choice to 0 or 1"
    ):
        prepared({**SWAG, "label": ["1", "2"]})


@pytest.mark.parametrize(("first", "numbers"), [("0", [1, 2]), ("1", [0, 1])])
def test_a_person_says_where_numbers_begin(tokenizer, first, numbers):
    task, rows, columns, facts = prepared({**SWAG, "label": ["1", "2"]}, first_choice=first)
    assert encoded(task, rows, columns, facts, tokenizer)["labels"].to_pylist() == numbers


def test_how_labels_were_read_is_told():
    _, _, _, facts = prepared({**LIST, "label": ["1", "2"]})
    assert facts["notes"] == [
        "The labels are numbers; the first choice is 1. probability_0 still belongs to the first choice."
    ]


def test_a_row_with_another_number_of_choices_is_named():
    with pytest.raises(InputError, match=r"data\.train: swag\.csv:3 has 3 choices, but the rows before it have 4"):
        prepared({**SWAG, "ending3": ["is a dog.", " "]})


def test_a_label_that_is_no_choice_names_its_row():
    with pytest.raises(InputError, match=r"swag\.csv:3 has the label '4', which is not one of its 4 choices"):
        prepared({**SWAG, "label": ["0", "4"]})


def test_labels_that_are_no_choice_anywhere_are_the_wrong_column():
    with pytest.raises(InputError, match="“label” names none of the choices in any row, for example 'A-1'") as refused:
        prepared({**SWAG, "label": ["A-1", "A-2"]})
    assert refused.value.field == "data.columns.label"


def test_other_splits_are_held_to_the_same():
    task, _, columns, facts = prepared(SWAG)
    with pytest.raises(InputError, match=r"data\.validation: swag\.csv:2 has 3 choices, but the training rows have 4"):
        task.check(rows_of({**SWAG, "ending3": ["", ""]}), columns, facts, "validation")


def test_data_without_choices_says_what_to_name():
    with pytest.raises(InputError, match=r"data\.columns\.choices: specify which column contains the list of choices"):
        prepared({"text": ["a"], "label": ["0"]})


def test_a_cell_that_is_no_list_names_its_row():
    with pytest.raises(InputError, match=r"swag\.csv:2 has no list of choices in the column 'choices'"):
        prepared({"text": ["a"], "choices": ["red or blue"], "label": ["0"]})


def test_rows_without_text_or_label_cannot_be_used():
    task = MultipleChoice(Settings())
    rows = rows_of({**SWAG, "sent1": ["", "x"], "label": ["0", ""]})
    columns = choose_columns(task, {}, rows)
    assert task.unusable(rows, columns, "training") == [(0, "no text"), (1, "no label")]


def predicted(labels: list[str] | None, **settings: Any):
    table = {**LIST, "label": labels} if labels else LIST
    task, rows = MultipleChoice(Settings(**settings)), rows_of(table)
    columns = choose_columns(task, {}, rows, to_predict=True)
    facts = task.fit(rows, columns) if labels else task.facts_of_model(())
    outputs = {"logits": [np.array([0.0, np.log(3.0)]), np.array([0.0, 0.0])]}
    found = task.decode(outputs, pa.table({}), rows, columns, facts, None)
    return found.table, task.score(found, facts)


def test_the_loss_is_that_of_the_right_choice():
    _, scores = predicted(["1", "0"])
    assert scores == {"loss": pytest.approx((np.log(4 / 3) + np.log(2)) / 2), "accuracy": 1.0}


@pytest.mark.parametrize(
    ("labels", "prediction"), [(["1", "0"], ["1", "0"]), (["2", "1"], ["2", "1"]), (["B", "B"], ["B", "A"]), (["red", "hot"], ["blue", "hot"])]
)  # fmt: skip
def test_predictions_are_called_as_the_input_calls_them(labels, prediction):
    table, _ = predicted(labels)
    assert table["prediction"].to_pylist() == prediction
    assert table["actual"].to_pylist() == labels


def test_probabilities_are_counted_from_0():
    table, _ = predicted(["2", "1"])
    assert table["probability_1"].to_pylist() == [pytest.approx(0.75), pytest.approx(0.5)]


def test_unlabelled_rows_are_predicted_and_not_scored():
    table, scores = predicted(None)
    assert table["prediction"].to_pylist() == ["1", "0"]
    assert table["actual"].null_count == 2
    assert scores == {}
