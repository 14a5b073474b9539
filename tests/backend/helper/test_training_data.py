"""The window's questions about a training's data: asked of the real helper, with progress, and found warm again."""

import time
from pathlib import Path
from typing import Any

import pytest

from backend.contract.errors import InputError
from backend.contract.resources import resource
from backend.helper.queries.training_data import QUERIES

DEMO = resource("demo", "sentiment")


def demo(**task: object) -> dict:
    """The embedded demo as a draft."""
    return {
        "name": "sentiment",
        "task": {"type": "text_classification", "max_length": 24, **task},
        "model": {"name_or_path": str(resource("demo", "bert-tiny"))},
        "data": {"source": "files", "train": str(DEMO / "train.csv"), "validation": str(DEMO / "validation.csv")},
        "training": {"batch_size": 16},
    }


@pytest.mark.slow
def test_lengths_rows_and_features_are_answered(helper):
    asked = {"subject": "draft", "spec": demo(), "split": "train"}
    lengths = helper.answer("training_lengths", **asked)
    assert lengths["measures"][0]["sentence"] == "20 % of the rows lose text at 24 tokens; 64 loses 0.1 %."
    assert lengths["splits"] == ["train", "validation"]
    assert "tokenising" in {one["progress"].get("text") for one in helper.progress}

    rows = helper.answer("training_rows", **asked, step=3)
    feature = helper.answer("training_feature", **asked, step=3, feature=rows["lines"][5][0])
    assert len(rows["lines"]) == 16
    assert feature["place"] == rows["lines"][5][3]

    started = time.monotonic()
    helper.answer("training_feature", **asked, step=3, feature=rows["lines"][6][0])
    assert time.monotonic() - started < 1.0  # the same worker has all of it open


def answer(query: str, **arguments: object) -> Any:
    """As a worker answers, without the processes around it."""
    [found] = [one.answer for one in QUERIES if one.name == query]
    return found(arguments, lambda progress: None)


def test_a_row_of_the_validation_data_is_found():
    rows = answer("training_rows", subject="draft", spec=demo(), split="validation", row=7, count=2)
    assert [line.row for line in rows.lines] == [7, 8]


@pytest.mark.parametrize(
    ("query", "asked", "sentence"),
    [
        ("training_rows", {"spec": demo(), "step": 99999}, "there is no step 99999: this training has steps 1 to"),
        ("training_lengths", {"spec": demo(), "split": "test"}, "there is no test data; available: train, validation"),
        ("training_lengths", {"run": "/nowhere"}, "this run no longer exists"),
        ("training_feature", {"spec": demo(), "feature": 99999}, "there is no feature 99999"),
    ],
)
def test_what_cannot_be_shown_is_said_in_a_sentence(query: str, asked: dict, sentence: str):
    with pytest.raises(InputError, match=sentence):
        answer(query, **asked)


def test_files_are_looked_at_anew_where_that_is_asked(tmp_path: Path):
    path = tmp_path / "train.csv"
    draft = demo()
    draft["data"] = {"source": "files", "train": str(path)}
    for asked, count in ((0, 12), (0, 12), (1, 20)):
        if count == 20 or not path.exists():
            path.write_text("text,label\n" + "good,yes\nbad,no\n" * (count // 2), encoding="utf-8")
        assert answer("training_rows", spec=draft, asked=asked, row=0).rows == count
