"""Tests that the helper says which models it keeps open, and closes them when asked."""

from backend.contract.resources import resource

MODEL = str(resource("demo", "bert-tiny"))


def test_open_model_is_told_and_let_go(helper) -> None:
    assert helper.answer("open_models") == {"targets": []}
    helper.mistake("answer", target="nowhere", task="text_classification", rows=[{"text": "x"}])
    helper.answer("answer", target=MODEL, task="text_classification", rows=[{"text": "a good film"}])
    workers = helper.workers()

    assert helper.answer("open_models") == {"targets": [MODEL]}
    assert helper.answer("let_go", target=MODEL) == {"targets": []}
    assert len(helper.workers()) == len(workers) - 1
