"""What a view of a predicted row reads: entities in any scheme, differing words, parts, and what a person types."""

from pathlib import Path

import pytest

from app.core.predictions.entities import Entity, colors_of, entities, words_of
from app.core.predictions.predicted_row import PredictedRow
from app.core.predictions.word_diff import difference
from app.core.runs.run_spec import RunTask, read_run_task, typed_columns
from backend.contract.catalog import Column, TaskEntry


@pytest.mark.parametrize(
    "tags",
    ["B-PER I-PER O B-LOC", "I-PER I-PER O I-LOC", "B-PER E-PER O S-LOC", "B-PER L-PER O U-LOC"],
    ids=["BIO", "IOB1", "IOBES", "BILOU"],
)
def test_entities_are_read_in_any_scheme(tags: str):
    assert entities(tags.split()) == [Entity(0, 2, "PER"), Entity(3, 4, "LOC")]


def test_two_entities_of_one_kind_side_by_side_stay_two():
    assert entities(["B-PER", "B-PER", "I-PER"]) == [Entity(0, 1, "PER"), Entity(1, 3, "PER")]


def test_tags_without_scheme_are_of_one_word():
    assert entities(["NOUN", "NOUN", "O"]) == [Entity(0, 1, "NOUN"), Entity(1, 2, "NOUN")]


def test_kinds_have_colours_of_their_own():
    assert len(set(colors_of(dict.fromkeys(["LOC", "PER", "fare", "time"], 1), 6).values())) == 4


def test_words_are_a_list_or_text():
    assert words_of(["New", "York"]) == words_of("New  York") == ["New", "York"]


def test_differing_words_are_found():
    ours, theirs = difference("the cat sat", "the dog sat")
    assert [text for text, same in ours if not same] == ["cat"]
    assert [text for text, same in theirs if not same] == ["dog"]


def test_neighbouring_differences_are_one():
    ours, _ = difference("a b c d", "x y c d")
    assert [text for text, same in ours if not same] == ["a b"]


@pytest.mark.parametrize(("one", "other"), [("今天很好", "今天不错"), ("ab  c\nd", "ab c d"), ("", "x")])
def test_parts_joined_are_the_text_again(one: str, other: str):
    ours, theirs = difference(one, other)
    assert ("".join(text for text, _ in ours), "".join(text for text, _ in theirs)) == (one, other)


def test_scripts_without_spaces_differ_by_sign():
    ours, _ = difference("今天很好", "今天不好")
    assert [text for text, same in ours if not same] == ["很"]


def test_texts_that_are_too_long_are_not_compared():
    ours, _ = difference("a " * 4000, "b")
    assert ours == [("a " * 4000, True)]


def test_parts_are_found_by_their_columns():
    row = PredictedRow({"sentence": "film", "score": 3, "predicted_score": 0.5, "n_best": "[1"}, {"text": "sentence"})
    assert (row.text("text"), row.number("score"), row.as_list("n_best")) == ("film", 0.5, [])


def entry() -> TaskEntry:
    columns = [
        Column("text", "Text", ""),
        Column("pair", "Second text", "", required=False),
        Column("choice_0", "Choice 0", "", required=False),
        Column("prefix", "Prefix", "", required=False, needed_to_predict=False),
        Column("id", "Name", "", required=False, needed_to_predict=False),
        Column("label", "Label", "", needed_to_predict=False),
        Column("prompt", "Prompt", "", when={"rows": ["chat"]}),
    ]
    settings = {"properties": {"rows": {"default": "blocks"}}}
    return TaskEntry("t", "T", "", "causal_lm", columns, ["loss"], "loss", settings)


@pytest.mark.parametrize(
    ("task", "names"),
    [
        (RunTask("t"), ["text", "pair"]),
        (RunTask("t", {"rows": "chat"}), ["text", "pair", "prompt"]),
        (RunTask("t", {}, {"text": "a", "label": "b"}), ["text"]),
        (RunTask("t", {}, {"text": "a", "choice_0": "c", "prefix": "p", "id": "i"}), ["text", "choice_0", "prefix"]),
    ],
    ids=["untrained", "by settings", "trained on text", "trained on more"],
)
def test_a_person_types_what_the_model_reads(task: RunTask, names: list[str]):
    assert [column.name for column in typed_columns(entry(), task)] == names


def test_spec_that_cannot_be_read_is_no_task(tmp_path: Path):
    (tmp_path / "spec.yaml").write_text("task: [")
    assert read_run_task(tmp_path) == read_run_task(tmp_path / "nowhere") == RunTask()


def test_a_list_nested_without_end_is_none():
    assert PredictedRow({"n_best": "[" * 100_000}, {}).as_list("n_best") == []
