"""The window's questions about a training's data: asked of the real helper, with progress, and found warm again."""

import time
from pathlib import Path

from backend.contract.resources import resource

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


def test_a_row_of_the_validation_data_is_found(helper):
    rows = helper.answer("training_rows", subject="draft", spec=demo(), split="validation", row=7, count=2)
    assert [line[1] for line in rows["lines"]] == [7, 8]


def test_what_cannot_be_shown_is_said_in_a_sentence(helper):
    asked = {"subject": "draft", "spec": demo()}
    beyond = helper.reply(helper.ask("training_rows", **asked, step=99999))["error"]
    split = helper.reply(helper.ask("training_lengths", **asked, split="test"))["error"]
    gone = helper.reply(helper.ask("training_lengths", subject="x", run=str(Path("/nowhere"))))["error"]
    assert beyond["message"].startswith("there is no step 99999: this training has steps 1 to")
    assert split["message"] == "there is no test data; there is train, validation"
    assert "there is no such run" in gone["message"]
